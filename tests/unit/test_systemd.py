"""systemd's quoting, judged by rules of its manual page: our own small reader of a command line, and known texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubox.server.systemd import environment_file, exec_line, process_lines
from gpubox.settings.profile import Process
from gpubox.support.errors import GpuboxError

PRINTABLE = st.text(st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"]))
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\t": "\t", "\\r": "\r", "%%": "%", "$$": "$"}


def read(line: str) -> list[str]:
    """A command line's words after systemd.service(5) and systemd.syntax(7): quotes, C escapes, then % and $ pairs."""
    words, word, quoted, at = list[str](), None, False, 0
    while at < len(line):
        pair, char = line[at : at + 2], line[at]
        if char == '"':
            quoted, word, at = not quoted, word or "", at + 1
        elif char == " " and not quoted:
            words, word, at = words + ([word] if word is not None else []), None, at + 1
        elif char in "\\%$":
            word, at = (word or "") + UNESCAPED[pair], at + 2
        else:
            word, at = (word or "") + char, at + 1
    return words + ([word] if word is not None else [])


@given(st.lists(PRINTABLE))
@pytest.mark.pain("P67")
def test_every_word_comes_back(words: list[str]) -> None:
    assert read(exec_line(["/bin/server", *words])) == ["/bin/server", *words]


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("--tp", "--tp"),
        ('{"enable_multithread_load": true}', '"{\\"enable_multithread_load\\": true}"'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ("a b", '"a b"'),
        ("", '""'),
        (";", '";"'),
        ("back\\slash", '"back\\\\slash"'),
        ("it's", '"it\'s"'),
    ],
)
@pytest.mark.pain("P67")
def test_words(word: str, text: str) -> None:
    assert exec_line(["/bin/server", word]) == f"/bin/server {text}"


@pytest.mark.parametrize("argv", [[], ["python3", "-m", "x"], ["/bin/x", "a\0b"], ["/bin/x", "\x1b[1m"]])
def test_command_lines_that_cannot_be(argv: list[str]) -> None:
    with pytest.raises(GpuboxError):
        exec_line(argv)


def test_environment_file() -> None:
    text = environment_file({"B": 'say "hi" $HOME `x` \\', "A": "100% a b"})
    assert text == 'A="100% a b"\nB="say \\"hi\\" \\$HOME \\`x\\` \\\\"\n'


@pytest.mark.parametrize(("name", "value"), [("NCCL_GRAPH_FILE", ""), ("1A", "x"), ("A-B", "x"), ("A", "x\0")])
@pytest.mark.pain("P60")
def test_environments_that_cannot_be(name: str, value: str) -> None:
    with pytest.raises(GpuboxError):
        environment_file({name: value})


@pytest.mark.parametrize(
    ("process", "lines"),
    [
        (Process(), []),
        (Process(cpus="0-31,64-95", nice=-5), ["CPUAffinity=0-31,64-95", "Nice=-5"]),
        (Process(numa_policy="bind", numa_nodes="0"), ["NUMAPolicy=bind", "NUMAMask=0"]),
        (Process(oom_score_adjust=0), ["OOMScoreAdjust=0"]),
        (
            Process(cpu_scheduling="rr", cpu_priority=5, io_class="best-effort", io_priority=0),
            [
                "CPUSchedulingPolicy=rr",
                "CPUSchedulingPriority=5",
                "IOSchedulingClass=best-effort",
                "IOSchedulingPriority=0",
            ],
        ),
        (Process(limits={"NOFILE": "2097152", "CORE": "infinity"}), ["LimitCORE=infinity", "LimitNOFILE=2097152"]),
    ],
)
def test_what_binds_a_process(process: Process, lines: list[str]) -> None:
    """Names of systemd.exec(5)."""
    assert process_lines(process) == lines
