"""Texts of nvidia-smi topo as data, and the settings for communication that follow: one folder a case."""

from pathlib import Path

import pytest
import yaml

from gpubox.nccl.choose import Choice, choose, differing, in_use
from gpubox.nccl.levels import rank
from gpubox.nccl.recipes import fitting, recipes
from gpubox.nccl.topology import Matrix, parse, worst
from gpubox.settings.profile import FlagValue
from gpubox.support.errors import CannotTellError

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


def test_a_link_that_no_legend_has_leaves_the_choice_open() -> None:
    links, p2p = (Matrix(2, {(0, 1): word, (1, 0): word}) for word in ("QPI", "OK"))
    choice = choose("bare", links, p2p, [0, 1])
    assert (choice.environment, "QPI" in choice.open) == ({}, True)


def test_a_card_that_the_matrix_lacks_leaves_the_choice_open() -> None:
    links, p2p = (Matrix(2, {(0, 1): word, (1, 0): word}) for word in ("PIX", "OK"))
    assert choose("bare", links, p2p, [1, 2]).open


def test_many_broken_pairs_are_counted_not_listed() -> None:
    cells = {(i, j): "NS" for i in range(8) for j in range(8) if i != j}
    choice = choose("bare", Matrix(8, dict.fromkeys(cells, "SYS")), Matrix(8, cells), range(8))
    assert choice.why.startswith("the driver knows no peer-to-peer between cards 0-1: NS, 0-2: NS")
    assert "and 24 more pairs" in choice.why


@pytest.mark.parametrize(
    ("visible", "count", "used"),
    [
        ("", 2, [0, 1]),
        ("", 8, [0, 1, 2, 3]),
        ("2,3", 2, [2, 3]),
        ("3,2,1", 2, [2, 3]),
        ("GPU-5d3f", 1, [0, 1, 2, 3]),
        ("6,7", 2, [0, 1, 2, 3]),
    ],
)
def test_the_cards_in_use_are_those_that_the_server_takes(visible: str, count: int, used: list[int]) -> None:
    assert in_use({"CUDA_VISIBLE_DEVICES": visible} if visible else {}, count, range(4)) == used


@pytest.mark.parametrize(
    ("value", "level"), [("SYS", 5), ("5", 5), ("4", 5), ("3", 4), ("0", 0), ("sys", None), ("", None)]
)
def test_levels_are_read_as_nccl_reads_them(value: str, level: int | None) -> None:
    assert rank(value) == level


OFF = Choice({"NCCL_P2P_DISABLE": "1"}, {"disable-custom-all-reduce": True})


@pytest.mark.parametrize(
    ("choice", "environment", "flags", "told"),
    [
        (Choice({"NCCL_P2P_LEVEL": "PHB"}), {"NCCL_P2P_LEVEL": "SYS"}, {}, []),
        (Choice({"NCCL_P2P_LEVEL": "SYS"}), {"NCCL_P2P_LEVEL": "5"}, {}, []),
        (Choice({"NCCL_P2P_LEVEL": "PIX"}), {}, {}, []),
        (Choice({"NCCL_P2P_LEVEL": "SYS"}), {}, {}, ["NCCL_P2P_LEVEL=(not set)"]),
        (Choice({"NCCL_P2P_LEVEL": "SYS"}), {"NCCL_P2P_LEVEL": "PHB"}, {}, ["NCCL_P2P_LEVEL=PHB"]),
        (
            Choice({"NCCL_P2P_LEVEL": "SYS"}),
            {"NCCL_P2P_LEVEL": "SYS", "NCCL_P2P_DISABLE": "1"},
            {},
            ["NCCL_P2P_DISABLE=1"],
        ),
        (OFF, {"NCCL_P2P_DISABLE": "1"}, {"disable-custom-all-reduce": True}, []),
        (OFF, {"NCCL_P2P_DISABLE": "1"}, {}, ["no --disable-custom-all-reduce"]),
        (Choice(), {"NCCL_P2P_LEVEL": "SYS"}, {}, []),
    ],
)
def test_a_profile_differs_only_where_the_effect_does(
    choice: Choice, environment: dict[str, str], flags: dict[str, FlagValue], told: list[str]
) -> None:
    assert differing(choice, environment, flags) == told


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
