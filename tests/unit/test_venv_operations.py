"""State of a venv in, commands out; and nothing to do gives nothing."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand

from gpubox.facts.venv import Venv
from gpubox.operations.venv import Offer, Wish, environment, installer, packages

WANTED = {"idna": "3.20", "torch": "2.13.0+cpu"}
OFFER = Offer("/stack", "https://example.org/torch/")
GOOD = Venv("whole", "3.11.2", "CPython", dict(WANTED))


def texts(commands: Iterable[Any]) -> list[str]:
    """Commands as text, without the script that looks into a venv."""
    raw = [each.args[0] if isinstance(each, FunctionCommand) else each for each in commands]
    return [
        re.sub(r"-c '.*' \S+ venv_state (?=/env (made|installed))", "-c SCRIPT ", each.get_raw_value(), flags=re.S)
        for each in raw
    ]


def made(found: Venv) -> list[str]:
    return texts(environment._inner("/env", "3.11", lambda: found))


def installed(found: Venv, kept: frozenset[str] = frozenset()) -> list[str]:
    return texts(packages._inner("/env", WANTED, kept, OFFER, lambda: found))


MAKE = (
    "/opt/gpubox/uv/bin/uv venv --quiet --no-project --relocatable --python 3.11 /env "
    "&& /env/bin/python -I -S -c SCRIPT /env made"
)


@pytest.mark.parametrize(
    ("found", "commands"),
    [
        (GOOD, []),
        (Venv("absent"), [MAKE]),
        (Venv("broken"), ["rm -rf /env", MAKE]),
        (Venv("whole", "3.11.2", "CPython", damaged={"x.py": "emptied"}, damaged_count=1), ["rm -rf /env", MAKE]),
        (Venv("whole", "3.12.1", "CPython"), ["rm -rf /env", MAKE]),
        (Venv("whole", "3.1.1", "CPython"), ["rm -rf /env", MAKE]),
        (Venv("whole", "3.11.2", "PyPy"), ["rm -rf /env", MAKE]),
        (
            Venv("whole", "3.11.2", "CPython", config_changed=True),
            [MAKE.replace(" /env &&", " --allow-existing /env &&")],
        ),
    ],
)
@pytest.mark.pain("P37")
def test_environment(found: Venv, commands: list[str]) -> None:
    assert made(found) == commands


def test_what_gpubox_did_not_make_is_kept_aside() -> None:
    move, make = made(Venv("foreign"))
    assert re.fullmatch(r"mv -T /env (/env\.old-\d{8}T\d{6}Z) && echo moved to \1", move)
    assert make == MAKE


INSTALL = (
    "default=https://example.org/torch/; set --; for link in ${PIP_FIND_LINKS:-$default}; do "
    'set -- "$@" --find-links "$link"; done; /opt/gpubox/uv/bin/uv pip install --link-mode copy '
    '--python /env/bin/python "$@" --no-deps --require-hashes --find-links /stack -r /stack/packages.lock'
)
UNINSTALL = "/opt/gpubox/uv/bin/uv pip uninstall  --python /env/bin/python"
REMEMBER = "/env/bin/python -I -S -c SCRIPT /env installed"
FORGET = "cd /env/lib && cd python3.*/site-packages && rm -rf --"


@pytest.mark.parametrize(
    ("found", "commands"),
    [
        (Venv("absent"), [INSTALL, f"{REMEMBER} idna torch"]),
        (Venv("whole", packages={**WANTED, "idna": "3.10"}), [INSTALL, f"{REMEMBER} idna"]),
        (Venv("whole", packages={"idna": "3.20"}), [INSTALL, f"{REMEMBER} torch"]),
        (Venv("whole", packages={**WANTED, "cowsay": "6"}), [f"{UNINSTALL} cowsay", REMEMBER]),
        (
            Venv("whole", packages=WANTED, changed={"torch": ["torch-2.13.0+cpu.dist-info"]}),
            [f"{FORGET} torch-2.13.0+cpu.dist-info", INSTALL, f"{REMEMBER} torch"],
        ),
        # another version: uv removes it by its own metadata, so that none of its files stay
        (
            Venv("whole", packages={**WANTED, "idna": "3.10"}, changed={"idna": ["idna-3.10.dist-info"]}),
            [INSTALL, f"{REMEMBER} idna"],
        ),
    ],
)
@pytest.mark.pain("P32", "P38")
def test_packages(found: Venv, commands: list[str]) -> None:
    assert installed(found) == commands


@pytest.mark.pain("P38")
def test_packages_as_locked_give_nothing() -> None:
    assert installed(GOOD) == []
    assert installed(Venv("whole", packages={**WANTED, "flash-attn": "2.8.3"}), frozenset({"flash-attn"})) == []


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cu130"])
@pytest.mark.pain("P35")
def test_another_local_version_is_another_package(version: str) -> None:
    found = Venv("whole", "3.11.2", "CPython", {**WANTED, "torch": version})
    assert not Wish("/env", "3.11", WANTED).is_met_by(found)
    assert installed(found)[0] == INSTALL


def test_installer() -> None:
    assert texts(installer._inner("0.13.9", "/stack/uv.txt", lambda: "0.13.9")) == []
    (command,) = texts(installer._inner("0.13.9", "/stack/uv.txt", lambda: ""))
    assert command.startswith("python3 -m venv --clear /opt/gpubox/uv && /opt/gpubox/uv/bin/python -m pip install")
    assert command.endswith("--require-hashes --disable-pip-version-check -r /stack/uv.txt")
