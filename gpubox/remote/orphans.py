"""Be the parent of what a server leaves behind, so that PID 1 is not.

SGLang's schedulers send SIGQUIT to their parent when they fail. Once their launcher is gone that is PID 1: systemd ends
of it, and a container with it.
"""

from __future__ import annotations

import ctypes
import signal

_PR_SET_CHILD_SUBREAPER = 36
"""prctl(2)."""


def adopt() -> bool:
    """Become the parent of whatever loses its own below us, and take no harm of SIGQUIT.

    False: this system cannot do it. A handler, not SIG_IGN: the server that is started next would inherit that.
    """
    try:
        signal.signal(signal.SIGQUIT, lambda *_: None)
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError, ValueError):  # no prctl here, or not in the main thread
        return False
