"""Be the parent of what a server leaves behind: its schedulers send SIGQUIT to their parent, and PID 1 ends of it."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_CHILD_SUBREAPER = 36
"""prctl(2)."""


def adopt() -> bool:
    """Become the parent of what loses its own below us, and take no harm of SIGQUIT. False: it cannot be done here."""
    try:
        signal.signal(signal.SIGQUIT, lambda *_: None)  # not SIG_IGN: the server that is started next would inherit it
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError, ValueError):  # no prctl here, or not in the main thread
        return False
