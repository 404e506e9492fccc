"""A short sweep of the box's own service: the record says what was measured, on what, and from which release."""

from pathlib import Path

from click.testing import CliRunner
from testinfra.host import Host

from gpubox.bench import library
from gpubox.cli.bench import command
from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.server.command import argv


def test_the_service_is_measured_from_its_own_venv(host: Host, box: Box, boxes: Inventory, tmp_path: Path) -> None:
    words = [box.name, "--inventory", str(boxes.path)]
    words += ["--concurrency", "1,4", "--repeat", "1", "--input-tokens", "32", "--output-tokens", "32"]
    result = CliRunner().invoke(command, [*words, "--runs", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (record,) = library.measured(tmp_path)
    assert (record.host, record.verdict, record.server.profile) == (box.name, "complete", box.settings.profile)
    assert [(row.concurrency, row.completed, row.status) for row in record.rows] == [
        (1, 2, "complete"),
        (4, 8, "complete"),
    ]
    assert record.server.release == host.file("/var/lib/gpubox/current").linked_to.rsplit("/", 1)[-1]
    assert (record.server.argv or [])[1:] == argv(box.profile, box.settings.venv_path)[1:]
    assert [probe.problem for probe in record.probes] == [None, None]
    assert all(row.cards is not None for row in record.rows) or str(record.machine.cards_note).startswith(
        "not measured"
    )
    kept = host.file(f"/var/lib/gpubox/runs/{record.id}/record.json")
    assert kept.content_string == (tmp_path / record.id / "record.json").read_text()
