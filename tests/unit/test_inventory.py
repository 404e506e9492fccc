"""The inventory: names to settings, and every mistake in one message, before a host is touched."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpubox import inventory
from gpubox.support import paths
from gpubox.support.errors import GpuboxError

GOOD = """
hypervisors = [("pve", {"ssh_hostname": "10.0.0.1"})]
gpu_boxes = [
    ("a", {"hypervisor": "pve", "container": {"name": "101"}, "profile": "tiny-cpu", "ssh_hostname": "10.0.0.2"}),
    ("b", {"profile": "tiny-cpu"}),
]
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "inventory.py"
    file.write_text(GOOD)
    return file


def test_boxes_and_hypervisors_find_each_other(written: Path) -> None:
    found = inventory.load(written)
    assert [box.name for box in found.hypervisors["pve"].boxes] == ["a"]
    assert found.box("a").address == "10.0.0.2"
    assert found.box("b").address == "b"
    assert found.box("b").stack.name == found.box("b").profile.stack


def test_group_data_stand_below_the_hosts_own(written: Path) -> None:
    (written.parent / "group_data").mkdir()
    (written.parent / "group_data" / "gpu_boxes.py").write_text('venv_path = "/opt/a"\nprofile = "no-such"\n')
    found = inventory.load(written)
    assert found.box("a").settings.venv_path == "/opt/a"
    assert found.box("a").profile.name == "tiny-cpu"


@pytest.mark.pain("P94")
def test_limits_of_cards_stand_where_the_driver_is(written: Path) -> None:
    text = written.read_text()
    written.write_text(
        text.replace('"10.0.0.1"}', '"10.0.0.1", "card_limits": {"all": {"power_w": 450}}}').replace(
            '("b", {', '("b", {"card_limits": {"all": {"power_w": 300}}, '
        )
    )
    found = inventory.load(written)
    assert {name: found.box(name).card_limits["all"].power_w for name in ("a", "b")} == {"a": 450, "b": 300}
    assert found.hypervisors["pve"].boxes == (found.box("a"),)
    written.write_text(text.replace('"101"}', '"101"}, "card_limits": {"all": {"power_w": 450}}'))
    with pytest.raises(GpuboxError, match="a: card_limits in the data of a container"):
        inventory.load(written).box("a")


FILES = [["all"], ["all", "gpu_boxes"], ["named"], ["all", "gpu_boxes", "named"], ["all", "rack"]]
TEXTS = [
    'gpu_boxes = [("a", {"venv_path": "/own"}), "b"]',
    'gpu_boxes = (["a", ("b", {"ssh_user": "own"})], {"venv_path": "/shared", "ssh_user": "shared"})',
    'gpu_boxes = ["a", "b"]\nrack = (["a"], {"venv_path": "/rack"})',
    'rack = (["a"], {"venv_path": "/rack"})\ngpu_boxes = (["a", "b"], {"venv_path": "/shared"})',
    'gpu_boxes = ["a", "b"]\nall = (["a", "b"], {"venv_path": "/all"})',
    'gpu_boxes = ["a", "b"]\nnamed = (["b"], {"venv_path": "/named"})',
]
ASK_PYINFRA = """
import json, sys
from pyinfra_cli.inventory import make_inventory_from_files
from pyinfra.api import Config, State
from pyinfra.context import ctx_config, ctx_state
ctx_state.set(State())
ctx_config.set(Config())
found = [{host.name: host.data.dict() for host in make_inventory_from_files(file, cwd=".")} for file in sys.argv[1:]]
print(json.dumps(found))
"""


def test_data_are_merged_as_pyinfra_merges_them(tmp_path: Path) -> None:
    written = []
    for number, (text, files) in enumerate(itertools.product(TEXTS, FILES)):
        (folder := tmp_path / str(number) / "group_data").mkdir(parents=True)
        for name in files:
            (folder / f"{name}.py").write_text(f'venv_path, ssh_user, profile = "/{name}", "{name}", "tiny-cpu"\n')
        written.append(folder.parent / "named.py")
        written[-1].write_text(f"{text}\n")
    argv = [sys.executable, "-c", ASK_PYINFRA, *map(str, written)]
    asked = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=paths.root())
    for file, theirs in zip(written, json.loads(asked.stdout), strict=True):
        ours = inventory.read(file).boxes
        found = {name: (box.settings.venv_path, box.connection.get("ssh_user")) for name, box in ours.items()}
        wanted = {n: (d["venv_path"], d.get("ssh_user")) for n, d in theirs.items() if "profile" in d}
        assert found == wanted, file.read_text()


