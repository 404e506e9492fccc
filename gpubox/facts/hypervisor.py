"""What a hypervisor and one of its containers are like: everything that the passthrough step decides on."""

import re
import shlex

from typing_extensions import override

from gpubox.facts.answers import Answer, Fact, answers, script
from gpubox.hypervisor import cards, last_words, nodes
from gpubox.hypervisor.create import way_in_question
from gpubox.hypervisor.kinds import ABSENT, Kind, Name
from gpubox.hypervisor.state import Inside, PassthroughState, RunState
from gpubox.support.errors import CannotTellError, GpuboxError


class HypervisorState(Fact[PassthroughState]):
    """One composite fact: the hypervisor, and the container `container` of kind `kind` on it."""

    @override
    def command(self, kind: Name, container: str) -> str:
        return script(_questions(Kind(kind, container)))

    @override
    def process(self, output: list[str]) -> PassthroughState:
        found = answers(output)
        if found["program"].rc != 0:
            raise GpuboxError("the hypervisor lacks the programs of this kind of container", found["program"].text)
        config = found["config"].expect(0, ABSENT, what="container's configuration")
        state = _state(found["state"], config_there=found["config"].rc == 0)
        return PassthroughState(
            proc_devices=found["devices"].expect(0, what="/proc/devices"),
            nodes=nodes.parse(found["nodes"].expect(0, what="device nodes")),
            cards=cards.present(found["cards"].text, found["pci"].expect(0, what="PCI devices")),
            driver=_driver_version(found["driver"].text),
            cgroup="v1" if found["cgroup"].yes(what="/proc/self/cgroup") else "v2",
            config=config if found["config"].rc == 0 else None,
            state=state,
            inside=_inside(found["inside"]) if state == "running" else Inside(),
            unprivileged=bool(re.search(r"=\s*\S", found["idmap"].text)),
            unit=found["unit"].yes(what="systemd unit of the container", no=(1, 3, 4, 127)),
            may_raise_limits=bool(
                int(found["capabilities"].expect(0, what="/proc/self/status"), 16) >> _SYS_RESOURCE & 1
            ),
            last_words=found["last-words"].text,
            pve_container=tuple(int(part) for part in re.findall(r"\d+", found["version"].text.partition("-")[0])),
        )


class WayIn(Fact[bool]):
    """Whether the running container has sshd and accepts the key; False too when it does not run."""

    @override
    def command(self, kind: Name, container: str, public_key: str) -> str:
        return script({"way-in": shlex.join(Kind(kind, container).inside(way_in_question(public_key)))})

    @override
    def process(self, output: list[str]) -> bool:
        return answers(output)["way-in"].rc == 0


def _questions(kind: Kind) -> dict[str, str]:
    name, is_lxc = shlex.quote(kind.container), kind.name == "lxc"
    state = f"{kind.state_question} | tr A-Z a-z"
    program = {"lxc": "/usr/bin/lxc-attach", "proxmox": "/usr/sbin/pct", "incus": "/usr/bin/incus"}[kind.name]
    return {
        "settled": kind.settled_question,
        "program": f"[ -x {program} ] || {{ echo {program}; exit 1; }}",
        "devices": "cat /proc/devices",
        "nodes": nodes.LIST,
        "cards": "cat /proc/driver/nvidia/gpus/*/information",
        "pci": cards.LIST,
        "driver": "cat /proc/driver/nvidia/version",
        "cgroup": "grep -E '^[0-9]+:([^:]*,)?devices(,[^:]*)?:' /proc/self/cgroup",
        "config": kind.config_question,
        "state": kind.state_question,
        "idmap": f"/usr/bin/lxc-info -n {name} -c lxc.idmap" if is_lxc else "true",
        "unit": f"systemctl is-active --quiet lxc@{name}.service" if is_lxc else "exit 3",
        "capabilities": "sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status",
        "version": "dpkg-query -W -f '${Version}' pve-container" if kind.name == "proxmox" else "true",
        # a container that runs has none; this costs nothing then
        "last-words": f"case $({state}) in *running) ;; *) {last_words.question(kind)};; esac",
        "inside": f"case $({state}) in *running) {shlex.join(kind.inside(_LOOK))};; esac",
    }


def _state(answer: Answer, config_there: bool) -> RunState:
    if not config_there:
        return "absent"
    word = (answer.expect(0, what="state of the container").lower().split() or [""])[-1]
    if word not in {"running", "stopped"}:
        raise CannotTellError(f"the container is {word}", "running or stopped", "wait until it has settled; run again")
    return "running" if word == "running" else "stopped"


def _driver_version(text: str) -> str | None:
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.M)
    return found.group(1) if found else None


def _inside(answer: Answer) -> Inside:
    listing, _, rest = answer.expect(0, what="device nodes inside the container").partition("==\n")
    seen = {line.partition("|")[0]: line.partition("|")[2] for line in listing.splitlines()}
    present = {path: node for numbers in seen for path, node in nodes.parse(numbers).items()}
    messages = {numbers.split()[0]: message for numbers, message in seen.items()}
    denied = {path for path, message in messages.items() if "not permitted" in message or "denied" in message}
    memlock, toolkit, sockets = [*rest.split("\n", 2), "", ""][:3]
    listening = {int(port, 16) for port in re.findall(r"^\s*\d+: \S+:([0-9A-F]{4}) \S+ 0A ", sockets, re.M)}
    return Inside(present, frozenset(denied), memlock, tuple(sorted(listening - {22})), toolkit == "toolkit")


_SYS_RESOURCE = 24  # number of CAP_SYS_RESOURCE (capabilities(7))
# Opening is the only honest question: a node that is there may still be denied by the device cgroup (EPERM).
_LOOK = """LC_ALL=C; export LC_ALL; for n in /dev/nvidia* /dev/nvidia-caps/*; do [ -c "$n" ] || continue
m=$( { : <>"$n"; } 2>&1 ); printf '%s|%s\\n' "$(stat -c '%n %t %T %a' "$n")" "$m"; done; echo ==
sed -n 's/^Max locked memory *\\([^ ]*\\) .*/\\1/p' /proc/1/limits
f=/etc/nvidia-container-runtime/config.toml
[ -e $f ] && ! grep -qE '^[[:space:]]*no-cgroups[[:space:]]*=[[:space:]]*true' $f && echo toolkit || echo
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; true"""
