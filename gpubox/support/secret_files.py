"""Secrets of this machine: files that hold one secret and that nobody but their owner may read."""

from pathlib import Path

from gpubox.support.errors import GpuboxError


def read(path: str, setting: str) -> str:
    """The one line in the file. The secret itself is never part of an error.

    + path: on this machine; `~` is the home folder
    + setting: what names the file, for errors

    Errors: no such file, a mode that lets others read it, not exactly one printable word.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise GpuboxError(f"{setting}: no file {file} on this machine", "a file that holds only the secret")
    if others := file.stat().st_mode & 0o077:
        raise GpuboxError(f"{setting}: others may use {file} (mode bits {others:03o})", "mode 600", f"chmod 600 {file}")
    try:
        text = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise GpuboxError(f"{setting}: {file} cannot be read: {why}", "one printable word") from None
    if len(text.split()) != 1 or not text.isprintable() or text.startswith("-"):
        raise GpuboxError(f"{setting}: {file} holds {len(text.split())} words", "one printable word, no dash first")
    return text
