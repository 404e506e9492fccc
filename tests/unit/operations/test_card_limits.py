"""The operation `card_limits`: data, files and cards in, commands out; nothing where nothing is
asked for."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import OperationError
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import ctx_host

from gpubox.facts.card_limits import LimitsFact, LimitsState
from gpubox.hypervisor import limits
from gpubox.hypervisor.limits import FILES, SCRIPT, UNIT, UNIT_FILE, LimitedCard
from gpubox.operations.card_limits import _check, card_limits
from gpubox.settings.host import CardLimit
from gpubox.support.owned_file import Entry
from tests.unit.test_facts import printed

pytestmark = pytest.mark.pain("P94")

CARD = LimitedCard("GPU-1a", "0000:01:00.0", "NVIDIA RTX PRO 6000", 450.0, 600.0, 300.0, 600.0, 180.0, 405.0)
STATE = LimitsState([CARD], "", enabled=True, active=True, stale=False)
DATA = {"all": CardLimit(power_w=450)}
ABSENT = dict.fromkeys(FILES, Entry("absent"))
RESTART = f"systemctl restart {UNIT} || {{ journalctl -u {UNIT} -n 20 -o cat --no-pager -q >&2; exit 1; }}"


@pytest.fixture(autouse=True)
def _on_a_host() -> Iterator[None]:
    with ctx_host.use(SimpleNamespace(name="pve01", print_prefix="[pve01] ", current_op_global_arguments={})):
        yield


def there(data: dict[str, CardLimit]) -> dict[str, Entry]:
    return {
        path: Entry("file", "755" if path == SCRIPT else "644", "root", "root", sha256(text.encode()).hexdigest())
        for path, text in limits.texts(data).items()
    }


def commands(
    data: dict[str, CardLimit], entries: dict[str, Entry], state: LimitsState, has_driver: bool = True
) -> list[str]:
    """The commands; a file that is put is its last one, what runs on the controller its
    function's name."""
    found: list[str] = []
    operation: Any = card_limits
    asked = {"there": lambda: entries, "look": lambda: state, "has_driver": lambda: has_driver}
    for command in operation._inner(limits=data, **asked):
        if isinstance(command, StringCommand):
            text = command.get_raw_value()
            found += [] if text.startswith(("mkdir -p", "chmod")) else [text]
            found += [f"put {text.rpartition(' ')[2]}"] if text.startswith("chmod") else []
        elif isinstance(command, FunctionCommand):
            found.append(command.function.__name__)
    return found


def test_without_the_setting_nothing_is_asked_and_nothing_is_done() -> None:
    operation: Any = card_limits

    def never() -> LimitsState:
        raise AssertionError("asked the cards")

    assert list(operation._inner(limits={}, there=lambda: ABSENT, look=never, has_driver=lambda: False)) == []


@pytest.mark.parametrize(
    ("entries", "state", "expected"),
    [
        pytest.param(there(DATA), STATE, [], id="as it should be"),
        pytest.param(
            there(DATA), replace(STATE, cards=[replace(CARD, power_w=600.0)]), [RESTART, "_check"], id="drift"
        ),
        pytest.param(there(DATA), replace(STATE, active=False), [RESTART, "_check"], id="not run since the boot"),
        pytest.param(there(DATA), replace(STATE, enabled=False), [f"systemctl enable {UNIT}"], id="disabled"),
        pytest.param(there(DATA), replace(STATE, stale=True), ["systemctl daemon-reload"], id="not read yet"),
        pytest.param(
            {**there(DATA), UNIT_FILE: Entry("absent")},
            STATE,
            [f"put {UNIT_FILE}", "systemctl daemon-reload", RESTART, "_check"],
            id="the unit's file is gone",
        ),
        pytest.param(
            ABSENT,
            replace(STATE, enabled=False, active=False, cards=[replace(CARD, power_w=600.0)]),
            [*(f"put {path}" for path in FILES), f"systemctl enable {UNIT}", RESTART, "_check"],
            id="for the first time",
        ),
        pytest.param(
            there({"all": CardLimit(power_w=400), "02:00.0": CardLimit(power_w=300)}),
            STATE,
            [
                f"put {SCRIPT}",
                "nvidia-smi -i GPU-1a -rgc >/dev/null 2>&1 || true",
                "nvidia-smi -i GPU-1a -rmc >/dev/null 2>&1 || true",
                RESTART,
                "_check",
            ],
            id="other data",
        ),
    ],
)
def test_what_is_done(entries: dict[str, Entry], state: LimitsState, expected: list[str]) -> None:
    assert commands(DATA, entries, state) == expected


