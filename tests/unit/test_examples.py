"""The inventories that ship are clean: what a newcomer copies must pass the check."""

from pathlib import Path

import pytest

from gpubox import inventory, rules
from gpubox.support import paths


@pytest.mark.parametrize("path", sorted((paths.root() / "inventory").glob("*.py")), ids=lambda p: p.name)
def test_a_shipped_inventory_passes_the_check(path: Path) -> None:
    found = inventory.load(path)
    assert found.boxes
    assert [f for box in found.boxes.values() for f in rules.check(box) if f.severity in {"error", "unknown"}] == []
