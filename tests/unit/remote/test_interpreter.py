"""Which environment a process runs: told by the process, not by PATH."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpubox.remote import interpreter

Made = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """An environment `name` with a release of SGLang; `venv`: it has a pyvenv.cfg and its interpreter is a link."""

    def make(name: str, sglang: str = "", venv: bool = False) -> Path:
        prefix = tmp_path / name
        site = prefix / "lib/python3.11/site-packages"
        (prefix / "bin").mkdir(parents=True)
        site.mkdir(parents=True)
        if sglang:
            (site / f"sglang-{sglang}.dist-info").mkdir()
        if venv:
            (prefix / "pyvenv.cfg").write_text("version = 3.11.2\n")
            (prefix / "bin/python3").symlink_to(tmp_path / "usr/bin/python3.11")
        else:
            (prefix / "bin/python3.11").touch()
            (prefix / "bin/python3").symlink_to("python3.11")
        return prefix

    return make


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., Path]:
    def make(exe: Path | None, *mapped: Path) -> Path:
        folder = tmp_path / "proc/812"
        folder.mkdir(parents=True)
        if exe:
            (folder / "exe").symlink_to(exe)
        lines = [f"7f00-7f01 r-xp 00000000 08:01 {n} {path}\n" for n, path in enumerate(mapped)]
        (folder / "maps").write_text("".join(lines))
        return folder

    return make


def asked(running: Path, program: str, folder: Path, *path: Path) -> tuple[str, str]:
    variables = {"PATH": ":".join(f"{one}/bin" for one in path)}
    found = interpreter.environment(running, program, str(folder), variables)
    return found.prefix, interpreter.version(found.sites, "sglang")


def test_conda_before_an_older_virtual_environment_in_path(
    made: Made, process: Callable[..., Path], tmp_path: Path
) -> None:
    made("usr")
    conda, old = made("conda/envs/serve", "0.5.23"), made("old", "0.5.9", venv=True)
    running = process(conda / "bin/python3.11")
    assert asked(running, "python3", tmp_path, conda, old) == (str(conda), "0.5.23")


def test_the_program_that_runs_counts_where_path_was_changed_since(
    made: Made, process: Callable[..., Path], tmp_path: Path
) -> None:
    conda, other = made("conda", "0.5.23"), made("miniconda", "0.5.9")
    running = process(conda / "bin/python3.11")
    assert asked(running, "python3", tmp_path, other, conda) == (str(conda), "0.5.23")


def test_a_conda_interpreter_by_its_path(made: Made, process: Callable[..., Path], tmp_path: Path) -> None:
    conda = made("conda", "0.5.23")
    assert asked(process(conda / "bin/python3.11"), f"{conda}/bin/python3", tmp_path) == (str(conda), "0.5.23")


@pytest.mark.parametrize("program", ["python3", "{venv}/bin/python3", "venv/bin/python3"])
def test_a_virtual_environment_by_any_name(
    made: Made, process: Callable[..., Path], tmp_path: Path, program: str
) -> None:
    usr = made("usr")
    venv = made("venv", "0.5.23", venv=True)
    running = process(usr / "bin/python3.11")
    assert asked(running, program.format(venv=venv), tmp_path, venv, usr) == (str(venv), "0.5.23")


def test_files_that_are_mapped_decide_between_two(made: Made, process: Callable[..., Path], tmp_path: Path) -> None:
    usr, one, two = made("usr"), made("one", "0.5.9", venv=True), made("two", "0.5.23", venv=True)
    running = process(usr / "bin/python3.11", two / "lib/python3.11/site-packages/torch/lib/libtorch.so")
    assert asked(running, "python3", tmp_path, one, two, usr) == (str(two), "0.5.23")


def test_packages_of_the_users_own(made: Made, process: Callable[..., Path], tmp_path: Path) -> None:
    usr, home = made("usr"), made("home/jo/.local", "0.5.23")
    running = process(usr / "bin/python3.11", home / "lib/python3.11/site-packages/torch/_C.so")
    assert asked(running, "/usr/bin/python3", tmp_path, usr) == (str(home), "0.5.23")


def test_a_process_that_says_nothing_is_told_by_path(made: Made, process: Callable[..., Path], tmp_path: Path) -> None:
    conda, venv = made("conda", "0.5.23"), made("venv", "0.5.9")
    assert asked(process(None), "python3", tmp_path, conda, venv) == (str(conda), "0.5.23")


def test_of_two_pythons_in_one_environment_the_one_that_runs(
    made: Made, process: Callable[..., Path], tmp_path: Path
) -> None:
    conda = made("conda", "0.5.23")
    (conda / "lib/python3.10/site-packages/sglang-0.5.9.dist-info").mkdir(parents=True)
    assert asked(process(conda / "bin/python3.11"), "python3", tmp_path, conda)[1] == "0.5.23"


def test_of_two_releases_the_one_that_is_whole(made: Made) -> None:
    site = made("venv", "0.5.9") / "lib/python3.11/site-packages"
    (site / "sglang-0.5.23.dist-info").mkdir()
    (site / "sglang-0.5.9.dist-info/METADATA").touch()
    assert interpreter.version([site], "sglang") == "0.5.9"
    assert interpreter.version([site], "torch") == ""


def test_sources_are_named(made: Made, tmp_path: Path) -> None:
    site = made("venv", "0.5.23") / "lib/python3.11/site-packages"
    (tmp_path / "src/sglang").mkdir(parents=True)
    (tmp_path / "src/sglang/__init__.py").touch()
    first = interpreter.searched_first
    argv = ["python3", "-m", "sglang.launch_server"]
    by_path = first(argv, "/", {"PYTHONPATH": f":{tmp_path}/src"})
    assert interpreter.sources([site], by_path, "sglang") == f"{tmp_path}/src"
    assert interpreter.sources([site], first(argv, f"{tmp_path}/src", {}), "sglang") == f"{tmp_path}/src"
    assert interpreter.sources([site], first(argv, "/", {"PYTHONPATH": "/none"}), "sglang") == ""
    told = site / "sglang-0.5.23.dist-info/direct_url.json"
    told.write_text('{"url": "file:///home/jo/sglang/python", "dir_info": {"editable": true}}')
    assert interpreter.sources([site], [], "sglang") == "/home/jo/sglang/python"
    told.write_text("cut off {")
    assert interpreter.sources([site], [], "sglang") == ""
