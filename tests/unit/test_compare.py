"""Two runs side by side: noise, ratios, settings, causes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubox.bench import library
from gpubox.bench.compare import compare
from gpubox.bench.differences import UNKNOWN, differences
from gpubox.bench.record import Card, Latency, Machine, Record, Row, Server
from gpubox.cli.compare import command

CASES = Path(__file__).parent.parent / "cases" / "bench"


def run(*rates: tuple[int, float, float], argv: list[str] | None = None, **server: str) -> Record:
    """A run with rows of (clients, output tok/s, median TTFT in ms)."""
    rows = [
        Row(concurrency=c, input_tokens=64, output_tokens=64, prompts=2 * c, output_tok_s=t, ttft_ms=Latency(median=w))
        for c, t, w in rates
    ]
    return Record(id="x", label="x", rows=rows, server=Server(argv=argv, environment=server or None))


@pytest.mark.parametrize(
    ("base", "other", "ratio", "within"),
    [
        ([100, 102], [101, 103], 1.01, True),
        ([100, 102], [150, 152], 1.5, False),
        ([100, 102], [67, 68], 0.67, False),
        ([100, 150], [140, 150], 1.16, True),
        ([100], [106], 1.06, True),
        ([100], [110], 1.1, False),
        ([100, 100], [104, 104], 1.04, True),
        ([100, 100], [105, 105], 1.05, False),
    ],
)
def test_noise_is_told_from_a_difference(base: list[float], other: list[float], ratio: float, within: bool) -> None:
    found = compare(run(*((8, rate, 1) for rate in base)), run(*((8, rate, 1) for rate in other)))
    (line,) = found.lines
    assert line.output_tok_s is not None
    assert round(line.output_tok_s.ratio, 2) == ratio
    assert line.output_tok_s.within_noise is within


CAP = ["--max-running-requests", "4"]


@pytest.mark.parametrize(
    ("free", "seen"),
    [
        ([(4, 100, 50), (32, 300, 90)], True),
        ([(4, 100, 50), (32, 102, 90)], False),
        ([(4, 100, 50), (32, 300, 1700)], False),
        ([(4, 300, 50)], False),
    ],
)
def test_a_cap_is_named_when_its_mark_is_there(free: list[tuple[int, float, float]], seen: bool) -> None:
    capped = run((4, 100, 50), (32, 110, 1800), argv=CAP)
    found = compare(capped, run(*free, argv=["--tp", "1"]))
    strengths = [cause.strength for cause in found.causes if cause.setting == "max-running-requests"]
    assert strengths == (["seen"] if seen else ["known"])


def test_the_capped_run_may_stand_on_either_side() -> None:
    capped, free = run((32, 110, 1800), argv=CAP), run((32, 300, 90), argv=["--tp", "1"])
    why = compare(free, capped).causes[0].why
    assert "28 wait in the queue" in why
    assert "110 against 300 tok/s" in why


def test_without_a_difference_nothing_is_named() -> None:
    assert compare(run((32, 110, 1800), argv=CAP), run((32, 300, 90), argv=CAP)).causes == []


def test_unequal_prompts_and_unfinished_rows_are_pointed_out() -> None:
    base, other = run((8, 100, 1)), run((8, 100, 1))
    row = other.rows[0].model_copy(update={"prompts": 99, "status": "partial"})
    found = compare(base, other.model_copy(update={"rows": [row]}))
    assert [(line.partial, line.prompts_differ) for line in found.lines] == [(True, True)]
    assert found.best is None
    assert any("unequal numbers of prompts" in caveat for caveat in found.caveats)


def test_what_was_not_recorded_is_no_difference() -> None:
    known, unknown = run(argv=["--tp", "8"], NCCL_P2P_LEVEL="5"), run()
    assert differences([known, unknown]) == []
    third = run(argv=["--tp-size", "4"], NCCL_P2P_LEVEL="PHB")
    assert [(one.name, one.values) for one in differences([known, unknown, third])] == [
        ("tp-size", ["8", UNKNOWN, "4"]),
        ("NCCL_P2P_LEVEL", ["5", UNKNOWN, "PHB"]),
    ]


def test_a_typed_flag_is_compared_with_a_reported_one() -> None:
    typed = run(argv=["--tp", "8", "--trust-remote-code"])
    reported = Record(
        id="y", label="y", server=Server(server_args={"tp_size": 4, "trust_remote_code": True, "dtype": "auto"})
    )
    assert [(one.name, one.values) for one in differences([typed, reported])] == [("tp-size", ["8", "4"])]


def test_what_the_other_server_was_told_is_compared_though_it_was_typed_nowhere() -> None:
    """A log tells all 551 settings: what is SGLang's own default, or what it worked out for itself, does not count."""
    typed = run(argv=["--model-path", "m"])
    told = {"max_running_requests": 64, "disable_cuda_graph": True, "stream_interval": 8}
    worked_out = {"attention_backend": "triton", "mem_fraction_static": 0.8, "load_balance_method": "round_robin"}
    log = Record(id="y", label="y", server=Server(server_args={**told, **worked_out, "schedule_policy": "fcfs"}))
    assert {one.name: one.values for one in differences([typed, log])} == {
        "disable-cuda-graph": [None, "true"],
        "max-running-requests": [None, "64"],
        "stream-interval": [None, "8"],
    }