def test_a_card_that_the_data_no_longer_names_gets_its_default_back() -> None:
    other = replace(CARD, uuid="GPU-2b", pci="0000:02:00.0", power_w=300.0)
    found = commands({"01:00.0": CardLimit(power_w=450)}, there(DATA), replace(STATE, cards=[CARD, other]))
    assert "nvidia-smi -i GPU-2b -pl 600 >/dev/null 2>&1 || true" in found
    assert not any("GPU-1a -pl" in line for line in found)


def test_without_the_setting_what_an_earlier_one_brought_goes() -> None:
    found = commands({}, there(DATA), STATE)
    assert found[0] == "nvidia-smi -i GPU-1a -pl 600 >/dev/null 2>&1 || true"
    assert found[-3:] == [
        f"systemctl disable --now {UNIT} 2>/dev/null || true",
        f"rm -f {' '.join(FILES)}",
        "systemctl daemon-reload",
    ]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (replace(STATE, cards=[], trouble="NVIDIA-SMI has failed"), "nvidia-smi said: NVIDIA-SMI has failed"),
        (replace(STATE, cards=[replace(CARD, highest_w=400.0)]), "power_w is 450, it allows 300.0 to 400.0"),
        (replace(STATE, cards=[replace(CARD, power_w=None)]), "no power limit that can be set"),
    ],
)
def test_what_cannot_be_set_is_refused_before_anything_is_written(state: LimitsState, says: str) -> None:
    with pytest.raises(OperationError, match=says):
        commands(DATA, ABSENT, state)


def test_a_container_is_told_where_its_driver_is() -> None:
    with pytest.raises(OperationError, match="the driver is its hypervisor's"):
        commands(DATA, ABSENT, STATE, has_driver=False)


def test_the_cards_are_asked_after_it() -> None:
    on: Any = SimpleNamespace(print_prefix="[pve01] ")
    nobody: Any = None
    assert _check(nobody, on, DATA, lambda: STATE)
    assert not _check(nobody, on, DATA, lambda: replace(STATE, cards=[replace(CARD, power_w=600.0)]))


def test_the_fact() -> None:
    line = "GPU-1a, 00000000:01:00.0, NVIDIA RTX PRO 6000, 450.00, 600.00, 300.00, 600.00, 180, 405"
    unit = "UnitFileState=enabled\nActiveState=active\nNeedDaemonReload=no"
    assert LimitsFact().process(printed(cards=line, unit=unit, others="")).cards == [CARD]
    nothing = "UnitFileState=\nActiveState=inactive\nNeedDaemonReload=no"
    found = LimitsFact().process(
        printed(cards="sh: nvidia-smi: not found", unit=nothing, others=(f"/etc/rc.local\n{SCRIPT}\n", 2))
    )
    assert (found.cards, found.trouble, found.enabled) == ([], "sh: nvidia-smi: not found", False)
    assert found.others == ("/etc/rc.local",)


def test_others_that_set_limits_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", logger="pyinfra"):
        assert commands(DATA, there(DATA), replace(STATE, others=("/etc/rc.local",))) == []
    assert "/etc/rc.local sets limits of cards, too" in caplog.text
