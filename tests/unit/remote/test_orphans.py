"""A scheduler that outlives its launcher sends SIGQUIT to its parent: that is the program that started it all."""

import subprocess
import sys

import pytest

CHILD = "import os, signal, sys; sys.stdin.read(); p = os.getppid(); os.kill(p, signal.SIGQUIT); print(p, flush=True)"
LAUNCHER = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {CHILD!r}])"
STARTER = f"""
import os, subprocess, sys
from gpubox.remote import orphans
assert orphans.adopt()
reads, writes = os.pipe()
launcher = subprocess.Popen([sys.executable, "-c", {LAUNCHER!r}], stdin=reads, stdout=subprocess.PIPE, text=True)
os.close(reads)
launcher.wait()  # it is gone, and left its child behind
os.close(writes)  # only now the child goes on
print(int(launcher.stdout.read()) == os.getpid())
"""


@pytest.mark.pain("P107")
def test_the_signal_of_an_orphan_does_not_reach_process_1() -> None:
    done = subprocess.run([sys.executable, "-c", STARTER], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
