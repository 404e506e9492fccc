"""Measure from the clients' side how long a switch takes: ask all along, from before it until the server is ready."""

import json
from typing import Any
from weakref import WeakKeyDictionary

from pyinfra.api import Host, StringCommand

from gpubox.operations import onbox
from gpubox.support import payload
from gpubox.support.reading import json_object

_watching: WeakKeyDictionary[Any, tuple[Any, Any, Any]] = WeakKeyDictionary()


def begin(host: Host, asked: list[dict[str, Any]]) -> None:
    """Ask from now on. It ends with the run, however that ends.

    + asked: arguments of the probe, of the release that serves and of the one that will
    """
    end(host)
    opened = onbox.channels(host, StringCommand(payload.shell("watch")))
    if opened is None:
        return
    opened[0].write(json.dumps(asked) + "\n")
    opened[0].flush()
    _watching[host.connector.host] = opened


def end(host: Host) -> str | None:
    """Ask no more; what was seen, for people. None: nobody asked."""
    opened = _watching.pop(host.connector.host, None)
    if opened is None:
        return None
    opened[0].channel.shutdown_write()
    line = opened[1].readline()
    return said(json_object(line, "what the watch said")) if line.startswith("{") else None


def said(seen: dict[str, Any]) -> str:
    """What gpubox.remote.watch printed, for people: what clients of the box saw of the switch."""
    who = "a client on the box itself, which asked all along"
    lost = seen.get("silent_s")
    if lost is not None:
        return (
            f"clients are without an answer for {lost} s now: the server answered before and does not any more ({who})"
        )
    if seen["downtime_s"] is not None:
        return f"downtime {seen['downtime_s']} s: from the last good answer before to the first one after ({who})"
    if seen.get("first_s") is not None:
        return f"the first answer came after {seen['first_s']} s; nothing answered before, so no client lost anything"
    if seen["answers"] == 0 and seen["failures"]:
        return f"nothing answered, before this run or in it ({who})"
    return f"no downtime: {seen['answers']} answers, none failed ({who})"
