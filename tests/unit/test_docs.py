"""The documentation as its readers use it: links lead somewhere, commands exist, and what needs no machine is run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from typing_extensions import override

from gpubox import inventory, rules
from gpubox.cli import main
from gpubox.nccl.recipes import recipes
from gpubox.support import paths

ROOT = paths.root()
WRITTEN = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").glob("*.md") if "Made by" not in p.read_text()[:40])]
NEEDS = {"needs hardware", "needs the practice machine", "needs the network"}
FENCE = re.compile(r"(?:<!-- (?P<needs>[^>]*) -->\n)?(?P<indent> *)```sh\n(?P<body>.*?)\n *```", re.S)


@dataclass(frozen=True)
class Command:
    """A line of a fenced block."""

    page: str
    words: tuple[str, ...]
    needs: str
    """What its block is marked with; empty: it is run here."""

    @override
    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)[:60]}"


def commands() -> Iterator[Command]:
    for page in WRITTEN:
        for found in FENCE.finditer(page.read_text()):
            for line in found["body"].splitlines():
                words = tuple(shlex.split(line, comments=True))
                if words:
                    yield Command(page.name, words, found["needs"] or "")


COMMANDS = list(commands())


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_every_fence_is_of_a_kind_that_is_looked_at(page: Path) -> None:
    """`sh`: commands; `python`: an inventory's data; without a word: what is printed."""
    opened = re.findall(r"^ *```(.*)$", page.read_text(), re.M)[::2]
    assert {*opened} <= {"sh", "python", ""}


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_block_is_marked_with_what_it_needs(command: Command) -> None:
    assert command.needs in {"", *NEEDS}


@pytest.mark.parametrize("command", [c for c in COMMANDS if Path(c.words[0]).name == "gpubox"], ids=str)
def test_the_program_knows_its_words(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options and arguments are parsed; nothing is carried out."""
    words = list(command.words[1:])
    if words == ["--help"]:
        return
    context = click.Context(main)
    group: click.Command = main
    while isinstance(group, click.Group):
        found = group.get_command(context, words.pop(0))
        assert found is not None
        group = found
    for option in group.params:
        if isinstance(option.type, click.Path):
            monkeypatch.setattr(option, "type", click.STRING)  # a file of the reader's, not of this checkout
    group.make_context(group.name, words)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.words[0] == "make"], ids=str)
def test_make_knows_its_targets(command: Command) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(command.words[1:]) <= set(targets)


@pytest.mark.parametrize("command", [c for c in COMMANDS if Path(c.words[0]).name in {"pyinfra", "pytest"}], ids=str)
def test_files_of_this_checkout_are_there(command: Command) -> None:
    named = [word for word in command.words if word.endswith(".py") and not word.startswith("inventory/gpu")]
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert command.needs


RUN = [c for c in COMMANDS if not c.needs and Path(c.words[0]).name == "gpubox"]


@pytest.mark.parametrize("command", RUN, ids=str)
def test_what_needs_nothing_runs(command: Command) -> None:
    done = CliRunner().invoke(main, list(command.words[1:]))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.needs and c not in RUN], ids=str)
def test_other_lines_are_ones_that_are_known_to_work(command: Command) -> None:
    assert command.words[0] in {"export", "eval"}


def test_the_shells_complete() -> None:
    done = CliRunner().invoke(main, [], prog_name="gpubox", env={"_GPUBOX_COMPLETE": "bash_source"})
    assert "complete -o nosort -F" in done.output


def test_inventories_on_the_pages_are_ones_that_the_deploy_reads(tmp_path: Path) -> None:
    texts = [text for page in WRITTEN for text in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]
    assert texts
    for text in texts:
        (tmp_path / "box.py").write_text(text)
        boxes = inventory.load(tmp_path / "box.py").boxes.values()
        assert [f for box in boxes for f in rules.check(box) if f.severity == "error"] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_the_site_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    there = {p.name for p in (ROOT / "docs").glob("*.md")}
    assert {name for name in there if name not in text} == set()


def test_every_recipe_stands_on_its_page_with_its_settings_and_source() -> None:
    text = (ROOT / "docs" / "nccl.md").read_text()
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for recipe in recipes():
        settings = " ".join(f"{name}={value}" for name, value in recipe.environment.items())
        assert f"`{settings}`" in rows[recipe.name]
        assert recipe.source in rows[recipe.name]
