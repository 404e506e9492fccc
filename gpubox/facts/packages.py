"""OS packages as dpkg knows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand

from gpubox.support.reading import reader


@dataclass(frozen=True)
class Package:
    """One package that dpkg has heard of."""

    version: str
    status: str
    """dpkg's three letters: `ii` installed, `rc` removed, `iU`/`iF` half-way; `hi` installed and held."""

    @property
    def installed(self) -> bool:
        """Wholly installed, held or not."""
        return self.status[1:2] == "i" and self.status[2:3] in {"", " "}

    @property
    def held(self) -> bool:
        """Marked by `apt-mark hold`."""
        return self.status.startswith("h")


def question(names: Sequence[str]) -> StringCommand:
    """The read as a question for gpubox.facts.answers: dpkg-query ends with 1 when it has not heard of one of them."""
    return StringCommand(
        "dpkg-query -W -f '${Package}\\t${Version}\\t${db:Status-Abbrev}\\n'",
        *(QuoteString(name) for name in names),
        "2>/dev/null; test $? -le 1",
    )


@reader("packages of dpkg")
def parse(lines: list[str]) -> dict[str, Package]:
    """Name -> package; a name that dpkg has not heard of is not in it."""
    rows = (line.split("\t") for line in lines if line.count("\t") == 2)
    return {name: Package(version, status) for name, version, status in rows}
