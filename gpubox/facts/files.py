"""What lies at given paths: kind, mode, owner, digest. One command for all of them."""

from collections.abc import Sequence

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact
from gpubox.support.owned_file import Entry
from gpubox.support.reading import reader

_LOOK = (
    'if [ -L "$p" ]; then printf "link\\t%s\\t" "$(readlink "$p")"; '
    'elif [ -f "$p" ]; then printf "file\\t%s\\t%s" "$(stat -c "%a %U %G" "$p")" "$(sha256sum <"$p" | cut -c1-64)"; '
    'elif [ -d "$p" ]; then printf "directory\\t%s\\t" "$(stat -c "%a %U %G" "$p")"; '
    'elif [ -e "$p" ]; then printf "other\\t\\t"; else printf "absent\\t\\t"; fi; printf "\\t%s\\n" "$p"'
)


def question(paths: Sequence[str]) -> StringCommand:
    """The read as a question for gpubox.facts.answers."""
    return StringCommand("for p in", *(QuoteString(path) for path in paths), "; do", _LOOK, "; done")


@reader("what lies at paths")
def parse(lines: list[str]) -> dict[str, Entry]:
    """Path -> entry."""
    found = {}
    for line in filter(None, lines):
        kind, attributes, digest, path = line.split("\t", 3)
        if kind == "link":
            found[path] = Entry(kind, target=attributes)
        else:
            mode, user, group = attributes.split() or ("", "", "")
            found[path] = Entry(kind, mode, user, group, digest)
    return found


class Files(Fact[dict[str, Entry]]):
    """Path -> Entry for each of `paths`; what is not there is an entry of kind `absent`."""

    @override
    def command(self, paths: Sequence[str]) -> StringCommand:
        return question(paths)

    @override
    def process(self, output: list[str]) -> dict[str, Entry]:
        return parse(output)
