"""A run ends without a traceback of what paramiko frees while Python ends."""

import subprocess
import sys

import pytest

_PROGRAM = """
import gevent.monkey
gevent.monkey.patch_all()
import gc, socket, sys, threading
import paramiko
{imports}

class Server(paramiko.ServerInterface):
    def check_channel_request(self, kind, number):
        return paramiko.OPEN_SUCCEEDED
    def check_auth_none(self, user):
        return paramiko.AUTH_SUCCESSFUL
    def get_allowed_auths(self, user):
        return "none"
    def check_channel_exec_request(self, channel, command):
        threading.Timer(0, lambda: channel.send(b"held")).start()
        return True

ours, theirs = socket.socketpair()
server = paramiko.Transport(theirs)
server.add_server_key(paramiko.ECDSAKey.generate())
server.start_server(server=Server(), event=threading.Event())
transport = paramiko.Transport(ours)
transport.start_client(timeout=30)
transport.auth_none("root")
client = paramiko.SSHClient()
client._transport = transport
opened = client.exec_command("hold")
assert opened[1].read(4) == b"held"
gc.disable()
channel = opened[0].channel
cycle = [opened]
cycle.append(cycle)
del opened, cycle
print("the summary")
{end}
"""


def _run(imports: str, end: str = "") -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(imports=imports, end=end)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


def test_what_it_mends() -> None:
    """If this fails, paramiko no longer does it, and operations.onbox.close_all can go."""
    assert "Exception ignored in: <function BufferedFile.__del__" in _run("").stderr


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(1)", 1)])
def test_a_run_ends_with_its_summary(end: str, code: int) -> None:
    done = _run("import gpubox.operations.onbox", end)
    assert (done.returncode, done.stdout, done.stderr) == (code, "the summary\n", "")


def test_a_reader_that_holds_the_channel_to_the_end() -> None:
    """What is registered first runs last: when all files were closed, and Python begins to free them."""
    held = "import atexit; atexit.register(lambda: channel.lock.acquire(blocking=False))"
    done = _run(f"{held}\nimport gpubox.operations.onbox")
    assert (done.returncode, done.stdout, done.stderr) == (0, "the summary\n", "")


def test_an_error_of_the_run_is_shown() -> None:
    done = _run("import gpubox.operations.onbox", "raise ValueError('a real one')")
    assert done.returncode == 1
    assert "ValueError: a real one" in done.stderr
    assert "BufferedFile" not in done.stderr
