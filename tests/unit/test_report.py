"""The report: whole in itself, charts for what was measured, and words for what was not."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from gpubox.bench import library, report
from gpubox.bench.record import Latency, Record, Row
from gpubox.bench.report import charts
from gpubox.cli.report import command

H200 = [library.find(name, Path("runs")) for name in ("h200-uncapped-graph", "h200-cap64-graph")]


def test_the_page_needs_nothing_from_outside() -> None:
    page = report.page(H200)
    assert not re.findall(r"<script|<link[^>]+href=\"(?!data:)|\bsrc=|url\((?!#)|@import", page)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert len(page) < 500_000


def test_every_measured_figure_has_a_chart_in_the_pages_own_colours() -> None:
    for chart in charts.draw(H200):
        drawing = ElementTree.fromstring(chart.svg)  # noqa: S314 - our own text
        assert drawing.get("aria-label") == chart.title
        assert "var(--run-0)" in chart.svg
        assert "var(--run-1)" in chart.svg
        assert not re.search(r"#0[a1]0[b2]", chart.svg)


def test_ids_of_different_charts_do_not_meet() -> None:
    ids = [found for chart in charts.draw(H200) for found in set(re.findall(r'<clipPath id="([^"]+)"', chart.svg))]
    assert len(ids) == len(set(ids))


def test_what_was_not_measured_is_said() -> None:
    record = Record(id="x", label="no cards", rows=[Row(concurrency=1, output_tok_s=5.0)])
    by_title = {chart.title.split(",")[0]: chart for chart in charts.draw([record])}
    assert by_title["Power of one card (mean)"].svg == ""
    assert by_title["Power of one card (mean)"].note == "not measured: no cards"
    assert "not measured" in report.page([record])


def test_a_figure_at_an_unknown_number_of_clients_is_not_called_unmeasured() -> None:
    record = Record(id="x", label="peak", rows=[Row(output_tok_s=5816.0)])
    assert charts.draw([record])[0].note == "for an unknown number of clients: peak (5,816)"


def test_failures_that_nobody_recorded_are_not_none() -> None:
    record = Record(id="x", label="peak", rows=[Row(concurrency=1, output_tok_s=5816.0)])
    assert "<td>0</td>" not in report.page([record])


@pytest.mark.parametrize(
    ("clients", "shown"),
    [
        ([1, 8, 64, 256, 512, 1024], ["1", "8", "64", "256", "1,024"]),
        ([1, 2, 4, 8], ["1", "2", "4", "8"]),
        ([64, 128, 192, 256, 384, 512, 640, 768, 896, 1024], ["64", "128", "192", "256", "384", "512", "1,024"]),
        ([7], ["7"]),
    ],
)
def test_numbers_of_clients_do_not_meet_below_a_chart(clients: list[int], shown: list[str]) -> None:
    record = Record(id="x", label="x", rows=[Row(concurrency=value, output_tok_s=1.0) for value in clients])
    drawn = ElementTree.fromstring(charts.draw([record])[0].svg)  # noqa: S314 - our own text
    texts = [text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.replace(",", "").isdigit()][: len(shown)] == shown


def test_a_narrow_range_has_numbers_too() -> None:
    rows = [Row(concurrency=1, tpot_ms=Latency(median=23.0)), Row(concurrency=2, tpot_ms=Latency(median=41.0))]
    tpot = charts.draw([Record(id="x", label="x", rows=rows)])[2]
    assert re.findall(r">(\d+)</text>", tpot.svg)[2:] == ["30", "40"]


def test_lines_are_told_apart_without_colours() -> None:
    samples = [charts.sample(i) for i in range(charts.COLOURS)]
    assert len({sample.replace(f"run-{i}", "") for i, sample in enumerate(samples)}) == charts.COLOURS


def test_a_row_that_did_not_finish_is_marked_and_not_drawn() -> None:
    rows = [Row(concurrency=1, output_tok_s=5.0), Row(concurrency=8, output_tok_s=99.0, status="partial")]
    record = Record(id="x", label="x", rows=rows, verdict="failed", problem="8 clients: gone")
    assert "8" not in re.findall(r">(\d+)</text>", charts.draw([record])[0].svg)
    assert 'class="bad">partial' in report.page([record])
    assert "8 clients: gone" in report.page([record])


def test_names_from_other_peoples_files_are_text() -> None:
    assert "<b>" not in report.page([Record(id="x", label="<b>x</b>", notes=["<b>"])])


@pytest.mark.parametrize(("words", "code"), [(["h200-cap64-graph", "glm-5-lxc"], 0), ([], 1), (["nowhere"], 1)])
def test_the_command(words: list[str], code: int, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    result = CliRunner().invoke(command, [*words, "--output", str(output), "--runs", str(tmp_path)])
    assert result.exit_code == code
    assert output.exists() is (code == 0)
    assert not list(tmp_path.glob("*.part"))
