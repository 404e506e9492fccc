"""The catalogue: what was read from the wheels is what stands in it, and lookups answer as SGLang's parser would."""

import json
from pathlib import Path

import pytest

from gpubox import catalog
from gpubox.catalog import extract, release
from gpubox.catalog.wheel import Wheel, fetch
from gpubox.server import patches
from gpubox.support.errors import GpuboxError

# Independently read off the releases by people; gates by name of the file that holds them.
GATES = {
    "0.5.9": ("gated", "model_runner.py"),
    "0.5.10": ("gated", "model_runner.py"),
    "0.5.12.post1": ("gated", "model_runner.py"),
    "0.5.13": ("open", "model_runner.py"),
    "0.5.14": ("open", "base_runner.py"),
    "0.5.15": ("open", "flashinfer_autotune.py"),
    "0.5.23": ("open", "flashinfer_autotune.py"),
}
PINS = {
    "0.5.9": ("2.9.1", "0.6.3", "4.57.1", "sgl-kernel"),
    "0.5.10": ("2.9.1", "0.6.7.post2", "5.3.0", "sglang-kernel"),
    "0.5.12": ("2.11.0", "0.6.11.post1", "5.6.0", "sglang-kernel"),
    "0.5.13": ("2.11.0", "0.6.12", "5.8.1", "sglang-kernel"),
    "0.5.19": ("2.13.0", "0.6.18", "5.12.1", "sglang-kernel"),
    "0.5.23": ("2.14.1", "0.7.2", "5.19.0", "sglang-kernel"),
}


@pytest.mark.parametrize("version", release.versions())
def test_a_release_stands_in_the_form_that_the_reader_writes(version: str) -> None:
    path = release.FOLDER / f"{version}.json"
    assert release.dumped(release.load(version)) == path.read_text()
    assert release.load(version).open == []


@pytest.mark.parametrize("version", ["0.5.9", "0.5.23"])
def test_the_real_wheel_reproduces_the_committed_file(version: str) -> None:
    """Downloads 5 and 39 MB once, and takes seconds: it is the one test that the catalogue is not made up."""
    assert release.dumped(extract.release(fetch(version))) == (release.FOLDER / f"{version}.json").read_text()


@pytest.mark.parametrize("version", GATES)
@pytest.mark.pain("P39", "P86")
def test_gates(version: str) -> None:
    found = release.load(version).autotune
    assert (found.state, Path(found.file or "").name) == GATES[version]


@pytest.mark.parametrize("version", PINS)
@pytest.mark.pain("P33", "P87")
def test_pins(version: str) -> None:
    found = release.load(version)
    pins = tuple(found.pin(name) for name in ("torch", "flashinfer-python", "transformers"))
    assert (*pins, found.kernel_wheel) == PINS[version]


@pytest.mark.parametrize(
    ("version", "name", "spelling"),
    [
        ("0.5.9", "tp", "tensor-parallel-size"),
        ("0.5.23", "tp", "tp-size"),
        ("0.5.23", "model", "model-path"),
        ("0.5.23", "ep", "ep-size"),
        ("0.5.23", "nsa-decode-backend", None),
        ("0.5.19", "nsa-decode-backend", "nsa-decode-backend"),
        ("0.5.23", "dist", None),
        ("0.5.23", "no-such-flag", None),
    ],
)
@pytest.mark.pain("P45")
def test_a_name_means_what_argparse_takes_it_for(version: str, name: str, spelling: str | None) -> None:
    found = release.load(version).find(name)
    assert (found.names[0] if found else None) == spelling


def test_an_unknown_release_says_how_to_add_it() -> None:
    with pytest.raises(GpuboxError, match=r"gpubox catalog extract 0\.6\.0"):
        release.load("0.6.0")


def test_every_fact_has_a_source() -> None:
    tables: list[catalog.Card | catalog.ModelFacts] = [*catalog.cards().values(), *catalog.models().values()]
    assert all(fact.sources for fact in tables)
    named = {name for name in catalog.Matrix.model_fields if name != "sources"}
    assert named == set(catalog.matrix().sources)


def test_models_add_up() -> None:
    for name, model in catalog.models().items():
        wide = {"float32": 4, "bfloat16": 2, "fp8_e4m3": 1}
        sizes = sorted(model.kv_bytes.items(), key=lambda pair: wide[pair[0]])
        assert [size for _, size in sizes] == sorted(model.kv_bytes.values()), name
        assert model.heads % model.kv_heads == 0, name


def test_rules_name_the_patch_as_the_patch_names_itself() -> None:
    from gpubox.rules.subjects.moe import AUTOTUNE_PATCH

    assert AUTOTUNE_PATCH in patches.names()


@pytest.mark.parametrize(
    ("capability", "flashinfer", "nvcc"),
    [
        ("12.0", "0.6.3", "12.8"),
        ("12.0", "0.6.12", "12.9"),
        ("12.0", "0.7.2", "12.8"),
        ("12.1", "0.7.2", "12.9"),
        ("9.0", "0.7.2", None),
    ],
)
@pytest.mark.pain("P19")
def test_which_nvcc(capability: str, flashinfer: str, nvcc: str | None) -> None:
    assert catalog.matrix().nvcc_for(capability, flashinfer) == nvcc


def test_not_a_wheel(tmp_path: Path) -> None:
    (tmp_path / "x.whl").write_text(json.dumps({}))
    with pytest.raises(GpuboxError, match="is not a wheel"):
        Wheel(tmp_path / "x.whl")