def test_auto_is_what_nobody_set() -> None:
    found = compare(run(argv=["--kv-cache-dtype", "auto"]), run(argv=["--tp", "2"]))
    assert [cause.setting for cause in found.causes] == ["tp-size"]


def test_a_run_without_rows_is_said_to_have_none() -> None:
    found = compare(run((1, 1, 1)), run(argv=["--tp", "2"]).model_copy(update={"label": "log"}))
    assert "log: no rows, only settings" in found.caveats


def test_cards_packages_and_release_are_settings_too() -> None:
    one = Machine(cards=[Card(index=i, name="H200") for i in range(2)], packages={"torch": "2.11", "idna": "1"})
    two = Machine(cards=[Card(index=0, name="H200")], packages={"torch": "2.13", "idna": "2"})
    found = differences([Record(id="a", label="a", machine=one), Record(id="b", label="b", machine=two)])
    assert [(item.kind, item.name) for item in found] == [
        ("machine", "cards"),
        ("package", "torch"),
        ("package", "1 packages that hardly bear on speed"),
    ]
    assert found[0].values == ["2 x H200", "1 x H200"]


def test_the_recorded_gain_is_compared_by_command() -> None:
    result = CliRunner().invoke(command, ["glm-5-lxc-before", "glm-5-lxc", "--json"])
    (found,) = json.loads(result.output)
    assert round(found["best"]["ratio"], 2) == 4.25
    assert {cause["setting"] for cause in found["causes"]} == {
        "disable-cuda-graph",
        "max-running-requests",
        "source patches",
    }


def test_the_two_expert_backends_are_equal_within_noise() -> None:
    found = compare(library.find("glm-5-vm", Path("runs")), library.find("glm-5-vm-cutedsl", Path("runs")))
    assert [line.output_tok_s.within_noise for line in found.lines if line.output_tok_s] == [True, True]


def test_on_the_h200_cap_and_graphs_are_told_apart() -> None:
    base = library.find("h200-uncapped-graph", Path("runs"))
    capped = compare(base, library.find("h200-cap64-graph", Path("runs")))
    graphs_off = compare(base, library.find("h200-uncapped-nograph", Path("runs")))
    assert capped.causes[0].strength == "seen"
    assert {cause.strength for cause in graphs_off.causes} == {"known"}
    assert not any(line.prompts_differ for line in [*capped.lines, *graphs_off.lines])


def test_other_peoples_files_are_compared() -> None:
    names = [str(CASES / "dataclass.log"), str(CASES / "dictionary.log"), "kimi-k2-thinking"]
    result = CliRunner().invoke(command, names)
    assert result.exit_code == 0
    assert "flag tp-size" in result.output
    assert "sk-not-for-you" not in result.output
    assert "note: dataclass: its log: at best 5,816 tok/s" in result.output


@pytest.mark.parametrize(
    ("words", "told"), [(["glm-5-lxc"], "two runs at least"), (["glm-5-lxc", "glm-5-lcx"], "did you mean glm-5-lxc")]
)
def test_wrong_words_are_explained(words: list[str], told: str) -> None:
    result = CliRunner().invoke(command, words)
    assert result.exit_code != 0
    assert told in result.output