def test_an_unknown_box_names_the_known_ones(written: Path) -> None:
    with pytest.raises(GpuboxError, match="one of: a, b"):
        inventory.load(written).box("c")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"profile": "tiny-cpu", "ssh', '"profile": "tiny", "ssh', "did you mean tiny-cpu?"),
        ('"hypervisor": "pve", ', '"hypervisor": "pvee", ', "no hypervisor 'pvee'"),
        ('"hypervisor": "pve", ', "", "only one of hypervisor and container"),
        ('"profile": "tiny-cpu"})', '"profile": "tiny-cpu", "vram": 1})', "vram: unknown key"),
        ("gpu_boxes", "gpus", "a, b in neither gpu_boxes nor hypervisors"),
        ("gpu_boxes = [", "gpu_boxes = [1/0,", "ZeroDivisionError"),
        ("gpu_boxes = [", "import sys; sys.exit(3)\ngpu_boxes = [", "SystemExit: 3"),
        (GOOD, "", "no host in it"),
        (GOOD, "gpu_boxes = []", "no host in it"),
        (GOOD, "gpu_boxes = 'abc'", "gpu_boxes is 'abc'"),
        (GOOD, "gpu_boxes = {'a': {'profile': 'tiny-cpu'}}", "gpu_boxes is {"),
        (GOOD, "gpu_boxes = [('a', {}, 3)]", "gpu_boxes holds ('a', {}, 3)"),
        (GOOD, "gpu_boxes = [('a', 'tiny-cpu')]", "gpu_boxes holds ('a', 'tiny-cpu')"),
        (GOOD, "gpu_boxes = [('a', None)]", "gpu_boxes holds ('a', None)"),
        (GOOD, "gpu_boxes = [5]", "gpu_boxes holds 5"),
        (GOOD, "gpu_boxes = (['a'], 5)", "gpu_boxes is (['a'], 5)"),
        (GOOD, "gpu_boxes = [('a', {5: 1, 'profile': 'tiny-cpu'})]", "a key that is 5 (int)"),
        ('("b", {', '("a", {', "gpu_boxes: a stands there twice"),
        ('("b", {', '("pve", {', "pve in gpu_boxes and in hypervisors"),
        ('("b", {', '("b", {"hypervisor": "pve", "container": {"name": "101"}, ', "a and b are both container 101"),
    ],
)
def test_mistakes(written: Path, old: str, new: str, told: str) -> None:
    written.write_text(GOOD.replace(old, new))
    with pytest.raises(GpuboxError) as error:
        inventory.load(written)
    assert told in error.value.message
    assert str(written) in error.value.message


def test_a_mistake_keeps_what_is_needed_and_what_to_do_and_names_its_host(written: Path) -> None:
    written.write_text(GOOD.replace('"tiny-cpu"})', '"tiny"})'))
    (problem,) = inventory.read(written).problems
    assert problem.host == "b"
    assert problem.found == f"{written}: b: no profile named 'tiny' below {paths.profiles()}"
    assert "tiny-cpu" in problem.needed
    assert problem.todo == "did you mean tiny-cpu?"


def test_all_mistakes_come_at_once(written: Path) -> None:
    wrong = GOOD.replace("tiny-cpu", "tiny").replace('"pve", {', '"pve", {"color": 1,')
    written.write_text(f'{wrong}gpu_boxes += [5, "a"]\nmore = ["c"]\n')
    # two boxes and the hypervisor; what is no host, a host twice, and one in no group
    assert len(inventory.read(written).problems) == 6


def test_yaml_beside_group_data_is_an_error(written: Path) -> None:
    (written.parent / "group_data").mkdir()
    (written.parent / "group_data" / "all.yaml").write_text("venv_path: /x")
    with pytest.raises(GpuboxError, match=r"all\.yaml"):
        inventory.load(written)


def test_pyinfra_stops_before_it_connects(written: Path) -> None:
    wrong = GOOD.replace("tiny-cpu", "tiny")
    written.write_text(f"from gpubox.inventory import checked\n{wrong}\nchecked(globals())\n")
    command = [str(Path(sys.executable).parent / "pyinfra"), "-y", str(written), "deploy.py"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYINFRA_PROGRESS": "off"})
    assert done.returncode == 1
    assert "no profile named 'tiny'" in done.stderr
    assert "Connecting" not in done.stderr
    assert "Traceback" not in done.stderr
