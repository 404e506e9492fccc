"""What systemd has of a unit against its text, as `systemctl show` of releases 247 to 257 prints it."""

from pathlib import Path

import pytest

from gpubox.remote import effective
from gpubox.remote.effective import Asked, differences, not_asked_for, read_unit, type_names
from gpubox.server import systemd
from tests.unit.test_service import service

ARGV = ["/venv/bin/python3", "-m", "sglang.launch_server", "--model-path", "/m", "--x", 'a "b" 100% $HOME \\n']
PRE = ["/bin/sh", "-c", 'set -e\nprintf "%s\\n" "$1"', "sh", "/jit"]
UNIT = f"""# Written by gpubox
[Unit]
Description=SGLang
[Service]
Type=exec
ExecStart={systemd.exec_line(ARGV)}
ExecStartPre={systemd.exec_line(PRE)}
Environment=A=/jit/a
Environment=B=/jit/b
EnvironmentFile=/releases/x/environment
WorkingDirectory=/root
Restart=always
LimitNOFILE=1048576
OOMPolicy=stop
"""
SHOWN = {
    "LoadState": "loaded",
    "ExecStart": "{ path=/venv/bin/python3 ; argv[]=/venv/bin/python3 -m sglang.launch_server --model-path /m --x "
    'a "b" 100% $$HOME \\n ; ignore_errors=no ; start_time=[n/a] ; pid=0 ; status=0/0 }',
    "ExecStartPre": "{ path=/bin/sh ; argv[]=/bin/sh -c set -e\n"
    'printf "%s\\n" "$$1" sh /jit ; ignore_errors=no ; pid=7 }',
    "Environment": "A=/jit/a B=/jit/b",
    "EnvironmentFiles": "/releases/x/environment (ignore_errors=no)",
    "WorkingDirectory": "/root",
    "DynamicUser": "no",
    "Restart": "always",
    "KillMode": "control-group",
    "LimitNOFILE": "1048576",
    "LimitMEMLOCK": "infinity",
    "OOMPolicy": "stop",
}


def test_what_is_in_effect_as_written_is_no_difference() -> None:
    assert differences(read_unit(UNIT), SHOWN) == []


def test_of_a_setting_that_stands_twice_the_last_counts() -> None:
    assert differences(read_unit(f"{UNIT}LimitNOFILE=65536\n"), {**SHOWN, "LimitNOFILE": "65536"}) == []


def test_a_systemd_that_does_not_know_a_property_is_no_difference() -> None:
    old = {name: value for name, value in SHOWN.items() if name != "OOMPolicy"}
    assert differences(read_unit(UNIT), old) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ExecStart", "{ path=/bin/sleep ; argv[]=/bin/sleep inf ; ignore_errors=no ; pid=0 }"),
        ("ExecStart", ""),
        ("ExecStartPre", ""),
        ("ExecStartPost", "{ path=/bin/true ; argv[]=/bin/true ; ignore_errors=no ; pid=0 }"),
        ("Environment", "A=/jit/a B=/jit/b LD_PRELOAD=/x.so"),
        ("Environment", ""),
        ("EnvironmentFiles", "/releases/x/environment (ignore_errors=no)\n/etc/default/more (ignore_errors=yes)"),
        ("User", "nobody"),
        ("Group", "nogroup"),
        ("DynamicUser", "yes"),
        ("UnsetEnvironment", "CUDA_HOME"),
        ("RootDirectory", "/srv/other"),
        ("WorkingDirectory", "/tmp"),
        ("Restart", "no"),
        ("LimitNOFILE", "1024"),
        ("OOMPolicy", "continue"),
    ],
)
def test_every_other_value_is_told(name: str, value: str) -> None:
    (told,) = differences(read_unit(UNIT), {**SHOWN, name: value})
    assert told.startswith(f"{name} is ")


def test_a_real_unit_is_read_whole() -> None:
    names = [name for section, name, _ in read_unit(service().release.unit) if section == "Service"]
    assert names.count("Environment") == 9
    assert {"ExecStart", "ExecStartPre", "EnvironmentFile", "LimitMEMLOCK", "OOMPolicy"} <= set(names)


def test_comments_and_continued_lines_are_read_as_systemd_reads_them() -> None:
    text = "[Service]\n# User=a\n; User=b\nExecStart=/bin/x \\\n# between\n  --flag\n[Install]\nWantedBy = y\n"
    assert read_unit(text) == [("Service", "ExecStart", "/bin/x    --flag"), ("Install", "WantedBy", "y")]


@pytest.mark.parametrize(
    ("unit", "names"),
    [("sglang.service", ["service"]), ("a-b-c.service", ["a-b-.service", "a-.service", "service"])],
)
def test_whose_drop_ins_count_besides_its_own(unit: str, names: list[str]) -> None:
    assert type_names(unit) == names


def process(folder: Path, words: list[str], variables: dict[str, str], uid: int | None = None) -> Path:
    (folder / "cmdline").write_bytes("".join(f"{word}\0" for word in words).encode())
    (folder / "environ").write_bytes("".join(f"{n}={v}\0" for n, v in variables.items()).encode())
    if uid is not None:
        (folder / "status").write_text(f"Name:\tx\nUid:\t0\t{uid}\t0\t0\n")
    return folder


ASKED = Asked(UNIT, ["python3", "-m", "sglang.launch_server"], 'A="b c"\nCUDA_HOME="/usr"\n')
GIVEN = {"A": "b c", "CUDA_HOME": "/usr", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("words", "variables", "uid", "told"),
    [
        (ASKED.argv, GIVEN, None, None),
        (["sglang::http_server"], GIVEN, None, None),
        (["sleep", "inf"], GIVEN, None, "its command line is sleep inf"),
        (ASKED.argv, {**GIVEN, "A": "x"}, None, "its environment has another A"),
        (ASKED.argv, {"A": "b c", "PATH": "/bin"}, None, "its environment has another CUDA_HOME"),
        (ASKED.argv, GIVEN, 65534, "it runs as user 65534, not"),
        ([], {}, None, None),
    ],
)
def test_the_process_itself_must_be_the_one_asked_for(
    tmp_path: Path, words: list[str], variables: dict[str, str], uid: int | None, told: str | None
) -> None:
    found = not_asked_for(process(tmp_path, words, variables, uid), ASKED)
    assert (found is None) if told is None else str(found).startswith(told)


def test_another_program_with_the_same_words_is_not_it(tmp_path: Path) -> None:
    asked = Asked(UNIT, ["/bin/sh", "x"], "")
    folder = process(tmp_path, asked.argv, {"PATH": "/bin"})
    (folder / "exe").symlink_to("/usr/bin/other")
    assert str(not_asked_for(folder, asked)).startswith("its program is /usr/bin/other")
    (folder / "exe").unlink()
    (folder / "exe").symlink_to(f"{Path('/bin/sh').resolve()} (deleted)")
    assert not_asked_for(folder, asked) is None


def test_what_only_the_process_has_is_named(tmp_path: Path) -> None:
    folder = process(tmp_path, ASKED.argv, {**GIVEN, "B": "/jit/b", "NCCL_DEBUG": "INFO", "LANG": "C", "FOO": "x"})
    assert effective._extra(folder, ASKED, ["FOO"]) == ["NCCL_DEBUG"]
