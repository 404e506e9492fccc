"""Packages compiled on the box: checked before, with jobs that fit, and each wheel made once for all boxes like it."""

import shutil
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from pyinfra import host, logger
from pyinfra.api import FileDownloadCommand, FileUploadCommand, Host, QuoteString, State, StringCommand
from pyinfra.api.command import FunctionCommand

from gpubox.cuda import packages as cuda
from gpubox.cuda import source_build
from gpubox.facts.build import WHEELS, BuildFact, BuildState
from gpubox.facts.venv import UV, Venv
from gpubox.operations import Commands, operation
from gpubox.operations.apt import refused
from gpubox.operations.progress import shown
from gpubox.operations.venv import install_from, remember
from gpubox.settings.stack import SourceBuild

_PIP = f"{UV.removesuffix('/uv')}/python -m pip --disable-pip-version-check --python"
"""uv builds no wheel of a requirement with a hash; the pip beside it does, for any Python."""


@operation()
def source_built(path: str, build: SourceBuild, requirements: str, look: Callable[[], Venv]) -> Commands:
    """
    Have a package that is compiled on the box, inside the venv, against the toolkit that it names.

    The wheel is kept, on the box and on the controller, under a key of everything that went in; another box with the
    same key installs it without compiling.

    + path: the venv
    + build: what, and with which toolkit and environment
    + requirements: path on the box of a requirements file with the hash of its source archive, which may lie beside it
    + look: gives the present venv
    """
    found = look()
    if found.packages.get(build.package) == build.version and build.package not in found.changed:
        return
    state = host.get_fact(BuildFact, venv=path, home=cuda.home(build.cuda))
    if trouble := _trouble(build, state):
        yield refused(*trouble)
        return
    key = source_build.key(inputs(build, state, found))
    kept = source_build.kept(key)
    if key in state.wheels:
        logger.info(f"{host.print_prefix}{build.package}: compiled here before ({key})")
    elif kept.is_dir():
        logger.info(f"{host.print_prefix}{build.package}: compiled for a box like this before ({key})")
        yield from _upload(kept, key)
    else:
        yield from _compile(path, build, requirements, state, key)
        yield from _keep(kept, key, path, build)
    yield shown(install_from(path, build.package, build.version, f"{WHEELS}/{key}"), f"installing {build.package}")
    yield remember(path, "installed", build.package)


def inputs(build: SourceBuild, state: BuildState, venv: Venv) -> dict[str, str]:
    """Everything that a wheel's content depends on. Not the number of jobs."""
    return {
        "package": f"{build.package}=={build.version} {build.sha256}",
        "environment": repr(sorted(build.environment.items())),
        "nvcc": state.nvcc,
        "compiler": state.compiler,
        "python": state.python,
        "libc": state.libc,
        "torch cuda": state.torch_cuda or "none",
        "venv": repr(sorted((n, v) for n, v in venv.packages.items() if n != build.package)),
    }


def _trouble(build: SourceBuild, state: BuildState) -> tuple[str, str, str] | None:
    """Found, needed, to do: why it would not compile, known before hours are spent."""
    nvcc = state.nvcc.partition(",")[0]
    if nvcc != build.cuda:
        found = f"{cuda.home(build.cuda)}/bin/nvcc says {nvcc or 'nothing'}"
        return found, f"nvcc {build.cuda} for {build.package}", f"add {build.cuda} to cuda.toolkits of the box"
    if source_build.cuda_differs(state.torch_cuda, nvcc):
        found = f"torch was built with CUDA {state.torch_cuda}, {build.package} would be with {nvcc}"
        return found, f"a toolkit {state.torch_cuda}", f"`cuda` of {build.package} in the stack, and cuda.toolkits"
    if not state.compiler:
        return "no g++ on the box", f"a C++ compiler for {build.package}", "build-essential in base.packages"
    return None


def _compile(path: str, build: SourceBuild, requirements: str, state: BuildState, key: str) -> Commands:
    jobs, home = source_build.max_jobs(state.cores, state.memory_bytes), cuda.home(build.cuda)
    logger.info(
        f"{host.print_prefix}{build.package}: {jobs} compilers at once ({state.cores} cores, "
        f"{state.memory_bytes / 2**30:.1f} GiB free within the container's limit)"
    )
    if state.torch_cuda is not None and state.torch_cuda != build.cuda:
        logger.warning(f"{host.print_prefix}torch was built with CUDA {state.torch_cuda}, nvcc is {build.cuda}")
    variables = {"CUDA_HOME": home, "MAX_JOBS": str(jobs), **build.environment}
    assignments = (QuoteString(f"{name}={value}") for name, value in variables.items())
    search = StringCommand("PATH=", QuoteString(f"{home}/bin:{path}/bin"), ':"$PATH"', _separator="")
    folder, beside = QuoteString(f"{WHEELS}/{key}"), QuoteString(f"{WHEELS}/.{key}.new")
    pip = StringCommand(
        _PIP, QuoteString(f"{path}/bin/python"), "wheel --no-deps --require-hashes --no-build-isolation"
    )
    source = StringCommand(
        "--no-binary :all: --no-cache-dir --find-links", QuoteString(requirements.rpartition("/")[0])
    )
    command = StringCommand(
        *("rm -rf", beside, "&& mkdir -p", beside, "&& env", *assignments, search),
        *(pip, source, "-w", beside, "-r", QuoteString(requirements)),
        *("&& cd", beside, "&& sha256sum *.whl >SHA256SUMS && sync -f . && mv -T", beside, folder),
    )
    yield shown(command, f"compiling {build.package} {build.version} with CUDA {build.cuda}")


def _keep(kept: Path, key: str, path: str, build: SourceBuild) -> Commands:
    """Fetch the wheel to the controller, beside its place; it gets its name when it is whole."""
    made = host.get_fact(BuildFact, venv=path, home=cuda.home(build.cuda)).wheels.get(key, [])
    kept.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".new-", dir=kept.parent))
    for name in (*made, "SHA256SUMS"):
        yield FileDownloadCommand(f"{WHEELS}/{key}/{name}", str(beside / name))
    yield FunctionCommand(_named, (beside, kept), {})


def _named(state: State, host: Host, beside: Path, kept: Path) -> bool:
    """Another box of this run may have brought the same wheel."""
    for line in (beside / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split(maxsplit=1)
        if sha256((beside / name.lstrip("*")).read_bytes()).hexdigest() != digest:
            logger.error(f"{host.print_prefix}{name} came changed from the box")
            return False
    if kept.exists():
        shutil.rmtree(beside)
    else:
        beside.rename(kept)
    return True


def _upload(kept: Path, key: str) -> Commands:
    beside = f"{WHEELS}/.{key}.new"
    yield StringCommand("rm -rf", QuoteString(beside), "&& mkdir -p", QuoteString(beside))
    for file in sorted(kept.iterdir()):
        yield FileUploadCommand(str(file), f"{beside}/{file.name}")
    there = QuoteString(beside)
    move = StringCommand("&& sync -f . && mv -T", there, QuoteString(f"{WHEELS}/{key}"))
    yield StringCommand("cd", there, "&& sha256sum --check --quiet SHA256SUMS", move)
