"""A redacted archive for a bug report: the checks, the profile, the log's end; no key, no address, no host's name."""

import io
import json
import os
import re
import tarfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import yaml

from gpubox.doctor.examine import Report
from gpubox.remote import secrets
from gpubox.support import files
from gpubox.support.errors import GpuboxError

_ADDRESS = re.compile(
    r"\b(?!127\.0\.0\.1\b|0\.0\.0\.0\b)(?:\d{1,3}\.){3}\d{1,3}\b|\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b"
)
_HOME = re.compile(r"(/home/|/Users/)[^/\s]+")
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]+\b")


def write(reports: Iterable[Report], path: Path) -> None:
    """The archive at `path`, a .tar.gz for its owner alone. Errors as of `check`."""
    check(path)
    listed = list(reports)
    redact = Redactor([report.box.name for report in listed] + [report.box.address for report in listed])
    checks = [check.as_json() for report in listed for check in report.checks]
    texts = {
        "doctor.json": json.dumps({"gpubox": version("gpubox"), "checks": checks}, indent=1),
        **{f"{redact(report.box.name)}/profile.yaml": _profile(report) for report in listed},
        **{f"{redact(report.box.name)}/log.txt": "\n".join(secrets.lines(report.log)) for report in listed},
    }
    content = {name: redact(text).encode() for name, text in texts.items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in content.items():
            entry = tarfile.TarInfo(f"gpubox-doctor/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    files.write(path, packed.getvalue(), mode=0o600)


def check(path: Path) -> None:
    """For before the boxes are asked. Errors: something lies there, or nothing can be written there."""
    if os.path.lexists(path):
        raise GpuboxError(f"{path} is there already", "a path where nothing lies", "name another one, or remove it")
    files.check_file(path)


class Redactor:
    """Puts the same word for the same name or address everywhere, so that a reader can still follow."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._known: dict[str, str] = {}
        for number, name in enumerate(dict.fromkeys(hosts), 1):
            self._known[name] = f"host-{number}"

    def __call__(self, text: str) -> str:
        """The text without what is secret or tells who it is of."""
        text = secrets.text(text)
        for name in sorted(self._known, key=len, reverse=True):
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", self._known[name], text)
        text = _ADDRESS.sub(lambda found: self._address(found.group()), text)
        return _MAIL.sub("(mail)", _HOME.sub(r"\1user", text))

    def _address(self, address: str) -> str:
        return self._known.setdefault(address, f"address-{len(self._known) + 1}")


def _profile(report: Report) -> str:
    """As the deploy sees it, after `extends`; a secret in it is a finding of its own, and masked here."""
    values = report.box.profile.model_dump(exclude_defaults=True)
    return yaml.safe_dump(secrets.data(values), sort_keys=False)
