"""The reference records that ship with gpubox, and how runs are found."""

import re
from pathlib import Path

import pytest

from gpubox.bench import library, summary
from gpubox.bench import record as records
from gpubox.bench.record import Card, CardLoad, Machine, Record, Row

IDENTIFIERS = re.compile(r"GPU-[0-9a-f]{8}|[0-9a-f]{8}-[0-9a-f]{4}-|(\d{1,3}\.){3}\d{1,3}|/(home|work|tmp|opt)/|Serial")
HARMLESS = {"0.0.0.0", "127.0.0.1", "580.159.04"}  # noqa: S104 - text of a record, nothing is bound


@pytest.mark.parametrize("name", library.reference_names())
def test_a_reference_loads_and_says_what_it_is(name: str) -> None:
    record = library.find(name, Path("runs"))
    assert (record.id, record.label, record.kind) == (name, name, "reference")
    assert record.source
    assert record.rows


@pytest.mark.parametrize("name", library.reference_names())
def test_a_reference_carries_no_identifiers(name: str) -> None:
    text = records.dumps(library.find(name, Path("runs")))
    assert not [found for match in IDENTIFIERS.finditer(text) if (found := match[0]) not in HARMLESS]


def test_the_recorded_deployments_are_there() -> None:
    rates = {
        name: [row.output_tok_s for row in library.find(name, Path("runs")).rows]
        for name in ("glm-5-vm", "glm-5-lxc-before", "glm-5-lxc", "kimi-k2-thinking")
    }
    assert rates == {
        "glm-5-vm": [11, 195, 225],
        "glm-5-lxc-before": [880],
        "glm-5-lxc": [1950, 2800, 3740],
        "kimi-k2-thinking": [5816],
    }


def test_a_run_is_found_by_folder_and_its_newest_by_label(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"2026110{number}-box").mkdir()
        record = Record(id=f"2026110{number}-box", label="box")
        records.save(record, tmp_path / f"2026110{number}-box" / "record.json")
    assert library.find("20261101-box", tmp_path).id == "20261101-box"
    assert library.find("box", tmp_path).id == "20261102-box"


@pytest.mark.parametrize(("watts", "remarked"), [(250.0, True), (299.0, True), (310.0, False), (None, False)])
def test_power_below_half_of_the_limit_is_remarked(watts: float | None, remarked: bool) -> None:
    cards = [CardLoad(index=0, power_mean_w=watts)] if watts else None
    row = Row(concurrency=8, output_tok_s=1.0, cards=cards)
    machine = Machine(cards=[Card(index=0, name="x", power_limit_w=600.0)])
    assert bool(summary.remarks(Record(id="x", label="x", rows=[row], machine=machine))) is remarked


def test_repeats_have_a_spread_and_single_rows_an_assumed_noise() -> None:
    record = Record(id="x", label="x", rows=[Row(concurrency=1, output_tok_s=rate) for rate in (90.0, 110.0)])
    (point,) = summary.points(record)
    value = point.value(summary.output_tok_s)
    assert value is not None
    assert (value.mean, value.spread, round(value.noise, 2)) == (100, "±10 %", 0.2)
    assert summary.Value(100, 100, 100, 1).noise == summary.SINGLE
