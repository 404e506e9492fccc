"""A way into a container that has no sshd: through its hypervisor's ssh connection and the hypervisor's own programs.

    pyinfra @lxc/pve01:gpu01 exec -- hostname

`@lxc` takes lxc-attach, `@pct` pct exec (Proxmox VE), `@incus` incus exec; the login on the hypervisor must be root's.
"""

from collections.abc import Iterator
from io import IOBase
from typing import IO, Any, cast

from paramiko import SSHException
from pyinfra import logger
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import ConnectError, InventoryError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.api.util import get_file_io
from pyinfra.connectors.base import BaseConnector, DataMeta
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.connectors.util import CommandOutput, extract_control_arguments, make_unix_command_for_host
from typing_extensions import TypedDict, override

from gpubox.hypervisor.kinds import Kind, Name

_CHUNK = 256 * 1024
_META = {"container_name": DataMeta("Name or number of the container on the hypervisor")}


class ContainerData(TypedDict):
    """What the inventory must say beside the hypervisor's ssh_* data."""

    container_name: str


class ContainerConnector(BaseConnector):
    """Commands and files of one container; every subclass is one kind of hypervisor."""

    handles_execution = True
    data_cls = ContainerData
    data_meta = _META
    kind: Name
    handle: str
    """The connector's name in inventories, as `lxc` in @lxc/pve01:gpu01."""

    def __init__(self, state: State, host: Host) -> None:
        super().__init__(state, host)
        self.ssh = SSHConnector(state, host)
        self.box = Kind(self.kind, str(self.data["container_name"]))

    @override
    @staticmethod
    def make_names_data(name: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        raise NotImplementedError

    @override
    def connect(self) -> None:
        self.ssh.connect()
        told, output = self.ssh.run_shell_command(StringCommand(self.box.state_question))
        word = (output.stdout.lower().split() or [""])[-1]
        if not told or word != "running":
            found = word or output.stderr or "unknown to it"
            raise ConnectError(f"container {self.box.container} on the hypervisor is not running: {found}")

    @override
    def disconnect(self) -> None:
        self.ssh.disconnect()

    @override
    def run_shell_command(
        self, command: StringCommand, print_output: bool = False, print_input: bool = False, **arguments: Any
    ) -> tuple[bool, CommandOutput]:
        control = extract_control_arguments(arguments)  # type: ignore[arg-type] # a TypedDict of optional keys
        inner = make_unix_command_for_host(self.state, self.host, command, **arguments)
        status, output = self.ssh.run_shell_command(
            self.inside(inner), print_output=print_output, print_input=print_input, **control
        )
        return bool(status), output

    @override
    def put_file(
        self,
        filename_or_io: str | IOBase,
        remote_filename: str,
        remote_temp_filename: str | None = None,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> bool:
        """Stream a file into the container: nothing of it is left on the hypervisor."""
        with get_file_io(cast("str | IO[Any]", filename_or_io), "rb") as source:
            return self._stream(StringCommand("cat >", QuoteString(remote_filename)), arguments, source=source)

    @override
    def get_file(
        self,
        remote_filename: str,
        filename_or_io: str | IOBase,
        remote_temp_filename: str | None = None,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> bool:
        """Stream a file out of the container."""
        with get_file_io(cast("str | IO[Any]", filename_or_io), "wb") as target:
            return self._stream(StringCommand("cat", QuoteString(remote_filename)), arguments, target=target)

    def inside(self, command: StringCommand) -> StringCommand:
        """The hypervisor's command line that runs `command` inside; secrets in it stay masked in what is printed."""
        *words, _ = self.box.inside("")
        return StringCommand(*map(QuoteString, words), QuoteString(command))

    def _stream(
        self,
        command: StringCommand,
        arguments: dict[str, Any],
        source: IO[Any] | None = None,
        target: IO[Any] | None = None,
    ) -> bool:
        extract_control_arguments(arguments)  # type: ignore[arg-type] # a TypedDict of optional keys
        line = self.inside(make_unix_command_for_host(self.state, self.host, command, **arguments))
        if self.ssh.client is None:
            raise ConnectError("not connected to the hypervisor")
        stdin, stdout, stderr = self.ssh.client.exec_command(line.get_raw_value())
        try:
            while source and (chunk := source.read(_CHUNK)):
                stdin.write(chunk.encode() if isinstance(chunk, str) else chunk)
        except (OSError, SSHException) as error:
            logger.debug("the container stopped reading: %s", error)  # its exit code and stderr say why
        stdin.channel.shutdown_write()
        while chunk := stdout.read(_CHUNK):
            if target:
                target.write(chunk)
        problem = stderr.read().decode(errors="replace").strip()
        code = stdout.channel.recv_exit_status()
        if code:
            logger.error(f"{self.host.print_prefix}{command}: exit code {code}: {problem}")
        return bool(code == 0)


class LxcConnector(ContainerConnector):
    """Plain LXC: lxc-attach."""

    kind, handle = "lxc", "lxc"

    @override
    @staticmethod
    def make_names_data(name: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        yield _names(LxcConnector.handle, name)


class PctConnector(ContainerConnector):
    """Proxmox VE: pct exec."""

    kind, handle = "proxmox", "pct"

    @override
    @staticmethod
    def make_names_data(name: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        yield _names(PctConnector.handle, name)


class IncusConnector(ContainerConnector):
    """Incus: incus exec."""

    kind, handle = "incus", "incus"

    @override
    @staticmethod
    def make_names_data(name: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        yield _names(IncusConnector.handle, name)


def _names(handle: str, name: str | None) -> tuple[str, dict[str, Any], list[str]]:
    hypervisor, _, container = (name or "").rpartition(":")
    if not hypervisor or not container:
        raise InventoryError(f"@{handle}/{name}: write @{handle}/HYPERVISOR:CONTAINER, as @{handle}/pve01:gpu01")
    data = {"ssh_hostname": hypervisor, "container_name": container}
    return f"@{handle}/{hypervisor}:{container}", data, [f"@{handle}"]
