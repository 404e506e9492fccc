"""Lines for people: whole at 80 columns, whatever a box says and whatever the terminal can show."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from gpubox.support.hanging_indent import hanging


def printed(rows: list[tuple[str | Text, str]], encoding: str = "utf-8", terminal: bool = False, width: int = 0) -> str:
    data = io.BytesIO()
    file = io.TextIOWrapper(data, encoding=encoding, write_through=True)
    hanging(Console(file=file, force_terminal=terminal, width=80, color_system=None), rows, width=width)
    return data.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("/opt/m\udcc3", "utf-8", "/opt/m?"),
        ("/opt/m\u00f6dell", "utf-8", "/opt/m\u00f6dell"),
        ("/opt/m\u00f6dell", "ascii", "/opt/m?dell"),
    ],
)
def test_what_cannot_be_shown_is_a_question_mark(text: str, encoding: str, shown: str) -> None:
    assert printed([("uses cards", text)], encoding) == f"  uses cards  {shown}\n"


def test_texts_hang_beside_their_labels_in_a_terminal() -> None:
    lines = printed([("found", "word " * 30), (Text("cure"), "one\ntwo")], terminal=True).splitlines()
    assert [len(line) <= 80 for line in lines] == [True] * len(lines)
    assert [line[:9].rstrip() for line in lines] == ["  found", "", "", "  cure", ""]


def test_a_pipe_gets_each_line_whole() -> None:
    assert printed([("found", "word " * 30)]).count("\n") == 1


def test_labels_are_as_wide_as_asked() -> None:
    assert printed([("a", "x"), ("", "y")], width=6) == "  a     x\n        y\n"
