"""What is asked of a box and of its hypervisor: the facts of the deploy itself, each host in one script."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pyinfra.api import FactBase, StringCommand

from gpubox.driver import fabric
from gpubox.facts.answers import Answer, answers, script
from gpubox.facts.apt import AptFact
from gpubox.facts.base import BaseFact
from gpubox.facts.cuda import CudaFact
from gpubox.facts.driver import DriverFact
from gpubox.facts.hypervisor import HypervisorState
from gpubox.facts.model import Model
from gpubox.facts.release import main_process
from gpubox.facts.service import ServiceFact
from gpubox.facts.venv import PythonEnv
from gpubox.facts.weights import Weights
from gpubox.hosts import Box, Hypervisor
from gpubox.onboard import questions
from gpubox.server.release import venv_path
from gpubox.server.service import UNIT, service_of, venv_of, weights_of
from gpubox.support import payload, ssh

T = TypeVar("T")
_LOG_LINES = 400
_FABRIC = {"fabric": fabric.QUESTION, "fabric-states": fabric.STATES}


@dataclass(frozen=True)
class Looks:
    """The answers of a host by question: what `questions` of gpubox.onboard asks, and the facts of the deploy."""

    answers: Mapping[str, Answer]

    def fact(self, fact: FactBase[T], name: str) -> T:
        """The fact's value. Error: cannot tell, when its command failed or its output is not what it reads."""
        return fact.process(self.answers[name].expect(0, what=f"the look at {name}").splitlines())


def box(box: Box) -> Looks:
    """The first round trip: the state of a box."""
    return Looks(asked(box.address, box.connection, {**questions.BOX, **_facts(box)}))


def endpoint(box: Box) -> Looks:
    """The second: one look of the probe, two timed completions when that is good, the log's last lines."""
    made = service_of(box)
    wish = made.probe
    ask = payload.shell("probe", given={**wish, **main_process(made.release.digest), "timeout_s": 0})
    timed: dict[str, Any] = {key: value for key, value in wish.items() if key in {"url", "model", "api_key_file"}}
    return Looks(
        asked(
            box.address,
            box.connection,
            {
                "ready": f"{ask} && {payload.shell('speed', given=timed)}",
                "log": f"journalctl --no-pager -q -o short-iso -n {_LOG_LINES} -u {shlex.quote(UNIT)} 2>&1",
            },
        )
    )


def hypervisor(above: Hypervisor, box: Box) -> Looks:
    """What the hypervisor says of itself and of the box's container; beside the first round trip."""
    wanted: dict[str, str | StringCommand] = {**questions.GPUS, **_FABRIC}
    if container := box.settings.container:
        wanted["container"] = HypervisorState().command(kind=container.kind, container=container.name)
    return Looks(asked(str(above.connection.get("ssh_hostname", above.name)), above.connection, wanted))


def _facts(box: Box) -> dict[str, str | StringCommand]:
    base, venv, wish = box.settings.base, venv_path(venv_of(box)), service_of(box)
    found: dict[str, str | StringCommand] = {
        "base": BaseFact().command(names=base.packages, paths=[], sysctls=list(base.sysctls)),
        "sources": AptFact().command(keyrings=()),
        "cuda": CudaFact().command(wish=box.settings.cuda),
        "libraries": DriverFact().command(names=()),
        "python-env": PythonEnv().command(path=venv, beside=f"{venv}.absent", paths=[]),
        "service": ServiceFact().command(
            unit=UNIT, paths=[file.path for file in wish.files], venv_link=box.settings.venv_path
        ),
    }
    weights = weights_of(box)
    found["model"] = (
        Model().command(path=box.profile.model_path)
        if weights is None
        else Weights().command(venv=venv, arguments=weights)
    )
    if box.stack.device == "cuda":
        found.update(_FABRIC)
        found["cuinit"] = payload.shell("cuinit")
    return found


def asked(
    address: str,
    connection: Mapping[str, Any],
    questions: Mapping[str, str | StringCommand],
    limit_s: float = 300,
) -> dict[str, Answer]:
    """The answers of one round trip by name. Errors: the host is not reached, or takes longer than `limit_s`."""
    return answers(ssh.run(address, connection, script(questions), timeout_s=limit_s).splitlines())
