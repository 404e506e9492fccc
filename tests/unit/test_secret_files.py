"""Files with a secret: nobody else may read them, and no error says what is in them."""

from pathlib import Path

import pytest

from gpubox.support import secret_files
from gpubox.support.errors import GpuboxError


def test_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("hush-hush\n")
    file.chmod(0o600)
    assert secret_files.read(str(file), "api_key_file") == "hush-hush"


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        ("hush-hush", 0o640, "chmod 600"),
        ("hush-hush", 0o604, "chmod 600"),
        ("hush-hush two", 0o600, "holds 2 words"),
        ("", 0o600, "holds 0 words"),
        ("-hush-hush", 0o600, "no dash first"),
        (None, 0, "no file"),
    ],
    ids=range(6),
)
def test_what_is_refused(tmp_path: Path, text: str | None, mode: int, told: str) -> None:
    file = tmp_path / "key"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(GpuboxError, match=told) as caught:
        secret_files.read(str(file), "gpu01: api_key_file")
    assert "gpu01: api_key_file" in caught.value.message
    assert "hush-hush" not in caught.value.message
