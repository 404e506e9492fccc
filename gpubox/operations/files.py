"""Files that gpubox owns whole: written beside, synced and renamed, so that a reader sees the old or the new one."""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO

from pyinfra.api import FileUploadCommand, QuoteString, StringCommand
from pyinfra.context import ctx_host

from gpubox.operations import Commands, operation
from gpubox.operations.progress import connector_arguments
from gpubox.support.owned_file import Entry, OwnedFile


@operation()
def owned_files(
    files: Sequence[OwnedFile], look: Callable[[], Mapping[str, Entry]], absent: Sequence[str] = ()
) -> Commands:
    """
    Put files that differ, and remove those that must not be there.

    + files: what must lie on the host
    + look: gives path -> Entry of the host for all paths named here
    + absent: paths that must not exist
    """
    entries = look()
    for file in files:
        if not file.is_at(entries[file.path]):
            yield from put(file)
    for path in absent:
        if entries[path].kind != "absent":
            yield StringCommand("rm", "-f", QuoteString(path))


def put(file: OwnedFile) -> Commands:
    """The commands that put one file: made empty with its final mode first, filled, synced, renamed."""
    beside, owner = QuoteString(f"{file.path}.gpubox-new"), QuoteString(f"{file.user}:{file.group}")
    folder = QuoteString(file.path.rpartition("/")[0] or "/")
    yield StringCommand(
        "mkdir -p", folder, "&& rm -f", beside, "&& ( umask 077 && : >", beside, ") && chown", owner, beside
    )
    if file.mode.endswith("00") and (via := _way_of_an_upload(f"{file.path}.gpubox-new")) is not None:
        made_closed = StringCommand("rm -f", via, "&& ( umask 077 && : >", via, ")", _sudo=False, _su_user="")
        yield made_closed
    yield FileUploadCommand(BytesIO(file.data), f"{file.path}.gpubox-new")
    yield StringCommand("chmod", file.mode, beside, "&& sync", beside, "&& mv -fT", beside, QuoteString(file.path))


def _way_of_an_upload(path: str) -> QuoteString | None:
    """Where pyinfra lets a file pass when the run acts as another user than it logs in as; None: it does not.

    It sends the file there as the login user with that user's umask, and copies it; so what is secret must find it made
    for nobody else already (sftp keeps the mode of what is there).
    """
    current = ctx_host.get()
    if current is None:
        return None
    arguments = connector_arguments(current)
    if not arguments.get("_sudo") and not arguments.get("_su_user"):
        return None
    return QuoteString(current.get_temp_filename(path))
