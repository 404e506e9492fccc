"""One read-only look at a machine: one script, one round trip, everything typed (gpubox.onboard.state)."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gpubox.driver import kernel_log
from gpubox.facts.answers import Answer, answers, read_answers, script
from gpubox.hypervisor import bars, bus, nodes, secure_boot
from gpubox.hypervisor.cards import pci
from gpubox.nccl.place import Signs, judge
from gpubox.nccl.topology import Matrix, parse
from gpubox.onboard import questions, smi
from gpubox.onboard.state import (
    Box,
    Container,
    Disk,
    Gpus,
    Hypervisor,
    Server,
    Venv,
    broken_facts,
    card_facts,
    recovery_facts,
)
from gpubox.remote import cgroup, secrets
from gpubox.rules.facts import BoxFacts
from gpubox.support import ssh
from gpubox.support.errors import CannotTellError


def box(address: str, connection: Mapping[str, Any]) -> Box:
    """The machine at the address. Errors: cannot tell, when it is not reached or its shell is strange."""
    return read_box(answers(ssh.run(address, connection, script(questions.BOX)).splitlines()))


def hypervisor(address: str, connection: Mapping[str, Any]) -> Hypervisor:
    """The hypervisor at the address, with the containers that it lists. Errors as for `box`."""
    return read_hypervisor(answers(ssh.run(address, connection, script(questions.HYPERVISOR)).splitlines()))


def read_box(found: Mapping[str, Answer]) -> Box:
    """The answers to questions.BOX. Error: cannot tell, with the question and the line."""
    return read_answers("the state of the box", _box, found)


def read_facts(found: Mapping[str, Answer]) -> BoxFacts:
    """The answers to questions.FACTS: what the rules judge by, and no more. Errors as above."""
    return read_answers("the facts of the box", _facts, found)


def read_hypervisor(found: Mapping[str, Answer]) -> Hypervisor:
    """The answers to questions.HYPERVISOR. Errors as above."""
    return read_answers("the state of the hypervisor", _hypervisor, found)


def _box(found: Mapping[str, Answer]) -> Box:
    names = found["os"].text.splitlines()
    return Box(
        hostname=found["hostname"].text.strip(),
        addresses=found["addresses"].text.split(),
        distribution=names[0].replace(".", "") if names else "",
        os=names[1] if len(names) > 1 else "",
        kernel=found["kernel"].expect(0, what="uname").strip(),
        where=judge(_signs(found)),
        python=found["python"].text.strip().removeprefix("Python "),
        cpu=found["cpu"].text.strip(),
        cores=cgroup.cores(found["cores"].expect(0, what="nproc"), found["cpuset"].text, found["quota"].text),
        sockets=int(found["sockets"].text or "0"),
        memory=int(found["memory"].expect(0, what="/proc/meminfo")) * 1024,
        memory_free=_kib(found["memory-free"]),
        architecture=found["architecture"].text.strip(),
        memory_limit=cgroup.limit(found["memory-limit"].text),
        shm=next((disk.size for disk in _disks(found["shm"].text)), None),
        disks=_disks(found["disks"].text),
        gpus=_gpus(found),
        toolkits=dict([*line.split(), ""][:2] for line in found["toolkits"].text.splitlines()),
        toolkit_default=found["toolkit-default"].text.strip(),
        venvs=[Venv(*line.split("\t")) for line in found["venvs"].text.splitlines()],
        units=found["units"].text.splitlines(),
        servers=_servers(found["servers"]),
        users=[_user(line) for line in found["users"].text.splitlines()],
        proxies=_variables(found["proxies"].text),
        login_proxies=_variables(found["login-proxies"].text),
        apt=_apt(found),
    )


def _facts(found: Mapping[str, Answer]) -> BoxFacts:
    names, text = found["os"].text.splitlines(), found["driver"].text
    listed = smi.read(found["cards"], {}, found["pci"].text.splitlines())
    log = kernel_log.parse(found["kernel-log"].rc, found["kernel-log"].text)
    return BoxFacts(
        cards=card_facts(listed.cards, _kib(found["memory-free"])),
        broken_cards=broken_facts(listed.broken),
        recovery=recovery_facts(listed.cards, listed.broken, log),
        architecture=found["architecture"].text.strip() or None,
        driver=_driver(text),
        module_on_disk=on_disk(found["module-on-disk"]),
        reboot_for=_reboot_for(found["reboot-required"]),
        module_license=_licence(found["licence"], text),
        virtualisation=judge(_signs(found)).place,
        distribution=names[0].replace(".", "") if names else None,
        proxies=_variables(found["proxies"].text),
    )


def read_gpus(found: Mapping[str, Answer]) -> Gpus:
    """The answers to questions.GPUS."""
    return read_answers("cards and driver", _gpus, found)


def _hypervisor(found: Mapping[str, Answer]) -> Hypervisor:
    rows = [line.split("\t") for line in found["containers"].text.splitlines() if line.count("\t") == 2]
    return Hypervisor(
        hostname=found["hostname"].text.strip(),
        kind=found["kind"].text.strip(),
        os=(found["os"].text.splitlines() or [""])[-1],
        kernel=found["kernel"].expect(0, what="uname").strip(),
        gpus=_gpus(found),
        containers=[
            Container(name, hostname, re.findall(r"\d+\.\d+\.\d+\.\d+", text)) for name, hostname, text in rows
        ],
    )


def _signs(found: Mapping[str, Answer]) -> Signs:
    detect = found["detect-virt"]
    return Signs(
        init=found["init"].text.strip(),
        run_container=found["run-container"].text.strip(),
        detect_virt=detect.text.strip() if detect.rc in {0, 1} and detect.text.strip() else None,
        dmi=" ".join(found["dmi"].text.split()),
        cpu_flag=found["cpu-flag"].rc == 0,
    )


def _gpus(found: Mapping[str, Answer]) -> Gpus:
    text = found["driver"].text
    numa = {pci(address): int(node) for address, node in (line.split() for line in found["numa"].text.splitlines())}
    listed = smi.read(found["cards"], numa, found["pci"].text.splitlines())
    return Gpus(
        cards=listed.cards,
        broken=listed.broken,
        trouble=listed.trouble,
        pci=found["pci"].text.splitlines(),
        driver=_driver(text),
        licence=_licence(found["licence"], text),
        on_disk=on_disk(found["module-on-disk"]),
        reboot_for=_reboot_for(found["reboot-required"]),
        answers=found["nvidiactl"].text.rpartition("/dev/nvidiactl: ")[2].strip() if found["nvidiactl"].rc else "",
        stand_in=found["stand-in"].rc == 0,
        links=_matrix(found["topo-m"]),
        p2p=_matrix(found["topo-p2p"]),
        nodes=nodes.parse(found["nodes"].text),
        proc_devices=found["devices"].text,
        slots=_slots(found["bus"]),
        bars=bars.parse(found["bars"].text),
        secure_boot=secure_boot.parse(found["secure-boot"].text),
        kernel_log=kernel_log.parse(found["kernel-log"].rc, found["kernel-log"].text),
        boots=found["boots"].text if found["boots"].rc == 0 else "",
    )


def _slots(answer: Answer) -> list[bus.Slot]:
    """Empty where the bus cannot be read: a container without it is no fault."""
    try:
        return bus.parse(answer.text) if answer.rc == 0 else []
    except (ValueError, CannotTellError):
        return []


def _kib(answer: Answer) -> int | None:
    word = answer.text.strip()
    return int(word) * 1024 if word.isdigit() else None


def _driver(text: str) -> str | None:
    version = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.M)
    return version.group(1) if version else None


def _licence(told: Answer, version_text: str) -> str | None:
    """modinfo needs the running kernel's modules, which a container has not: there the loaded module's text says it."""
    if told.rc == 0 and told.text.strip():
        return told.text.strip()
    if "NVRM version" not in version_text:
        return None
    return "Dual MIT/GPL" if "Open Kernel Module" in version_text else "NVIDIA"


def on_disk(told: Answer) -> str | None:
    """The driver's version in the answer to `module-on-disk`; None: it is none."""
    word = told.text.strip()
    return word if told.rc == 0 and re.fullmatch(r"\d+\.\d+(\.\d+)?", word) else None


