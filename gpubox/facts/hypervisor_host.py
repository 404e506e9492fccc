"""What a hypervisor itself is like: driver, device nodes, kernels, boot loader, links between cards."""

import re
from collections.abc import Sequence

from typing_extensions import override

from gpubox.driver import fabric, kernel_log
from gpubox.facts import files
from gpubox.facts.answers import Answer, Fact, answers, script
from gpubox.hypervisor import bars, boot, bus, cards, dkms, holders, modules, nodes, secure_boot
from gpubox.hypervisor.boot import BootFiles
from gpubox.hypervisor.dkms import NextBoot
from gpubox.hypervisor.state import NODES_UNIT, PERSISTENCE_UNIT, HypervisorHost, Unit


class HostState(Fact[HypervisorHost]):
    """One composite fact: the hypervisor, and what lies at `paths`."""

    @override
    def command(self, paths: Sequence[str]) -> str:
        return script({**_QUESTIONS, "files": files.question(paths)})

    @override
    def process(self, output: list[str]) -> HypervisorHost:
        found = answers(output)
        return HypervisorHost(
            proc_devices=found["devices"].expect(0, what="/proc/devices"),
            nodes=nodes.parse(found["nodes"].expect(0, what="device nodes")),
            cards=cards.present(found["cards"].text, found["pci"].expect(0, what="PCI devices")),
            slots=bus.parse(found["bus"].expect(0, what="cards on the bus")),
            driver_text=found["driver"].text,
            params=found["params"].text,
            licence=found["licence"].text.strip() or None,
            hmm=found["hmm"].text.strip() or None,
            options=found["options"].expect(0, 1, 2, what="modprobe.d"),
            users=int(found["users"].expect(0, what="processes that hold a card")),
            units=_units(found["units"].text),
            kernels=dkms.parse(found["kernels"].expect(0, what="installed kernels")),
            next_boot=_next_boot(found["running"].text, found["pin"].text, found["grub-default"].text),
            boot_files=_boot_files(found),
            command_line=found["cmdline"].expect(0, what="/proc/cmdline"),
            lspci=found["lspci"].text if found["lspci"].rc == 0 else None,
            aspm=found["aspm"].text,
            proxmox=found["proxmox"].yes("Proxmox"),
            bars=bars.parse(found["bars"].text),
            secure_boot=secure_boot.parse(found["secure-boot"].text),
            kernel_log=kernel_log.parse(found["kernel-log"].rc, found["kernel-log"].text),
            make_log=found["make-log"].text,
            nova=bool(found["nova"].text.strip()),
            files=files.parse(found["files"].expect(0, what="files").splitlines()),
            fabric=fabric.parse(found["fabric"].text),
            unheld=found["unheld"].text,
            on_disk=found["on-disk"].text.strip() or None,
        )


def _units(text: str) -> dict[str, Unit]:
    """From `systemctl show`: one paragraph a unit; a unit that is not there has an empty UnitFileState."""
    found = {}
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        values = dict(line.split("=", 1) for line in paragraph.splitlines() if "=" in line)
        if "Id" in values:
            stale = values.get("NeedDaemonReload") == "yes"
            found[values["Id"]] = Unit(values.get("UnitFileState", ""), values.get("ActiveState", ""), stale)
    return found


def _next_boot(running: str, pins: str, grub_default: str) -> NextBoot:
    pin = next(iter(pins.split()), "")
    found = re.findall(r"^\s*GRUB_DEFAULT=[\"']?([^\"'\n]*)", grub_default, re.M)
    return NextBoot(running.strip(), pin, found[-1].strip() if found else "0")


def _boot_files(found: dict[str, Answer]) -> BootFiles:
    def text(name: str) -> str | None:
        return found[name].text if found[name].rc == 0 else None

    return BootFiles(
        text("proxmox-boot"), found["grub"].rc == 0, text("kernel-cmdline"), text("ours"), found["marker"].rc == 0
    )


# pins: the one for the next boot alone comes first, since it wins. Kernels bring modules nvidiafb and nvidia-wmi-* of
# their own: only the driver has one for unified memory (nvidia-uvm; Debian: nvidia-current-uvm)
_QUESTIONS = {
    "devices": "cat /proc/devices",
    "nodes": nodes.LIST,
    "cards": "cat /proc/driver/nvidia/gpus/*/information",
    "pci": cards.LIST,
    "bus": bus.LIST,
    "driver": "cat /proc/driver/nvidia/version",
    "params": "cat /proc/driver/nvidia/params",
    "licence": "/sbin/modinfo -F license nvidia",
    "on-disk": modules.ON_DISK,
    "unheld": modules.UNHELD,
    "fabric": fabric.QUESTION,
    "hmm": "cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm",
    "options": "grep -HsE '^[[:space:]]*options[[:space:]]+nvidia' /etc/modprobe.d/*.conf /lib/modprobe.d/*.conf",
    "users": "find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null | cut -d/ -f3 | sort -u | wc -l",
    "units": f"systemctl show -p Id,UnitFileState,ActiveState,NeedDaemonReload {NODES_UNIT} {PERSISTENCE_UNIT}",
    "kernels": """for k in /lib/modules/*; do [ -d "$k" ] || continue; v=${k##*/}; i=0; h=0; m=0
[ ! -e "/boot/vmlinuz-$v" ] || i=1; [ ! -e "$k/build/Makefile" ] || h=1
[ -z "$(find "$k" -name 'nvidia*uvm.ko*' -print -quit)" ] || m=1; echo "$v $i $h $m"; done""",
    "running": "uname -r",
    "pin": "cat /etc/kernel/next-boot-pin /etc/kernel/proxmox-boot-pin",
    "grub-default": "cat /etc/default/grub /etc/default/grub.d/*.cfg",
    "proxmox-boot": "[ -s /etc/kernel/proxmox-boot-uuids ] && /usr/sbin/proxmox-boot-tool status 2>&1",
    "grub": "[ -d /boot/grub ] && [ -x /usr/sbin/update-grub ]",
    "kernel-cmdline": f"cat {boot.CMDLINE_FILE}",
    "ours": f"cat {boot.GRUB_FILE}",
    "marker": f"[ -e {boot.MARKER} ]",
    "cmdline": "cat /proc/cmdline",
    "lspci": "lspci -vvv",
    "aspm": "cat /sys/module/pcie_aspm/parameters/policy",
    "proxmox": "[ -x /usr/sbin/pct ]",
    "bars": bars.QUESTION,
    "secure-boot": secure_boot.QUESTION,
    "kernel-log": kernel_log.QUESTION,
    "nova": holders.KNOWN_QUESTION,
    # DKMS keeps the log of a build there only while the build has not ended well
    "make-log": "for f in /var/lib/dkms/nvidia*/*/build/make.log; do [ ! -e $f ] || { echo $f; tail -n 400 $f; }; done",
}
