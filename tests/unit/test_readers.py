"""What a host says may be anything: a reader gives a value or "cannot tell", never a bare error of Python.

Every fact and every reader is found by itself; what real hosts printed is where the mutations begin.
"""

import base64
import contextlib
import importlib
import pkgutil
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyinfra.api import FactBase

from gpubox.facts.answers import Answer, Fact, answers
from gpubox.onboard import probe, questions
from gpubox.support import reading
from gpubox.support.errors import CannotTellError, GpuboxError
from tests.unit import simulated

ROOMS = ("apt", "cuda", "doctor", "driver", "facts", "hypervisor", "nccl", "onboard", "operations", "server")
BANNER = "Welcome to Debian GNU/Linux 12\n\n  * Documentation:  https://www.debian.org\nLast login: Mon Dec  7\n"
REAL = [
    *(BANNER, "", "\n", "\0", "{}", "[]", "null", '{"a": 1}', "[1, 2]", '{"devices": 1}', '{"releases": [1]}'),
    "/dev/nvidia0 c3 0 666\n/dev/nvidiactl c3 ff 666\n",
    "195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n\nBlock devices:\n  8 sd\n",
    "Model: \t\t NVIDIA RTX\nGPU UUID: \t GPU-1\nBus Location: \t 0000:01:00.0\nDevice Minor: \t 0\n",
    "0000:01:00.0 nvidia\n0000:02:00.0 -\n",
    "6.8.12-4-pve 1 0 0\n6.8.8-2-pve 1 1 1\n",
    "0000:01:00.0 nvidia de10b42b 1 on DMA\n",
    '{"type": "container", "devices": {"gpu": {"type": "gpu", "pci": "01:00.0"}}, "config": {"limits.cpu": "1"}}',
    "file\t644 root root\tabc\t/etc/a\nlink\t/x\t\t/etc/b\nabsent\t\t\t/etc/c\n",
    "nvidia-smi\t590.44.01-1\tii \n",
    '{"changed": [], "python": "3.11", "implementation": "CPython", "folders": ["a-1.dist-info"], "config_changed": 0}',
    '{"current": "a", "releases": [{"digest": "a"}], "superfluous": []}',
    '{"event": "ready"}\n{"event": "failed", "cause": "x"}\n',
    "deb http://deb.debian.org/debian bookworm main\n",
    "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-7\nGPU1\tPIX\t X \t0-7\n",
    "max\n100000\n12345\n",
    "LoadState=loaded\nActiveState=active\n",
    *(path.read_text(errors="replace") for path in sorted((Path(__file__).parents[1] / "cases" / "lab").glob("*"))),
]
FEW = settings(max_examples=25, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def _modules() -> Iterator[object]:
    for room in ROOMS:
        package = importlib.import_module(f"gpubox.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            yield importlib.import_module(f"gpubox.{room}.{module.name}")


@cache
def fact_classes() -> dict[str, type[FactBase[object]]]:
    """Every fact of the product."""
    found: dict[str, type[FactBase[object]]] = {}
    for module in _modules():
        for one in vars(module).values():
            is_fact = isinstance(one, type) and issubclass(one, FactBase) and one not in {FactBase, Fact}
            if is_fact and one.__module__.startswith("gpubox."):
                found[f"{one.__module__}.{one.__name__}"] = one
    return found


@cache
def readers() -> dict[str, Callable[..., object]]:
    """Every function that was made a reader."""
    list(_modules())
    return dict(reading.READERS)


def _survives(read: Callable[[], object]) -> None:
    with contextlib.suppress(GpuboxError):
        read()


def _questions_of(fact: type[FactBase[object]]) -> list[str]:
    """The names that its `process` asks the answers for, out of its compiled code and what that calls."""
    module = importlib.import_module(fact.__module__)
    source = Path(str(module.__file__)).read_text()
    return sorted({*re.findall(r'found\["([a-z_-]+)"\]', source), *re.findall(r'"([a-z_-]+)": ', source)})


def _packed(name: str, said: str, rc: int) -> str:
    return f"{name} {base64.b64encode(f'{said}{chr(10)}{rc}'.encode(errors='surrogateescape')).decode()}"


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A real text, cut, mixed with another, or with a foreign line in it; or nonsense."""
    chosen = draw(st.sampled_from(REAL))
    how = draw(st.sampled_from(["as it is", "cut", "banner", "spliced", "changed", "nonsense"]))
    rnd = random.Random(draw(st.integers(0, 2**16)))  # noqa: S311 - a test's own
    if how == "cut":
        return chosen[: rnd.randint(0, len(chosen))]
    if how == "banner":
        lines = chosen.splitlines(keepends=True)
        lines.insert(rnd.randint(0, len(lines)), BANNER)
        return "".join(lines)
    if how == "spliced":
        other = rnd.choice(REAL)
        return chosen[: rnd.randint(0, len(chosen))] + other[rnd.randint(0, len(other)) :]
    if how == "changed":
        letters = list(chosen)
        for _ in range(min(5, len(letters))):
            letters[rnd.randrange(len(letters))] = rnd.choice("\0\t\n {}[]\"',:|=-/0x9é²")
        return "".join(letters)
    return draw(st.text(max_size=60)) if how == "nonsense" else chosen


@pytest.mark.parametrize("name", sorted(fact_classes()))
def test_a_fact_gives_a_value_or_cannot_tell(name: str) -> None:
    fact = fact_classes()[name]
    asked = _questions_of(fact)

    @FEW
    @given(st.lists(texts(), min_size=1, max_size=4), st.sampled_from([0, 0, 0, 1, 127]), st.booleans())
    def try_it(said: list[str], rc: int, whole: bool) -> None:
        plain = "\n".join(said).split("\n")
        packed = [_packed(question, said[n % len(said)], rc) for n, question in enumerate(asked)]
        _survives(lambda: fact().process(plain))
        _survives(lambda: fact().process(packed if whole else packed[: len(packed) // 2]))
        _survives(lambda: fact().process([*packed, *plain]))
        _survives(lambda: fact().process([]))

    try_it()


@pytest.mark.parametrize("name", sorted(readers()))
def test_a_reader_gives_a_value_or_cannot_tell(name: str) -> None:
    read = readers()[name]
    count = read.__wrapped__.__code__.co_argcount  # type: ignore[attr-defined]  # of functools.wraps
    kinds = [read.__annotations__.get(word) for word in read.__wrapped__.__code__.co_varnames[:count]]  # type: ignore[attr-defined]  # the same

    def value(kind: object, said: str) -> object:
        if kind is bytes:
            return said.encode(errors="surrogateescape")
        if kind == list[str]:
            return said.splitlines()
        return len(said) if kind is int else said

    @FEW
    @given(st.lists(texts(), min_size=3, max_size=3))
    def try_it(said: list[str]) -> None:
        _survives(lambda: read(*(value(kind, said[n % 3]) for n, kind in enumerate(kinds))))

    try_it()


@FEW
@given(st.dictionaries(st.sampled_from(sorted({*questions.BOX, *questions.HYPERVISOR})), texts(), max_size=8))
def test_a_machine_that_says_anything(said: dict[str, str]) -> None:
    found = {name: Answer(0, "") for name in {*questions.BOX, *questions.HYPERVISOR}}
    found |= {name: Answer(0, text) for name, text in said.items()}
    for read in (probe.read_box, probe.read_facts, probe.read_hypervisor):
        _survives(lambda read=read: read(found))  # type: ignore[misc]  # a default binds the loop's value
        _survives(lambda read=read: read({name: found[name] for name in said}))  # type: ignore[misc]  # the same


def test_every_fact_tells_its_errors() -> None:
    bare = [name for name, one in fact_classes().items() if not issubclass(one, Fact)]
    assert bare == [], "let it inherit from gpubox.facts.answers.Fact"


def test_the_readers_that_are_known() -> None:
    """One that is taken away by mistake is missed here; a new one needs no line."""
    base = {
        *("hypervisor.nodes.parse", "hypervisor.nodes.majors", "hypervisor.cards.present", "hypervisor.dkms.parse"),
        *("hypervisor.bus.parse", "hypervisor.incus._instance", "apt.keys.parse", "nccl.topology.parse"),
        *("facts.files.parse", "facts.packages.parse", "facts.release.parse", "facts.venv.parse"),
    }
    assert {f"gpubox.{name}" for name in base} <= {*readers()}
    parsers = {
        f"{module.__name__}.parse"  # type: ignore[attr-defined]  # modules have names
        for module in _modules()
        if getattr(getattr(module, "parse", None), "__module__", "") == module.__name__  # type: ignore[attr-defined]  # the same
    }
    assert parsers - {*readers()} == {"gpubox.apt.sources.parse"}, "a function `parse` reads what a host said: @reader"


@pytest.mark.parametrize(
    ("name", "said", "line"),
    [
        ("hypervisor.nodes.parse", "/dev/nvidia0 c3 0 666\nWelcome to Debian\n/dev/x 1 1 666\n", "Welcome to Debian"),
        ("hypervisor.dkms.parse", "6.8.12-4-pve 1 0 0\nLast login: Mon\n", "Last login: Mon"),
        ("hypervisor.bus.parse", "0000:01:00.0 nvidia de10b42b 1 on DMA\nhello\n", "hello"),
        ("hypervisor.incus._instance", "Error: not found\n", "Error: not found"),
        ("hypervisor.incus._instance", "[]", "[]"),
    ],
)
def test_the_line_is_named(name: str, said: str, line: str) -> None:
    with pytest.raises(CannotTellError) as caught:
        readers()[f"gpubox.{name}"](said)
    assert repr(line) in caught.value.found


def test_the_question_and_the_line_of_a_fact() -> None:
    fact = fact_classes()["gpubox.facts.hypervisor_host.HostState"]
    said = dict.fromkeys(_questions_of(fact), "")
    said |= {"users": "0", "nodes": "/dev/nvidia0 c3 0 666\nWelcome to Debian\n", "kernels": "6.8.12-4-pve 1 0 0\n"}
    with pytest.raises(CannotTellError, match="device nodes: cannot be read: 'Welcome to Debian'"):
        fact().process([_packed(name, text, 0) for name, text in said.items()])
    said |= {"nodes": "", "users": "2\nLast login: Mon"}
    with pytest.raises(CannotTellError, match=r"HostState, users: cannot be read: '2|Last login: Mon'"):
        fact().process([_packed(name, text, 0) for name, text in said.items()])
    del said["users"]
    with pytest.raises(CannotTellError, match="no answer about 'users'"):
        fact().process([_packed(name, text, 0) for name, text in said.items()])


def test_a_real_machine_is_read() -> None:
    assert answers([_packed("a", "x", 0)])["a"].text == "x"
    box = simulated.box("rtx-pro-6000-x8", "lxc")
    assert box.gpus.cards
