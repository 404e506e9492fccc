"""What lies between the cards: IOMMU, ACS, power states, judged against what peer-to-peer copies need.

Evidence: tinygrad/open-gpu-kernel-modules#18 and NVIDIA/nccl#257 (an IOMMU that translates: zeroed copies),
NVIDIA/nccl#2079 (ACS on bridges: NCCL hangs at its start). Containers need no IOMMU; a VM does.
"""

import re
from collections.abc import Mapping

_DIRECT = {"identity", "off"}
_REDIRECTS = ("ReqRedir+", "CmpltRedir+")


def redirecting(lspci: str) -> list[str]:
    """Addresses of the bridges whose ACS control sends peer-to-peer traffic up to the root (text of `lspci -vvv`)."""
    found = []
    for block in re.split(r"\n(?=\S)", lspci):
        control = re.search(r"ACSCtl:(.*)", block)
        if control and any(flag in control.group(1) for flag in _REDIRECTS):
            found.append(block.split(maxsplit=1)[0])
    return found


def findings(iommu: Mapping[str, str], lspci: str | None, aspm: str, command_line: str) -> list[str]:
    """One line for each thing that may break or slow copies between cards; `lspci` None: it could not be asked."""
    lines = []
    translated = sorted(address for address, kind in iommu.items() if kind not in _DIRECT)
    if translated:
        lines.append(
            f"the IOMMU translates what cards write ({', '.join(f'{a}: {iommu[a]}' for a in translated)}): "
            "peer-to-peer copies may come out as zeros; kernel_command_line iommu=pt"
        )
    if lspci is None:
        lines.append("ACS cannot be told: lspci is not there (apt install pciutils), or fails")
    elif bridges := redirecting(lspci):
        lines.append(
            f"ACS redirects peer-to-peer traffic at {', '.join(bridges)}: slow, and NCCL may hang at its start; "
            "disable ACS in the firmware, or clear it on these bridges after each boot"
        )
    if "pcie_aspm=off" not in command_line.split() and "[performance]" not in aspm and aspm:
        lines.append(
            f"PCIe power saving is on (policy {aspm.strip()}): where links go down by surprise, "
            "kernel_command_line pcie_aspm=off"
        )
    return lines
