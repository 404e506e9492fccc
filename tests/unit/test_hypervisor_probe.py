"""One script, many answers: run by a real shell, here."""

import subprocess

import pytest

from gpubox.errors import CannotTellError
from gpubox.hypervisor.probe import Answer, answers, script


@pytest.mark.pain("P79")
def test_answers_come_back_whole() -> None:
    asked = {
        "plain": "printf 'a\\n\\n'",
        "code": "echo no; exit 3",
        "quotes": """echo "it's" '$HOME' """,
        "bytes": "printf '\\377\\000'",
        "missing": "no-such-program-anywhere",
        "nothing": "true",
    }
    printed = subprocess.run(["/bin/sh", "-c", script(asked)], capture_output=True, check=True, text=True)
    assert answers(printed.stdout.splitlines()) == {
        "plain": Answer(0, "a\n\n"),
        "code": Answer(3, "no\n"),
        "quotes": Answer(0, "it's $HOME\n"),
        "bytes": Answer(0, "\udcff\0"),
        "missing": Answer(127, ""),
        "nothing": Answer(0, ""),
    }
    assert printed.stderr == ""


@pytest.mark.pain("P81")
def test_unexpected_code_is_cannot_tell() -> None:
    assert Answer(0, "").yes("unit")
    assert not Answer(3, "").yes("unit", no=(3, 4))
    with pytest.raises(CannotTellError, match="unit: exit code 255"):
        Answer(255, "").yes("unit", no=(3, 4))
    with pytest.raises(CannotTellError, match="not an answer"):
        answers(["Linux box 6.1 #1 SMP"])
