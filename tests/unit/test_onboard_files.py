"""What onboarding writes: new files in people's own style, and lines more in files that are there."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gpubox import inventory
from gpubox.onboard import files
from gpubox.support.errors import GpuboxError

BOX: tuple[str, dict[str, Any]] = (
    "gpu-z",
    {
        "ssh_hostname": "192.0.2.9",
        "hypervisor": "pve",
        "container": {"kind": "proxmox", "name": "109"},
        "profile": "tiny-cpu",
        "cuda": {"source": {"uri": "http://mirror.example/cuda/debian12/x86_64/", "keyring": "/srv/cuda-keyring.deb"}},
    },
)
ABOVE: tuple[str, dict[str, Any]] = ("pve", {"ssh_hostname": "192.0.2.1", "kind": "proxmox"})


def written(path: Path, change: files.Change | None) -> str:
    assert change is not None
    files.write(change)
    return path.read_text()


def test_a_new_inventory_is_one_that_the_deploy_reads(tmp_path: Path) -> None:
    path = tmp_path / "box.py"
    written(path, files.inventory_with(path, BOX, ABOVE, "A box."))
    found = inventory.load(path)
    assert found.box("gpu-z").address == "192.0.2.9"
    assert found.hypervisors["pve"].settings.kind == "proxmox"
    assert [box.name for box in found.hypervisors["pve"].boxes] == ["gpu-z"]


@pytest.mark.parametrize("above", [ABOVE, None])
def test_it_is_formatted_as_this_repository_formats(tmp_path: Path, above: tuple[str, dict[str, Any]] | None) -> None:
    path = tmp_path / "box.py"
    written(path, files.inventory_with(path, BOX, above, "A box."))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ruff"), "format", "--line-length", "120", "--diff", str(path)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_second_writing_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "box.py"
    written(path, files.inventory_with(path, BOX, ABOVE, "A box."))
    assert files.inventory_with(path, BOX, ABOVE, "A box.") is None


def test_values_that_stand_there_are_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "box.py"
    written(path, files.inventory_with(path, BOX, ABOVE, "A box."))
    other = (BOX[0], {**BOX[1], "ssh_hostname": "192.0.2.77"})
    assert files.inventory_with(path, other, ABOVE, "A box.") is None


def test_a_box_more_keeps_comments_and_order(tmp_path: Path) -> None:
    path = tmp_path / "boxes.py"
    before = (
        '"""Ours."""\n\nfrom gpubox.inventory import checked\n\ngpu_boxes = [\n'
        '    ("gpu-b", {"ssh_hostname": "192.0.2.21", "profile": "tiny-cpu"}),  # old\n]\n\nchecked(globals())\n'
    )
    path.write_text(before)
    text = written(path, files.inventory_with(path, BOX, ABOVE, ""))
    kept = [line for line in before.splitlines() if line not in text.splitlines()]
    assert kept == []
    assert list(inventory.load(path).boxes) == ["gpu-b", "gpu-z"]
    assert list(inventory.load(path).hypervisors) == ["pve"]


def test_a_list_on_one_line_is_left_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "boxes.py"
    path.write_text('gpu_boxes = [("gpu-b", {"ssh_hostname": "192.0.2.21", "profile": "tiny-cpu"})]\n')
    with pytest.raises(GpuboxError, match="add by hand"):
        files.inventory_with(path, BOX, None, "")


def test_a_diff_shows_what_comes_and_no_secret(tmp_path: Path) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80)
    path = tmp_path / "a"
    path.write_text("one\ntwo [bold]\n")
    files.diff(files.Change(path, "one\nthree\n"), console)
    files.diff(files.Change(tmp_path / "key", "hunter2\n", 0o600, secret=True), console)
    text = out.getvalue()
    assert "-two [bold]\n+three" in text
    assert "hunter2" not in text


def test_a_secret_is_for_its_owner_alone(tmp_path: Path) -> None:
    change = files.Change(tmp_path / "s" / "key", "hunter2\n", 0o600, secret=True)
    files.write(change)
    assert change.path.stat().st_mode & 0o777 == 0o600
    assert change.path.parent.stat().st_mode & 0o777 == 0o700
    assert [p.name for p in change.path.parent.iterdir()] == ["key"]
