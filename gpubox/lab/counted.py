"""Run pyinfra's command line and count its ssh round trips: `python -m gpubox.lab.counted OUT.json ARGUMENTS...`."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pyinfra.connectors.ssh import SSHConnector
from pyinfra_cli.main import main  # type: ignore[import-untyped]  # ships no types

COUNTED = ("run_shell_command", "put_file", "get_file")


def count(out: Path) -> None:
    """Let every command and file transfer of the ssh connector count itself, and keep the sums in `out`."""
    seen: Counter[str] = Counter()
    for name in COUNTED:
        _wrap(name, seen, out)


def _wrap(name: str, seen: Counter[str], out: Path) -> None:
    original = getattr(SSHConnector, name)

    def counting(self: SSHConnector, *args: Any, **kwargs: Any) -> Any:
        seen[name] += 1
        out.write_text(json.dumps(seen))
        return original(self, *args, **kwargs)

    setattr(SSHConnector, name, counting)


if __name__ == "__main__":
    count(Path(sys.argv[1]))
    sys.argv = ["pyinfra", *sys.argv[2:]]
    main()
