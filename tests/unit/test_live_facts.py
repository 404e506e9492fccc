"""What a hypervisor's kernel log asks for, for the cards of one of its boxes."""

import base64

import pytest

from gpubox.facts.live import MachineLog

ASKS = "NVRM: Xid (PCI:0000:{}:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n"
INFORMATION = "".join(
    f"Model: \t NVIDIA H200\nGPU UUID: \t GPU-{n}\nBus Location: \t 0000:0{n}:00.0\nDevice Minor: \t {n}\n"
    for n in (1, 2)
)


def answered(name: str, text: str, code: int = 0) -> str:
    return f"{name} {base64.b64encode(f'{text}{chr(10)}{code}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("log", "code", "gpus", "count"),
    [
        (ASKS.format("01"), 0, "all", 1),
        (ASKS.format("01"), 0, [0], 1),
        (ASKS.format("02"), 0, [0], 0),
        (ASKS.format("02"), 0, [9], 1),
        ("", 0, "all", 0),
        ("dmesg: Operation not permitted", 1, "all", None),
    ],
)
@pytest.mark.pain("P91")
def test_of_the_boxs_own_cards(log: str, code: int, gpus: object, count: int | None) -> None:
    lines = [answered("cards", INFORMATION), answered("pci", ""), answered("log", log, code)]
    found = MachineLog().process(lines).recovery(gpus)  # type: ignore[arg-type]  # as inventories write it
    assert (None if found is None else len(found)) == count
