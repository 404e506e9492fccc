"""Lock files: what is read, and what is refused."""

import pytest

from gpubox.settings.lockfile import Pin, parse, stamp
from gpubox.support.errors import GpuboxError

A, B = "a" * 64, "b" * 64


def test_pins() -> None:
    text = f"""# made by
torch==2.13.0+cpu \\
    --hash=sha256:{A} \\
    --hash=sha256:{B}
    # via xgrammar
idna==3.20 --hash=sha256:{A}
"""
    assert parse(text, "x") == [Pin("torch", "2.13.0+cpu", frozenset({A, B})), Pin("idna", "3.20", frozenset({A}))]


@pytest.mark.parametrize(
    "line",
    [
        "idna==3.20",
        f"idna>=3.20 --hash=sha256:{A}",
        f"idna==3.20 ; python_version < '3.12' --hash=sha256:{A}",
        f"idna==3.20 --hash=sha256:{A[1:]}",
        f"idna==3.20 --hash=md5:{A}",
        f"Idna==3.20 --hash=sha256:{A}",
        f"idna @ file:///somewhere/idna.whl --hash=sha256:{A}",
        "--find-links /somewhere",
        "-e .",
        "./idna.whl",
    ],
)
@pytest.mark.pain("P32")
def test_refused(line: str) -> None:
    with pytest.raises(GpuboxError, match=r"^here holds"):
        parse(line, "here")


def test_stamp_changes_with_text_and_settings() -> None:
    base = stamp({"a.in": "x"}, python="3.11")
    assert base.startswith("# Made by `gpubox lock` from a.in (")
    assert len({base, stamp({"a.in": "y"}, python="3.11"), stamp({"a.in": "x"}, python="3.12")}) == 3
