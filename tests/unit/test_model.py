"""A model's folder: what is seen of it, through a real shell, and what is done about it."""

import re
import subprocess
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.command import FileUploadCommand, FunctionCommand

from gpubox.facts.model import MARKER, Model, ModelState
from gpubox.operations.model import made, present
from gpubox.support.owned_file import OwnedFile

RECIPE = OwnedFile("/recipes/tiny.py", "print()")
DIGEST = sha256(b"print()").hexdigest()


def seen(path: Path) -> ModelState:
    done = subprocess.run(
        ["/bin/sh", "-c", Model().command(path=str(path))], capture_output=True, text=True, check=True
    )
    return Model().process(done.stdout.splitlines())


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", "-").replace("_", ".")).write_text(text)
    return folder


def test_absent_and_one_file(tmp_path: Path) -> None:
    assert seen(tmp_path / "nothing") == ModelState(exists=False)
    (tmp_path / "model.gguf").write_text("x")
    assert seen(tmp_path / "model.gguf") == ModelState(exists=True)


@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        ({"config_json": "{}", "model_safetensors": "x"}, []),
        ({"config_json": "{}", "pytorch__model_bin": "x"}, []),
        ({"config_json": "{}"}, ["*.safetensors"]),
        ({"model_safetensors": "x"}, ["config.json"]),
        ({"config_json": "{}", "model_safetensors": ""}, ["*.safetensors"]),
        (
            {
                "config_json": "{}",
                "a_safetensors": "x",
                "b_safetensors": "",
                "model_safetensors_index_json": '{"weight_map": {"w.0": "a.safetensors", "w.1": "b.safetensors",\n'
                '"w.2": "c.safetensors", "w.3": "a.safetensors"}}',
            },
            ["b.safetensors", "c.safetensors"],
        ),
    ],
)
@pytest.mark.pain("P70")
def test_what_a_folder_lacks(tmp_path: Path, files: dict[str, str], lacks: list[str]) -> None:
    assert seen(write(tmp_path / "it's a model", **files)) == ModelState(exists=True, lacks=lacks)


def test_a_hub_snapshot_is_links(tmp_path: Path) -> None:
    blobs = write(tmp_path / "blobs", config_json="{}", model_safetensors="x")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for blob in blobs.iterdir():
        (snapshot / blob.name).symlink_to(blob)
    assert seen(snapshot) == ModelState(exists=True)


def made_by_hand(folder: Path) -> Path:
    write(folder, config_json="{}", model_safetensors="x")
    sums = subprocess.run(
        ["sha256sum", *sorted(f.name for f in folder.iterdir())], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    (folder / MARKER).write_text(f"{DIGEST}\n{sums}")
    return folder


@pytest.mark.parametrize(
    ("damage", "state"),
    [
        (lambda _: None, ModelState(exists=True, recipe=DIGEST)),
        (lambda f: (f / "model.safetensors").write_text("y"), ModelState(exists=True, recipe=DIGEST, damaged=True)),
        (
            lambda f: (f / "config.json").unlink(),
            ModelState(exists=True, lacks=["config.json"], recipe=DIGEST, damaged=True),
        ),
    ],
)
def test_a_made_model(tmp_path: Path, damage: Callable[[Path], object], state: ModelState) -> None:
    folder = made_by_hand(tmp_path / "model")
    damage(folder)
    assert seen(folder) == state


def texts(commands: Iterable[Any]) -> list[str]:
    raw = [each.args[0] if isinstance(each, FunctionCommand) else each for each in commands]
    return [each.dest if isinstance(each, FileUploadCommand) else each.get_raw_value() for each in raw]


def making(state: ModelState) -> list[str]:
    return texts(made._inner("/m/tiny", RECIPE, "/env/bin/python", lambda: state))


def test_a_whole_model_is_left() -> None:
    assert making(ModelState(exists=True, recipe=DIGEST)) == []


@pytest.mark.parametrize(
    ("state", "away"),
    [
        (ModelState(exists=False), r"rm -rf /m/tiny"),
        (ModelState(exists=True, recipe="another"), r"rm -rf /m/tiny"),
        (ModelState(exists=True, recipe=DIGEST, damaged=True), r"rm -rf /m/tiny"),
        (ModelState(exists=True), r"mv -T /m/tiny /m/tiny\.old-\d{8}T\d{6}Z"),
    ],
)
def test_a_model_is_made_beside_and_swapped(state: ModelState, away: str) -> None:
    commands = making(state)
    assert "/recipes/tiny.py.gpubox-new" in commands
    make, swap = commands[-2:]
    assert "/env/bin/python /recipes/tiny.py /m/tiny.gpubox-new" in make
    assert re.fullmatch(away + r" && mv -T /m/tiny\.gpubox-new /m/tiny", swap)


def test_a_model_that_is_there() -> None:
    assert texts(present._inner("/m", lambda: ModelState(exists=True))) == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (ModelState(exists=False), "/m is not on this box"),
        (ModelState(exists=True, lacks=["a", "b"]), "/m lacks a, b"),
    ],
)
def test_a_model_that_must_be_there(state: ModelState, said: str) -> None:
    (command,) = texts(present._inner("/m", lambda: state))
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{said}\n  needed: ")
