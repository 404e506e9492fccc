"""Texts of nvidia-smi topo as data, and the settings for communication that follow: one folder a case."""

from pathlib import Path

import pytest
import yaml

from gpubox.errors import CannotTellError
from gpubox.nccl.choose import choose
from gpubox.nccl.recipes import fitting, recipes
from gpubox.nccl.topology import Matrix, parse, worst

CASES = Path(__file__).parent.parent / "cases" / "topology"


@pytest.mark.parametrize("case", sorted(p.name for p in CASES.iterdir()))
@pytest.mark.pain("P56")
def test_settings_follow_from_place_links_and_cards_in_use(case: str) -> None:
    folder = CASES / case
    expected = yaml.safe_load((folder / "expected.yaml").read_text())
    links = parse((folder / "topo-m.txt").read_text())
    p2p = parse((folder / "topo-p2p.txt").read_text()) if (folder / "topo-p2p.txt").exists() else None
    cards = expected.get("cards", list(range(links.cards)))
    choice = choose(expected["place"], links, p2p, cards, recorded=expected.get("recorded", False))
    assert choice.environment == expected["environment"]
    assert choice.flags == expected.get("flags", {})
    assert expected.get("open", "") in choice.open
    assert bool(choice.open) == ("open" in expected)
    assert {reason.setting for reason in choice.reasons} == {*choice.environment, *choice.flags}


def test_a_row_that_is_cut_short_cannot_be_told() -> None:
    text = (CASES / "lxc-two-sockets" / "topo-m.txt").read_text()
    with pytest.raises(CannotTellError, match="no whole matrix"):
        parse("\n".join(text.splitlines()[:5]))


@pytest.mark.parametrize("text", ["", "No devices were found\n", "NVIDIA-SMI has failed because"])
def test_a_message_is_no_matrix(text: str) -> None:
    with pytest.raises(CannotTellError):
        parse(text)


def test_a_link_that_no_legend_has_cannot_be_told() -> None:
    with pytest.raises(CannotTellError, match="QPI"):
        worst(["PIX", "QPI"])


def test_pairs_of_some_cards_only() -> None:
    matrix = Matrix(3, {(i, j): f"{i}{j}" for i in range(3) for j in range(3) if i != j})
    assert matrix.between([2, 0]) == {(0, 2): "02"}


@pytest.mark.pain("P60")
def test_no_recipe_holds_an_empty_value_and_each_names_its_source() -> None:
    assert [recipe.name for recipe in recipes() if not all(recipe.environment.values()) or not recipe.source] == []


@pytest.mark.parametrize(
    ("p2p", "sockets", "has", "has_not"),
    [
        (True, 1, "low-latency", "low-latency-two-amd-sockets"),
        (True, 2, "low-latency-two-amd-sockets", ""),
        (False, 1, "hang-at-start", "low-latency"),
        (False, 2, "many-clients-two-sockets", "recorded-lxc"),
    ],
)
def test_recipes_fit_peer_to_peer_and_sockets(p2p: bool, sockets: int, has: str, has_not: str) -> None:
    names = [recipe.name for recipe in fitting(p2p, sockets)]
    assert has in names
    assert has_not not in names
