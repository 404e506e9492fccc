"""gpubox bench: measure a server and keep the record."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from gpubox import inventory
from gpubox.bench import show, sweep
from gpubox.bench.flags import words_of
from gpubox.bench.place import RUNS_ON_BOX, Place, here, on_box
from gpubox.bench.record import Record, dumps
from gpubox.cli import _errors
from gpubox.cli._files import OutputFolder
from gpubox.hosts import Box
from gpubox.remote.bench.plan import Plan
from gpubox.support.errors import CannotTellError, GpuboxError

SERVICE, LOCAL_PORT = "sglang.service", 30000
SWEEP = "1,8,64,256,512,1024"
_PLAN_KEYS = ("concurrency", "input_tokens", "output_tokens", "prompts_per_client", "repeat", "tokenizer")
KEY_VARIABLE = "GPUBOX_API_KEY"


def _numbers(_ctx: click.Context, _option: click.Parameter, value: str) -> list[int]:
    words = [word.strip() for word in value.split(",")]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise click.BadParameter(f"{value!r}: positive whole numbers with commas between, as 1,8,64")
    return list(dict.fromkeys(int(word) for word in words))


@click.command()
@click.argument("words", nargs=-1, metavar="[HOST | -- SERVER_FLAGS...]")
@click.option("--url", help="Measure the server at this URL instead of HOST's own service.")
@click.option("--local", is_flag=True, help="Start a server here as a child process; its flags stand after `--`.")
@click.option("--python", type=click.Path(exists=True, dir_okay=False), help="A Python with SGLang, to run here.")
@click.option(
    "--concurrency",
    callback=_numbers,
    metavar="N,N,...",
    default=SWEEP,
    show_default=True,
    help="Clients.",
)
@click.option("--input-tokens", type=click.IntRange(1), default=256, show_default=True)
@click.option("--output-tokens", type=click.IntRange(1), default=256, show_default=True)
@click.option("--prompts-per-client", type=click.IntRange(1), default=2, show_default=True, help="In every row alike.")
@click.option("--repeat", type=click.IntRange(1), default=3, show_default=True, help="Whole sweeps, for the spread.")
@click.option("--patience", type=click.FloatRange(1), default=300, show_default=True, help="Seconds with nothing done.")
@click.option("--question", help="Asked before and after, at temperature 0. Default: the profile's.")
@click.option("--answer", help="Its known answer. Default: the profile's, else any plausible one.")
@click.option("--tokenizer", help="Path or hub name, where the client cannot read the server's own.")
@click.option("--label", help="What to call the run. Default: the host.")
@click.option("--runs", type=OutputFolder(), default="runs", show_default=True)
@click.option(
    "--inventory", type=click.Path(dir_okay=False, path_type=Path), help="Default: inventory/lxc.py, or the only one."
)
@click.option("--json", "as_json", is_flag=True, help="Print the record.")
def command(words: tuple[str, ...], label: str | None, runs: Path, as_json: bool, **given: Any) -> None:
    """Measure a server over rising numbers of clients and keep the record below runs/.

    \b
    gpubox bench HOST                        the service of a box of the inventory
    gpubox bench HOST --url URL              another server, with the client on HOST
    gpubox bench --url URL --python PYTHON   another server, with the client here
    gpubox bench --local --python PYTHON -- --model-path PATH ...   a server of our own, here

    The client is SGLang's own bench_serving. A server that asks for an API key: put it into GPUBOX_API_KEY.
    Exit codes: 0 every row complete, 1 not so, 2 the server could not be reached or asked.
    """
    subject = _subject(words, given)
    if not given["url"]:
        subject.port()
    name = label or subject.name
    if not all(char.isalnum() or char in "._-" for char in name):
        raise GpuboxError(f"label {name!r}", "letters, digits, dot, dash and underscore: it becomes a folder's name")
    folder = sweep.new_folder(runs, name).resolve()
    place, plan = subject.plan(folder)
    blank = sweep.blank(folder, name, subject.box.name if subject.box else None, subject.profile)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends in as good order as Ctrl-C
    with show.Progress(place.name, plan) as progress:
        record = sweep.measure(place, plan, blank, folder, progress.event)
    click.echo(dumps(record) if as_json else show.table(record), nl=False)
    try:
        _verdict(record, folder)
    except GpuboxError as error:
        if as_json:  # the record says it, too
            _errors.after_result(error)
        raise


@dataclass(frozen=True)
class _Subject:
    """What is to be measured, and from where."""

    name: str
    given: dict[str, Any]
    box: Box | None = None
    server_flags: tuple[str, ...] = ()
    profile: str | None = None

    def plan(self, folder: Path) -> tuple[Place, Plan]:
        """The place and the plan, once the run has its folder."""
        given = self.given
        raw = str(folder / "raw")
        place = on_box(self.box) if self.box else here(given["python"])
        known = self.box.profile.known_answer if self.box and not given["url"] else None
        plan = Plan(
            folder=f"{RUNS_ON_BOX}/{folder.name}" if self.box else raw,
            url=(given["url"] or f"http://127.0.0.1:{self.port()}").rstrip("/"),
            unit=SERVICE if self.box and not given["url"] else None,
            command=self._command() if given["local"] else [],
            patience_s=given["patience"],
            answer=given["answer"] or (known.answer if known and not given["question"] else None),
            api_key=os.environ.get(KEY_VARIABLE),
            **{key: given[key] for key in _PLAN_KEYS},
        )
        question = given["question"] or (known.prompt if known else None)
        return place, replace(plan, question=question) if question else plan

    def port(self) -> int:
        """Where the server listens that is measured without a URL. Error: no port."""
        if self.box:
            return self.box.profile.port
        given = words_of(list(self.server_flags)).get("port", str(LOCAL_PORT))
        if not given.isdecimal() or not 0 < int(given) < 2**16:
            raise GpuboxError(f"--port {given}", "a number from 1 to 65535")
        return int(given)

    def _command(self) -> list[str]:
        own = {"host": "127.0.0.1", "port": str(LOCAL_PORT)}
        given = words_of(list(self.server_flags))
        extra = [word for flag, value in own.items() if flag not in given for word in (f"--{flag}", value)]
        return [self.given["python"], "-m", "sglang.launch_server", *self.server_flags, *extra]


def _subject(words: tuple[str, ...], given: dict[str, Any]) -> _Subject:
    if given["local"]:
        if given["url"] or not given["python"] or not words:
            raise click.UsageError("--local needs --python and the server's flags after `--`, and no --url")
        return _Subject("local", given, server_flags=words)
    if len(words) > 1:
        raise click.UsageError(f"one HOST, not {len(words)}: {' '.join(words)}")
    if given["url"] and not given["url"].startswith(("http://", "https://")):
        raise click.UsageError(f"--url {given['url']}: it starts with http:// or https://")
    if words and not given["python"]:
        box = inventory.load(given["inventory"]).box(words[0])
        return _Subject(box.name, given, box, profile=None if given["url"] else box.settings.profile)
    if given["url"] and given["python"] and not words:
        return _Subject("url", given)
    raise click.UsageError("give a HOST, or --url with --python (a Python with SGLang that runs the client here)")


def _verdict(record: Record, folder: Path) -> None:
    click.echo(f"record: {folder / 'record.json'}", err=True)
    if record.verdict == "complete":
        return
    error = CannotTellError if record.verdict == "cannot tell" else GpuboxError
    log = [note for note in record.notes if note.startswith("server: ")]
    raise error("\n".join([f"{record.verdict}: {record.problem}", *log[-5:]]))
