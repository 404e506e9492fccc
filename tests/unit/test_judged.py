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


ASKED = ["card 0000:01:00.0: reboot or power cycle its machine: NVRM: Xid (PCI:0000:01:00): 154, ..."]


@pytest.mark.parametrize(
    ("own", "above", "stops"),
    [(None, ASKED, True), (None, [], False), (None, None, False), ([], ASKED, False), (ASKED, [], True)],
)
@pytest.mark.pain("P91")
def test_nothing_is_started_into_a_card_that_waits_for_a_reboot(
    own: list[str] | None, above: list[str] | None, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("gpubox.operations.judged.logger.info", told.append)
    monkeypatch.setattr("gpubox.operations.judged.host", type("Host", (), {"print_prefix": ""})())
    facts = GOOD.model_copy(update={"recovery": own})
    commands = list(judged._inner(box=box("glm-5-nvfp4"), look=lambda: facts, above=lambda: above))
    assert bool(commands) is stops
    assert ("reboot or power cycle" in "".join(told)) is stops


def test_nothing_to_tell_is_no_line() -> None:
    assert text([]) == ""
