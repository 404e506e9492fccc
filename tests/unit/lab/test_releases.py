"""Practice boxes of several Debian releases: what they stand on, and what the lab remembers of it."""

import json
from pathlib import Path

import pytest

from gpubox.lab import base, containers, paths, record
from gpubox.lab.record import Lab
from gpubox.lab.releases import DEFAULT, RELEASES

GROUND = base.Ground({"etc/pip.conf": "[global]\n"}, "http://deb.example/debian", overlay=True)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUBOX_LAB_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("release", "cgroups", "forced"),
    [
        ("bullseye", "v1", False),
        ("bookworm", "v1", False),
        ("trixie", "v1", True),
        ("trixie", "v2", False),
        ("trixie", "", False),
    ],
)
def test_systemd_of_debian_13_is_told_to_boot_on_cgroup_v1(release: str, cgroups: str, forced: bool) -> None:
    line = containers.init_line(release, cgroups)
    assert (line == "lxc.init.cmd = /sbin/init SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1") is forced
    assert (line == "") is not forced
    text = containers.box_lab([], line)
    assert ("lxc.init.cmd" in text) is forced


@pytest.mark.parametrize("release", list(RELEASES))
def test_a_box_without_python_311_gets_one_on_top(release: str) -> None:
    names = [recipe.name for recipe, _, _ in GROUND.box(release)]
    assert names == ["debian", "clients", *([] if RELEASES[release].has_python_311 else ["python-3.11"])]
    sources = GROUND.box(release)[0][0].files["etc/apt/sources.list.d/debian.sources"]
    assert f"Suites: {release} {release}-updates\n" in sources
    assert f"Suites: {release}-security\n" in sources


def test_releases_share_no_layer_and_none_is_taken_for_a_leftover() -> None:
    stacks = [set(GROUND.stack(GROUND.box(release)).layers) for release in RELEASES]
    assert len(set.union(*stacks)) == sum(map(len, stacks))
    assert set.union(*stacks) < GROUND.known()
    hypervisor = GROUND.stack(GROUND.hypervisor()).layers
    assert set(hypervisor[1:]) == set(GROUND.stack(GROUND.box(DEFAULT)).layers)


def test_boxes_keep_their_release_until_another_is_asked_for() -> None:
    record.save(record.wish(2, None))
    assert [record.wish(None, None).release(name) for name in ("gpu01", "gpu02")] == ["bookworm", "bookworm"]
    record.save(record.wish(None, None).of_release("trixie", "gpu02"))
    assert [record.wish(None, None).release(name) for name in ("gpu01", "gpu02")] == ["bookworm", "trixie"]
    record.save(record.wish(3, None, "bullseye"))
    assert set(record.wish(None, None).releases.values()) == {"bullseye"}
    assert record.wish(None, None, "bookworm").releases == {}


def test_a_box_stands_on_the_layers_of_its_release() -> None:
    lab = Lab(2, "x", ("clients-1", "debian-1"), layers_of_release={"trixie": ("python-2", "debian-2")})
    lab = lab.of_release("trixie", "gpu02")
    record.save(lab)
    found = record.read()
    assert found is not None
    assert [layer.name for layer in found.box_stack("gpu01").layers] == ["clients-1", "debian-1"]
    assert [layer.name for layer in found.box_stack("gpu02").layers] == ["python-2", "debian-2"]


def test_a_usual_labs_record_is_what_older_versions_read(state: Path) -> None:
    record.save(record.wish(1, None))
    written = json.loads((state / "lab.json").read_text())
    assert written.keys() == {"boxes", "hardware", "box_layers", "hypervisor_layers", "overlay"}
    assert paths.state() == state