def _reboot_for(told: Answer) -> list[str]:
    return sorted({*told.text.split()}) if told.rc == 0 else []


def _variables(text: str) -> dict[str, str]:
    """systemd quotes values with odd characters as `$'...'`, /etc/environment with plain quotes."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().removeprefix("$").strip("'\"") for name, _, value in pairs}


def _matrix(answer: Answer) -> Matrix | None:
    try:
        return parse(answer.text) if answer.rc == 0 else None
    except CannotTellError:
        return None


def _disks(text: str) -> list[Disk]:
    rows = (line.split() for line in text.splitlines()[1:])
    found = {row[5]: Disk(row[5], int(row[1]), int(row[3])) for row in rows if len(row) == 6 and row[1].isdigit()}
    return list(found.values())


def _user(line: str) -> str:
    """A process that has a card open, as `PID COMMAND`, without secrets and not longer than a line."""
    pid, *words = line.strip().split("\t")
    return f"{pid} {' '.join(secrets.argv(words))}"[:120].strip()


def _servers(answer: Answer) -> list[Server]:
    """None where the machine has no Python to look with; SGLang would have brought one."""
    if answer.rc == 127:
        return []
    known = {field.name for field in fields(Server)}
    listed = json.loads(answer.expect(0, what="model servers that run"))
    return [Server(**{key: value for key, value in each.items() if key in known}) for each in listed]


def _apt(found: Mapping[str, Answer]) -> list[str]:
    if found["apt-check"].rc == 127:
        return ["there is no apt here"]
    errors = [line for line in found["apt-check"].text.splitlines() if line.startswith("E:")]
    audit = [line for line in found["dpkg-audit"].text.splitlines() if line.strip()][:1]
    held = [f"in use by: {line.strip()}" for line in found["apt-holders"].text.splitlines() if line.strip()]
    return [*errors, *audit, *held]
