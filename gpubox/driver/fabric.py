"""The fabric manager: on machines whose cards hang on NVSwitches, in exactly the driver's version,
and nowhere else.

Until it has set up the switches, CUDA gives error 802 (system not yet initialized) while nvidia-smi
is fine. It refuses a driver of any other version (gpu-operator#544), and on a machine without
switches it ends with NV_WARN_NOTHING_TO_DO (gpu-operator#610). From NVLink 5 on (HGX B200) the
switches are no PCI devices: they are reached through ConnectX-7 bridges whose product data say
SW_MNG, with nvlsm, mlx5_ib and ib_umad; without, the cards stay "In Progress".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubox.driver.packages import FABRIC_MANAGER, upstream
from gpubox.support.reading import reader

UNIT = "nvidia-fabricmanager.service"
PACKAGES = FABRIC_MANAGER
"""Ubuntu's name, also NVIDIA's for older branches; and NVIDIA's for newer ones. The one that is
on offer is taken."""
SUBNET_MANAGER = "nvlsm"
MODULES = ("mlx5_ib", "ib_umad")
MODULES_FILE = "/etc/modules-load.d/gpubox-fabric.conf"
MODULES_TEXT = "# written by gpubox: the fabric manager reaches the NVLink switches by these\n" + "".join(
    f"{name}\n" for name in MODULES
)
_NAME = re.compile(r"nvidia-fabricmanager(-\d{3})?|nvidia-fabric-manager")

QUESTION = r"""held() { case $(readlink "$1/driver") in */vfio-pci) return 0 ;; esac; return 1; }
for d in /sys/bus/pci/devices/*; do v=; c=
{ read -r v <"$d/vendor"; read -r c <"$d/class"; } 2>/dev/null
case $v$c in 0x10de0x0680*) held "$d" || echo kind nvswitch ;; esac; done | sort -u
if grep -qsE '^Model:.* G?B[123]00' /proc/driver/nvidia/gpus/*/information; then
for d in /sys/bus/pci/devices/*; do read -r v <"$d/vendor"; [ "$v" = 0x15b3 ] && [ -r "$d/vpd" ] || continue
! grep -qa SW_MNG "$d/vpd" || held "$d" || echo kind nvlink5; done | sort -u; fi
for m in mlx5_ib ib_umad; do [ ! -e "/sys/module/$m" ] || echo "module $m"; done
echo "version $(nv-fabricmanager --version 2>/dev/null | sed -n 's/.*version is *: *//p')"
systemctl show -p LoadState,UnitFileState,ActiveState nvidia-fabricmanager.service"""
"""Shell text whose output `parse` reads; a switch that vfio-pci holds is a virtual machine's. PCI
files are read by the shell itself: a program for each costs 0.4 s."""
STATES = r"nvidia-smi -q | sed -n '/^ *Fabric$/,/^ *Status/{s/^ *\(State\|Status\) *: */\1=/p}'"
"""Shell text: for each card `State=` and `Status=` of its way into the fabric (`N/A`: it has
none)."""


@dataclass(frozen=True)
class Fabric:
    """What a machine has of NVSwitches and of what sets them up."""

    kind: str = ""
    """`nvswitch` (up to H200), `nvlink5` (from B200 on); empty: no switches, so no fabric
    manager."""
    modules: frozenset[str] = frozenset()
    """Those of MODULES that are loaded."""
    version: str = ""
    """Of the program that is there; empty: none."""
    loaded: bool = False
    """systemd has its unit."""
    enabled: bool = False
    active: bool = False

    @property
    def lacks_modules(self) -> list[str]:
        """Modules without which its cards stay `In Progress`."""
        return [name for name in MODULES if name not in self.modules] if self.kind == "nvlink5" else []


@reader("the fabric manager")
def parse(text: str) -> Fabric:
    """What QUESTION printed."""
    lines = [line.strip() for line in text.splitlines()]
    words = [line.split() for line in lines if " " in line]
    unit = dict(line.split("=", 1) for line in lines if "=" in line)
    kinds = {row[1] for row in words if row[0] == "kind"}
    return Fabric(
        kind="nvlink5" if "nvlink5" in kinds else "nvswitch" if kinds else "",
        modules=frozenset(row[1] for row in words if row[0] == "module"),
        version=next((row[1] for row in words if row[0] == "version"), ""),
        loaded=unit.get("LoadState") == "loaded",
        enabled=unit.get("UnitFileState") == "enabled",
        active=unit.get("ActiveState") == "active",
    )


def is_package(name: str) -> bool:
    """Whether a package holds the fabric manager itself (not its headers)."""
    return bool(_NAME.fullmatch(name))


def choose(offers: Mapping[str, Sequence[str]], module: str) -> tuple[str, str] | None:
    """Package and version of the fabric manager for a driver, of those that apt offers; None:
    there is none."""
    for name in (one.format(major=module.partition(".")[0]) for one in PACKAGES):
        for version in offers.get(name, ()):
            if upstream(version) == module:
                return name, version
    return None


def wrong(fabric: Fabric, module: str | None, states: str = "") -> list[str]:
    """Why CUDA may give 802 on the machine that has the driver, most telling first; empty: nothing
    is seen.

    + module: version of the loaded kernel module
    + states: what STATES printed
    """
    found = [*_manager(fabric, module), *_registration(states)]
    if fabric.lacks_modules:
        found.append(f"{' and '.join(fabric.lacks_modules)} not loaded, by which it reaches the switches")
    return found


def _manager(fabric: Fabric, module: str | None) -> list[str]:
    if not fabric.kind:
        return []
    found = []
    if not fabric.version and not fabric.loaded:
        found.append("there are NVSwitches and no fabric manager")
    elif fabric.version and module and fabric.version != module:
        found.append(f"the fabric manager is {fabric.version}, the kernel module {module}: it takes no other version")
    if fabric.loaded and not fabric.active:
        found.append(f"{UNIT} does not run")
    return found


def _registration(states: str) -> list[str]:
    """How many cards are in which state; `Completed` and `Success`, and a card without a fabric,
    are right."""
    pairs = re.findall(r"State=(.*)\nStatus=(.*)", states)
    wrong_ones = [(state.strip(), status.strip()) for state, status in pairs if not _is_right(state, status)]
    counted = {pair: wrong_ones.count(pair) for pair in dict.fromkeys(wrong_ones)}
    return [
        f"{number} of {len(pairs)} cards: fabric state {state}" + ("" if status in _NO_STATUS else f", {status}")
        for (state, status), number in counted.items()
    ]


_NO_STATUS = {"N/A", "[N/A]", "Success", ""}
_NO_FABRIC = {"N/A", "[N/A]", "Not Supported", "Not supported"}


def _is_right(state: str, status: str) -> bool:
    state, status = state.strip(), status.strip()
    return state in _NO_FABRIC or (state == "Completed" and status in _NO_STATUS)
