"""The model server of a box as a release, and where its parts lie on the box."""

import json
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from gpubox.facts.service import STAMP
from gpubox.hosts import Box
from gpubox.remote import checks
from gpubox.remote.weights_cache import Arguments
from gpubox.server import command, jit, patches, proxy, release, systemd
from gpubox.server.release import FOLDER, HERE, ROOT, Release
from gpubox.settings.profile import FlagValue
from gpubox.support import paths
from gpubox.support.owned_file import OwnedFile
from gpubox.support.templates import render

UNIT = "sglang.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
ENVIRONMENT_PATH = f"{ROOT}/current/environment"
"""The environment of the release that serves, for people and tests; the unit itself names its release's own file."""
TOKEN_PATH = f"{ROOT}/hub-token"


@dataclass(frozen=True)
class Service:
    """Everything about the service of one box that follows from its data."""

    argv: list[str]
    """The command line that the process must have."""
    environment: dict[str, str]
    """What must stand in its environment."""
    release: Release
    release_files: list[OwnedFile]
    """The release's folder."""
    probe: dict[str, Any]
    """What gpubox.remote.probe asks it."""

    @property
    def files(self) -> list[OwnedFile]:
        """All that lies on the box once it serves: the unit's file is only ever changed by a switch."""
        return [OwnedFile(UNIT_PATH, self.release.here(self.release.unit)), *self.release_files]


def service_of(box: Box) -> Service:
    """The service that the box's profile, stack and settings ask for. Errors: a bad file with the API key."""
    key = box.api_key()
    venv = venv_of(box)
    argv = command.argv(box.profile, release.venv_path(venv), _flags(box, key is not None))
    variables = _environment(box, release.venv_path(venv))
    process = systemd.process_lines(box.profile.process)
    wish = Release(
        argv=argv,
        unit=render(
            "sglang.service.j2",
            profile=box.profile,
            exec_line=systemd.exec_line(argv),
            folder=FOLDER,
            process=process,
            jit=jit.environment(venv),
            limits=box.settings.unit_settings,
            jit_line=systemd.exec_line(jit.ready(venv)),
        ),
        environment=render("sglang.env.j2", text=systemd.environment_file(variables)),
        venv=venv,
        api_key=key,
        revision=_revision(box),
        probe=_probe(box, key is not None),
        made_from=_made_from(box),
        process=process,
    )
    files = wish.files()
    return Service(
        argv=[wish.here(word) for word in argv],
        environment={name: wish.here(value) for name, value in variables.items()},
        release=wish,
        release_files=[OwnedFile(f"{wish.path}/{name}", content, mode="600") for name, content in files.items()],
        probe=json.loads(files["probe.json"]),
    )


def checks_of(box: Box, wish: Service) -> checks.Arguments:
    """What gpubox.remote.checks looks at before the service's release is switched to."""
    return checks.Arguments(
        release=wish.release.path,
        unit=UNIT,
        port=box.profile.port,
        device=box.stack.device,
        cuda_home=box.stack.cuda_home,
        model=box.profile.model_path,
        revision=box.profile.model.revision,
    )


def venv_of(box: Box) -> str:
    """The digest of the venv that the box's stack asks for."""
    stack = box.stack
    return release.venv_digest(
        list(stack.payload().values()), stack.python, stack.source_builds, patches.digest(stack.patches)
    )


def recipe_of(box: Box) -> OwnedFile | None:
    """The script that makes the model on the box; None: the model is not made."""
    if box.profile.model.make is None:
        return None
    name = box.profile.model.make.replace("-", "_") + ".py"
    return OwnedFile(f"{ROOT}/recipes/{name}", paths.lab_recipe(name).read_text())


def weights_of(box: Box) -> Arguments | None:
    """What to have of the hub; None: the model lies at a path of the box."""
    path, hub = box.profile.model_path, box.settings.hub
    if path.startswith(("/", "./", "../", "~")):
        return None
    token_file = None if hub.token_file is None else TOKEN_PATH
    revision = box.profile.model.revision or ""
    return Arguments(path, revision, cache=_cache(box), token_file=token_file, endpoint=hub.endpoint)


def _cache(box: Box) -> str:
    """Where the service looks for models of the hub, in the hub library's own order; empty: its default."""
    variables = box.profile.environment
    home = variables.get("HF_HOME", "")
    return box.settings.hub.cache or variables.get("HF_HUB_CACHE", "") or (f"{home}/hub" if home else "")


def _made_from(box: Box) -> dict[str, str]:
    """For people: where it comes from, and in words what the venv's digest stands for."""
    stack = box.stack
    return {
        "profile": box.profile.name,
        "stack": stack.name,
        "gpubox": version("gpubox"),
        "lock": sha256(stack.payload()["packages.lock"]).hexdigest()[:16],
        "python": stack.python,
        "patches": ", ".join(stack.patches) or "none",
        "source builds": ", ".join(f"{b.package} {b.version}" for b in stack.source_builds) or "none",
    }


def _revision(box: Box) -> str | None:
    """Which model it is; of one that is made on the box, the digest of what makes it."""
    recipe = recipe_of(box)
    return box.profile.model.revision if recipe is None else sha256(recipe.data).hexdigest()


def _flags(box: Box, with_key: bool) -> dict[str, FlagValue]:
    """Two words for the file with the key: SGLang passes over `--config=FILE` without a word."""
    more: dict[str, FlagValue] = {"config": f"{FOLDER}/config.yaml"} if with_key else {}
    return more if weights_of(box) is None else {"revision": box.profile.model.revision, **more}


def _environment(box: Box, venv_path: str) -> dict[str, str]:
    variables = command.environment(box.profile, box.stack, venv_path)
    if weights_of(box) is not None:
        variables["HF_HUB_OFFLINE"] = "1"  # what is served was fetched and looked at before
        if cache := _cache(box):
            variables["HF_HUB_CACHE"] = cache
    past_proxy = proxy.completed(variables, proxy.own_addresses(box), tls="ssl-certfile" in box.profile.flags)
    return {**variables, **past_proxy, STAMP: HERE}


def _probe(box: Box, with_key: bool) -> dict[str, Any]:
    known = box.profile.known_answer
    return {
        "url": f"http://127.0.0.1:{box.profile.port}",
        "model": str(box.profile.flags.get("served-model-name", box.profile.model_path)),
        "unit": UNIT,
        "timeout_s": box.profile.start_timeout_s,
        **({} if known is None else {"prompt": known.prompt, "answer": known.answer}),
        **({"api_key_file": f"{FOLDER}/api-key"} if with_key else {}),
    }
