"""What waits for a person: a reload, a reboot, something that this tool reports and does not change."""

from gpubox.apt import explain
from gpubox.driver import fabric, kernel_log
from gpubox.driver import packages as driver
from gpubox.hypervisor import bars, boot, bus, dkms, holders, links, modules, secure_boot
from gpubox.hypervisor.state import HypervisorHost
from gpubox.settings.host import HypervisorSettings


def pending(found: HypervisorHost, wish: HypervisorSettings) -> list[str]:
    """What is written and not yet live, the most urgent first. Empty: the machine runs as its data says."""
    version = driver.module_version(found.driver_text)
    module = bool(found.driver_text) or any(kernel.module for kernel in found.kernels)
    held = {card.pci: card.driver for card in found.cards if card.driver not in {None, "nvidia", "vfio-pci"}}
    lines = [
        *bus.gone(found.slots),
        *(f"{line}; nothing is to be restarted into it" for line in kernel_log.recovery(found.kernel_log.events)),
        *(f"card {pci} is held by {holder}: {holders.cure(holder or '')}" for pci, holder in held.items()),
        *fabric.wrong(found.fabric, version),
        secure_boot.warning(found.secure_boot, module),
        *(f"{line}; {bars.CURE}" for line in bars.odd(found.bars)),
        modules.closed_modules(found.driver_text, found.licence, found.cards),
        modules.pending_reload(found.hmm, wish.uvm_disable_hmm, found.users),
        modules.tight_nodes(found.params, found.options),
        *modules.conflicts(found.options, wish.uvm_disable_hmm),
    ]
    if module:  # else a reboot loses nothing
        lacking = dkms.warnings(found.kernels, found.next_boot, "proxmox" if found.proxmox else "debian")
        lines += lacking
        if lacking and (reason := explain.make_log(found.make_log)):
            lines.append(f"the last build of the nvidia module failed: {reason}")
    if absent := boot.missing(found.command_line, wish.kernel_command_line):
        lines.append(f"pending reboot: the running kernel was started without {' '.join(absent)}")
    return [line for line in lines if line]


def advice(found: HypervisorHost) -> list[str]:
    """What may slow, break or lose cards here; nothing is changed unless kernel_command_line asks for it."""
    ours = {card.pci for card in found.cards if card.minor is not None}
    unheld = modules.unheld(found.unheld, driver.module_version(found.driver_text))
    lines = [*bus.at_risk(found.slots), *([unheld] if unheld else [])]
    iommu = {slot.pci: slot.iommu for slot in found.slots if slot.pci in ours}
    if len(iommu) < 2:
        return lines
    between = links.findings(iommu, found.lspci, found.aspm, found.command_line)
    return [*lines, *(f"for peer-to-peer copies: {line}" for line in between)]
