"""Where a measuring client runs: reached by the same ssh as everything else."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpubox import inventory
from gpubox.bench.place import Place, here, on_box
from gpubox.hosts import Box
from gpubox.support import ssh
from gpubox.support.errors import GpuboxError


def box(**connection: object) -> Box:
    one = inventory.load().box("gpu01")
    return replace(one, connection={"ssh_hostname": "10.0.0.1", **connection})


def test_the_box_is_reached_as_by_every_command() -> None:
    one = box(ssh_key="/k", ssh_port=2222, ssh_user="jane", ssh_known_hosts_file="/h")
    place = on_box(one)
    assert place.prefix == tuple(ssh.command(one.address, one.connection))
    assert {"IdentitiesOnly=yes", "StrictHostKeyChecking=accept-new"} <= {*place.prefix}
    assert place.command(["a", "b c", "$d"])[-2:] == ["jane@10.0.0.1", "a 'b c' '$d'"]


def test_sudo_stands_behind_the_address() -> None:
    assert on_box(box(_sudo=True)).prefix[-3:] == ("10.0.0.1", "sudo", "-n")


def test_an_address_that_would_be_an_option() -> None:
    with pytest.raises(GpuboxError, match="-oProxyCommand=x"):
        on_box(box(ssh_hostname="-oProxyCommand=x"))


def test_here_nothing_stands_before_the_words() -> None:
    assert here("/p") == Place("local", "/p")
    assert here("/p").command(["a b"]) == ["a b"]


def test_nothing_else_of_the_product_builds_an_ssh_command() -> None:
    source = Path(ssh.__file__).parents[1]
    texts = {path: path.read_text() for path in source.rglob("*.py") if "lab" not in path.parts}
    found = [path for path, text in texts.items() if '"BatchMode=yes"' in text or 'return ["ssh"' in text]
    assert found == [Path(ssh.__file__)]
