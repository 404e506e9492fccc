"""What the hypervisor says of the box's container and of its own nodes."""

from gpubox.doctor import surroundings
from gpubox.doctor.check import Check, compared
from gpubox.doctor.look import Looks
from gpubox.facts.hypervisor import HypervisorState
from gpubox.hosts import Box, Hypervisor
from gpubox.hypervisor import last_words, modules, nodes
from gpubox.onboard import probe


def check(above: Hypervisor, box: Box, looks: Looks, deploy: str) -> Check:
    """One line: the driver is loaded, its nodes are right, the container runs and may open them."""
    state = looks.fact(HypervisorState(), "container")
    minors = [card.minor for card in state.cards if card.minor is not None]
    if state.driver is None:
        cure = f"install or load the NVIDIA driver on {above.name}"
        return Check(box.name, "hypervisor", "fail", f"{above.name}: no driver is loaded", "one", cure)
    wrong = [f"{above.name}: {line}" for line in nodes.wrong(nodes.needed(state.proc_devices, minors), state.nodes)]
    if state.state == "stopped":
        reason = last_words.why(state.last_words)
        wrong.append(f"the container is stopped: {reason}" if reason else "the container is stopped")
        deploy = f"{deploy} (it starts the container)"
    elif state.state != "running":
        wrong.append(f"the container is {state.state}")
    wrong += [f"the container may not open {path}" for path in sorted(state.inside.denied) if "caps" not in path]
    wrong += [f"{above.name}: {line}" for line in surroundings.fabric_faults(looks, state.driver)]
    waits = modules.other_on_disk(state.driver, probe.on_disk(looks.answers["module-on-disk"]))
    if waits and not wrong:
        cure = f"reboot {above.name} at a time that suits; then {deploy} brings the libraries of that version"
        return Check(box.name, "hypervisor", "warn", f"{above.name}: {waits}", "one version", cure)
    right = f"{above.name}: driver {state.driver}, {len(minors)} cards, the container may open them"
    return compared(box.name, "hypervisor", wrong, right, deploy)
