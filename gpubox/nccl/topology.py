"""The matrices of `nvidia-smi topo -m` (links) and `topo -p2p r` (peer-to-peer reads) as data."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from gpubox.support.errors import CannotTellError
from gpubox.support.reading import reader

CLOSENESS = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")
"""Links from the nearest to the farthest, in nvidia-smi's words; NV stands for any number of NVLinks (NV18)."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_COLUMN = re.compile(r"(GPU|NIC|mlx|bnxt|rdma|ibp)\S*")


@dataclass(frozen=True)
class Matrix:
    """What stands between each pair of cards, by their indices as nvidia-smi counts."""

    cards: int
    cells: dict[tuple[int, int], str]

    def between(self, cards: Iterable[int]) -> dict[tuple[int, int], str]:
        """The cells of every pair of these cards, lower index first."""
        return {pair: self.cells[pair] for pair in combinations(sorted(cards), 2)}


@reader("what nvidia-smi topo printed")
def parse(text: str) -> Matrix:
    """The matrix in the text; rows and columns of network cards are passed over, and terminal escape codes too.

    Errors: no matrix there, a row that is not whole: cannot tell.
    """
    lines = [_ESCAPES.sub("", line).split() for line in text.splitlines()]
    heads = next((_heads(words) for words in lines if _heads(words)), [])
    rows = {words[0]: words[1 : len(heads) + 1] for words in lines if words and words[0] in heads and words != heads}
    names = [name for name in heads if name.startswith("GPU")]
    if not names or any(len(rows.get(name, [])) != len(heads) for name in names):
        shown = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise CannotTellError(f"no whole matrix in what nvidia-smi printed: {shown[:100]!r}", "the output of topo -m")
    return Matrix(
        len(names),
        {(i, j): rows[a][heads.index(b)] for i, a in enumerate(names) for j, b in enumerate(names) if i != j},
    )


def distance(link: str) -> int:
    """Place of a link in CLOSENESS. Error: a word that nvidia-smi's legend does not have."""
    word = "NV" if re.fullmatch(r"NV\d+", link) else link
    if word not in CLOSENESS:
        raise CannotTellError(f"a link of the unknown kind {link!r}", f"one of: {', '.join(CLOSENESS)}")
    return CLOSENESS.index(word)


def worst(links: Iterable[str]) -> str:
    """The farthest of some links."""
    return max(links, key=distance)


def _heads(words: list[str]) -> list[str]:
    """The columns, when the words are the header: GPU and network columns stand before `CPU Affinity`."""
    if len(words) < 1 or not words[0].startswith("GPU"):
        return []
    columns = []
    for word in words:
        if not _COLUMN.fullmatch(word):
            break
        columns.append(word)
    followed = words[len(columns) :]
    return columns if not followed or followed[0] in {"CPU", "NUMA"} else []
