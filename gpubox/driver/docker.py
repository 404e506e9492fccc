"""Docker containers that lose their cards when systemd reads its units anew.

NVIDIA's hook opens the cards in a container's device cgroup behind docker's and systemd's back;
where systemd manages docker's cgroups, a `systemctl daemon-reload` sets the rules that it knows,
and the container gets "Failed to initialize NVML: Unknown Error" until it is started anew
(NVIDIA/nvidia-docker#1730, nvidia-container-toolkit#251, #1227). Nodes that docker itself was told
of (--device, CDI) stay.
"""

import json
from typing import Any

QUESTION = (
    "command -v docker >/dev/null || exit 0; "
    "[ \"$(timeout 10 docker info -f '{{.CgroupDriver}}')\" = systemd ] || exit 0; "
    "timeout 10 docker ps -q | xargs -r timeout 10 docker inspect -f "
    "'{{.Name}}\t{{.HostConfig.Runtime}}\t{{json .HostConfig.DeviceRequests}}\t{{json .HostConfig.Devices}}'"
)
"""Shell text whose output `at_risk` reads: nothing where there is no docker, or it manages its
cgroups itself."""


def at_risk(text: str) -> list[str]:
    """Names of the running containers whose cards came by the hook alone. A line of another form
    is passed over."""
    rows = [line.split("\t") for line in text.splitlines() if line.count("\t") == 3]
    return [name.lstrip("/") for name, runtime, asked, given in rows if _by_hook(runtime, asked) and not _told(given)]


def warning(names: list[str]) -> str:
    """For people, right before systemd reads its units anew."""
    return (
        f"docker containers with cards run here ({', '.join(names)}): systemd reads its units anew now, which may "
        f"take the cards from them (NVML: Unknown Error). Then: docker restart {' '.join(names)}. To prevent it: CDI, "
        "or --device for each node below /dev/nvidia*"
    )


def _by_hook(runtime: str, asked: str) -> bool:
    requests = [one for one in _list(asked) if one.get("Driver") != "cdi"]
    kinds = {kind for one in requests for group in one.get("Capabilities") or [] for kind in group}
    return runtime == "nvidia" or "gpu" in kinds


def _told(given: str) -> bool:
    return any(str(one.get("PathOnHost", "")).startswith("/dev/nvidia") for one in _list(given))


def _list(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
