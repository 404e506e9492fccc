"""Step `apt`: sources with one owner each, nobody in the way, a dpkg that is whole. Before anything is installed."""

from functools import partial

from gpubox.apt import sources
from gpubox.cuda import packages as cuda
from gpubox.deploy import step
from gpubox.facts.apt import AptFact, AptState
from gpubox.facts.once import read
from gpubox.hosts import Box
from gpubox.operations.apt import LOCK_TIMEOUT_S, one_owner, unlocked, whole
from gpubox.support.errors import GpuboxError


@step("Apt")
def apt(box: Box) -> None:
    """Bring apt and dpkg to where they work, whatever was left behind."""
    look = partial(read, AptFact, keyrings=())
    state = look()
    uri = cuda.repository(box.settings.cuda.source.uri, state.distribution)
    refuse_others_conflicts(box, state, uri)

    one_owner(
        name="One owner of each source",
        uri=uri,
        owner=cuda.SOURCE_FILE,
        own_lists=[path for path in state.sources if cuda.is_own_list(path)],
        look=look,
    )
    unlocked(name="Nobody holds apt", limit_s=LOCK_TIMEOUT_S, look=look)
    whole(name="dpkg is whole", look=look)


def refuse_others_conflicts(box: Box, state: AptState, uri: str) -> None:
    """End the run where apt would read nothing at all, because of sources that are not gpubox's to choose between."""
    found = sources.conflicts(s for path, text in state.sources.items() for s in sources.parse(path, text))
    for conflict in found:
        if sources.is_same(conflict.uri, uri):
            continue
        files = ", ".join(f"{file} ({key or 'no key'})" for file, key in conflict.signed_by)
        raise GpuboxError(
            f"{box.name}: {conflict.uri} {conflict.suite} has entries with different Signed-By: {files}",
            "one entry: apt reads no source at all while they differ",
            "remove one of them; it is not gpubox's, so it is not chosen here",
        )
