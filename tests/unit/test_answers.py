"""One script, many answers: run by a real shell, here."""

import subprocess

import pytest
from pyinfra.api import StringCommand

from gpubox.facts.answers import Answer, answers, checked, script
from gpubox.support.errors import CannotTellError


@pytest.mark.pain("P79")
def test_answers_come_back_whole() -> None:
    asked: dict[str, str | StringCommand] = {
        "plain": "printf 'a\\n\\n'",
        "code": "echo no; exit 3",
        "quotes": """echo "it's" '$HOME' """,
        "bytes": "printf '\\377\\000'",
        "missing": "no-such-program-anywhere",
        "nothing": "true",
    }
    assert answers(run(asked)) == {
        "plain": Answer(0, "a\n\n"),
        "code": Answer(3, "no\n"),
        "quotes": Answer(0, "it's $HOME\n"),
        "bytes": Answer(0, "\udcff\0"),
        "missing": Answer(127, ""),
        "nothing": Answer(0, ""),
    }


@pytest.mark.pain("P81")
def test_unexpected_code_is_cannot_tell() -> None:
    assert Answer(0, "").yes("unit")
    assert not Answer(3, "").yes("unit", no=(3, 4))
    with pytest.raises(CannotTellError, match="unit: exit code 255"):
        Answer(255, "").yes("unit", no=(3, 4))
    with pytest.raises(CannotTellError, match="not an answer"):
        answers(["Linux box 6.1 #1 SMP"])


def run(asked: dict[str, str | StringCommand]) -> list[str]:
    """The lines that a real shell prints when it is asked."""
    done = subprocess.run(["/bin/sh", "-c", script(asked)], capture_output=True, check=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.pain("P81")
def test_only_the_codes_that_are_named_are_answers() -> None:
    found = checked(run({"a": "echo 1; echo 2", "b": StringCommand("exit 2"), "c": "echo why >&2"}), b=2)
    assert (found["a"].lines, found["b"].rc, found["b"].lines, found["c"].lines) == (["1", "2"], 2, [], [])
    with pytest.raises(CannotTellError, match="b: exit code 3: no disk"):
        checked(run({"a": "true", "b": "echo no disk; exit 3"}), b=2)


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\n\n", ["a", ""]), ("\n", [""]), ("a\fb\n", ["a\fb"])],
)
def test_lines_end_with_newlines_only(text: str, lines: list[str]) -> None:
    assert Answer(0, text).lines == lines


def test_a_question_may_hold_a_here_document_or_end_with_a_comment() -> None:
    found = answers(run({"a": "cat <<'X'\n$HOME\nX", "b": "echo b # b"}))
    assert (found["a"].text, found["b"].text) == ("$HOME\n", "b\n")
