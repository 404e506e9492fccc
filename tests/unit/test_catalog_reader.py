"""The reader of wheels on small ones made here: both shapes of argument lists, and refusal of any other."""

import zipfile
from pathlib import Path

import pytest

from gpubox.catalog import extract
from gpubox.catalog.arguments import Arguments
from gpubox.catalog.release import Flag
from gpubox.catalog.wheel import Wheel
from gpubox.support.errors import GpuboxError

METADATA = """Metadata-Version: 2.1
Name: sglang
Version: 9.9.9
Requires-Dist: torch==2.0.0
Requires-Dist: flashinfer_python[cu13]==0.9.0
Requires-Dist: torchao==1.0; sys_platform == "win32"
Requires-Dist: transformers==5.0.0; extra == "more"
"""
CHOICES = 'BASE = ["a", "b"]\nMORE = [*BASE, "c"]\nclass Mode(Enum):\n    FULL = "full"\n    OFF = "off"\n'
CALLS = """
from sglang.srt.choices import BASE, MORE, Mode
class ServerArgs:
    backend: str = "a"
    @staticmethod
    def add_cli_args(parser):
        names = list({"x": 1, "y": 2}.keys())
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--backend", type=str, choices=MORE, default=ServerArgs.backend)
        parser.add_argument("--parser", choices=["auto"] + names)
        parser.add_argument("--mode", choices=[m.name.lower() for m in Mode])
        parser.add_argument("--many", type=int, nargs="+")
        parser.add_argument("--bare", action="store_true")
        parser.add_argument("--old", action=DeprecatedStoreTrueAction, new_flag="--bare")
        parser.add_argument("--gone", action=DeprecatedAction, error_message="Use --bare instead.")
        parser.add_argument("--open", choices=ask_the_machine())
"""
FIELDS = """
from sglang.srt.choices import MORE
class Memory:
    fraction: A[Optional[float], "help"] = None
    backend: A[str, Arg(help="h", choices=MORE, aliases=["--be"])] = "a"
    kind: A[Literal["x", "y"], "help"] = "x"
    sizes: A[Optional[List[int]], "help"] = None
    quiet: A[bool, Arg(action=argparse.BooleanOptionalAction)] = True
    hidden: A[bool, Arg(no_cli=True)] = False
    again: A[int, "first"] = 1
    again: A[int, "second"] = 2
    path: A[str, Arg(help="h", cli_name="--model-path")]
_INPUT_NAMESPACES = [Memory]
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
ServerArgs = made_from(ServerArgs)
"""


def wheel(folder: Path, server_args: str) -> Wheel:
    path = folder / "sglang-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sglang-9.9.9.dist-info/METADATA", METADATA)
        archive.writestr("sglang/srt/server_args.py", server_args)
        archive.writestr("sglang/srt/choices.py", CHOICES)
        archive.writestr("sglang/srt/models/m.py", "EntryClass = [OneForCausalLM, TwoForCausalLM]\n")
        archive.writestr("sglang/srt/environ.py", "X = 'SGLANG_ENABLE_X'\n")
    return Wheel(path)


def flags(folder: Path, server_args: str) -> dict[str, Flag]:
    return {flag.names[0]: flag for flag in Arguments(wheel(folder, server_args)).flags()}


def test_calls(tmp_path: Path) -> None:
    found = flags(tmp_path, CALLS)
    assert found["model-path"] == Flag(names=["model-path", "model"], required=True)
    assert found["backend"] == Flag(names=["backend"], choices=["a", "b", "c"], default="a")
    assert found["parser"].choices == ["auto", "x", "y"]
    assert found["mode"].choices == ["full", "off"]
    assert found["many"] == Flag(names=["many"], type="int", nargs="+")
    assert found["bare"].type == "flag"
    assert (found["old"].deprecated, found["old"].replacement, found["old"].removed) == (True, "--bare", False)
    assert (found["gone"].removed, found["gone"].replacement) == (True, "--bare")


def test_fields(tmp_path: Path) -> None:
    found = flags(tmp_path, FIELDS)
    assert found["fraction"] == Flag(names=["fraction"], type="float")
    assert found["backend"] == Flag(names=["backend", "be"], choices=["a", "b", "c"], default="a")
    assert found["kind"] == Flag(names=["kind"], choices=["x", "y"], default="x")
    assert found["sizes"] == Flag(names=["sizes"], type="int", nargs="+")
    assert found["quiet"] == Flag(names=["quiet", "no-quiet"], type="flag", default=True)
    assert found["again"].default == 2
    assert found["model-path"].required
    assert "hidden" not in found


def test_what_only_running_would_tell_is_named_and_not_guessed(tmp_path: Path) -> None:
    reader = Arguments(wheel(tmp_path, CALLS))
    (opened,) = [flag for flag in reader.flags() if flag.names == ["open"]]
    assert opened.choices is None
    assert reader.open == {"choices of open: ask_the_machine()"}


def test_the_rest_of_a_release(tmp_path: Path) -> None:
    found = extract.release(wheel(tmp_path, CALLS))
    assert found.pins == {"flashinfer-python": "==0.9.0", "torch": "==2.0.0"}
    assert found.architectures == ["OneForCausalLM", "TwoForCausalLM"]
    assert found.environment == ["SGLANG_ENABLE_X"]
    assert found.autotune.state == "absent"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("for name in names: parser.add_argument(name)", "unknown statement"),
        ('parser.add_argument("--x", action="append")', "unknown action"),
        ('parser.add_argument("--bare")', "twice"),
    ],
)
def test_a_shape_that_is_not_known_stops_the_reader(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(GpuboxError, match=told):
        flags(tmp_path, CALLS + f"        {line}\n")
