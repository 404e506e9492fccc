"""The rules again, with what only the box can say."""

import pytest

from gpubox.hosts import Box
from gpubox.operations.judged import judged, text
from gpubox.rules.facts import BoxFacts, CardFact
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings

RTX = CardFact(
    name="NVIDIA RTX PRO 6000 Blackwell Server Edition", compute_capability="12.0", memory_mib=97887, power_limit_w=600
)
GOOD = BoxFacts(
    cards=[RTX] * 8,
    driver="590.48.01",
    module_license="Dual MIT/GPL",
    virtualisation="lxc",
    p2p=True,
    distribution="debian12",
)


def box(name: str) -> Box:
    wish = profile.load(name)
    return Box("box", BoxSettings(profile=name, exposure="private-network"), wish, stack.load(wish.stack))


@pytest.mark.parametrize(
    ("name", "facts", "stops"),
    [
        ("glm-5-nvfp4", GOOD, ""),
        ("glm-5-nvfp4", GOOD.model_copy(update={"module_license": "NVIDIA"}), "open"),
        ("glm-5-nvfp4", GOOD.model_copy(update={"driver": "550.54.14"}), "driver"),
        ("glm-5-nvfp4", GOOD.model_copy(update={"cards": [RTX] * 4}), "card"),
        ("tiny-cpu", BoxFacts(), ""),
    ],
)
def test_what_only_the_box_can_say(name: str, facts: BoxFacts, stops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("gpubox.operations.judged.logger.info", told.append)
    monkeypatch.setattr("gpubox.operations.judged.host", type("Host", (), {"print_prefix": ""})())
    commands = list(judged._inner(box=box(name), look=lambda: facts))
    assert bool(commands) is bool(stops)
    assert stops in "".join(told)


def test_nothing_to_tell_is_no_line() -> None:
    assert text([]) == ""
