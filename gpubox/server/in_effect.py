"""What stands beside a release's unit on the box (gpubox.remote.effective), in words for people."""

from gpubox.remote.effective import Effective
from gpubox.server.release import ROOT

KEPT = f"{ROOT}/kept"
"""On the box: where files of others go that gpubox takes out of the way."""
CURE = "what shall stay is written as unit_settings of the box, or as environment and flags of its profile"


def wrong(found: Effective, unit: str) -> list[str]:
    """What is not as the release asks: one line each. A deploy puts right what is for this unit alone."""
    lines = [f"{_sets(one)}, for {unit} alone" for one in found.aside]
    lines += [f"{_sets(one)}, against the unit of the release" for one in found.shared if one["severe"]]
    # a property differs because of a file: told once
    return lines or [f"systemd has loaded another unit: {line}" for line in found.differs]


def moved(found: Effective, unit: str) -> list[str]:
    """What a switch takes out of the way: one line each."""
    lines = []
    for one in found.aside:
        again = "; the server was started with it, and is started again" if one["restart"] else ""
        lines.append(f"{_sets(one)}, for {unit} alone: it goes aside, below {KEPT}{again}; {CURE}")
    return lines


def standing(found: Effective, unit: str) -> list[str]:
    """What changes the service, or may, and stays as it is: one line each."""
    lines = [f"{_sets(one)}: {unit} is bound by it too" for one in found.shared if not one["severe"]]
    if found.manager:
        names = ", ".join(found.manager)
        lines.append(
            f"systemd gives every service {names} (systemctl show-environment), {unit} too: "
            "systemctl unset-environment, or DefaultEnvironment= in /etc/systemd/system.conf and system.conf.d"
        )
    if found.extra:
        names = ", ".join(found.extra)
        lines.append(f"the process of {unit} was started with {names}, which nothing sets now: a restart loses that")
    return lines


def _sets(one: dict[str, object]) -> str:
    names = one["sets"]
    return f"{one['path']} sets {', '.join(names) if isinstance(names, list) and names else 'nothing'}"
