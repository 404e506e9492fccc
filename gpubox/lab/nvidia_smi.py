#!/usr/bin/env python3
"""nvidia-smi of the practice machine: a STAND-IN that replays the described cards. There is no GPU and no driver here.

Copied into the boxes as it is, so it uses the standard library only. Like the real one it needs the device nodes: what
cannot be opened is not there, and without /dev/nvidiactl it fails with the real one's words and exit codes.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LIVE = "/var/lib/gpubox-lab/hardware/live.json"
SET = "/var/lib/gpubox-lab/hardware/limits.json"
"""What was set since the "driver" was loaded: UUID -> fields. lab-driver removes it, as a load of the real one does."""
_UNITS = {"memory": "MiB", "power": "W", "utilization": "%", "clocks": "MHz"}
_UNITLESS = {"power.management"}
_ALIASES = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_serial": "serial"}
_DEFAULTS = {
    "utilization.gpu": 0,
    "utilization.memory": 0,
    "persistence_mode": "Enabled",
    "compute_mode": "Default",
    "mig.mode.current": "[N/A]",
    "mig.mode.pending": "[N/A]",
    "display_active": "Disabled",
    "serial": "[N/A]",
    "fan.speed": "[N/A]",
    "addressing_mode": "None",
    "ecc.errors.uncorrected.volatile.total": 0,
    "clocks.sm": 180,
    "clocks.mem": 405,
    "clocks.current.graphics": 180,
    "clocks.current.memory": 405,
    "clocks_event_reasons.active": "0x0000000000000001",
    "ecc.mode.current": "[N/A]",
    "vbios_version": "[N/A]",
}
_NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)
_TOPO_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
_P2P_LEGEND = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""

Live = dict[str, Any]
Card = dict[str, Any]
_SETTERS = {
    "-pl": "-pl",
    "--power-limit": "-pl",
    "-lgc": "-lgc",
    "--lock-gpu-clocks": "-lgc",
    "-lmc": "-lmc",
    "--lock-memory-clocks": "-lmc",
    "-pm": "-pm",
    "--persistence-mode": "-pm",
    "-rgc": "-rgc",
    "--reset-gpu-clocks": "-rgc",
    "-rmc": "-rmc",
    "--reset-memory-clocks": "-rmc",
}
_CLOCKS = {"-lgc": ("GPU", "gpu", "clocks.current.graphics"), "-lmc": ("Memory", "mem", "clocks.current.memory")}


def answer(argv: Sequence[str], live: Live, opened: dict[str, int]) -> tuple[str, int]:
    """Standard output and exit code for these arguments; `opened` is the errno of opening each node under /dev."""
    failure = _initialise(opened)
    if failure:
        return failure
    cards = [dict(c, index=i) for i, c in enumerate(c for c in live["cards"] if _usable(opened, f"nvidia{c['minor']}"))]
    if not cards:
        return "No devices were found\n", 6
    options = _options(argv)
    try:
        cards = _selected(cards, options)
        return _report(options, live, cards), 0
    except LookupError as error:
        return f"{error.args[0]}\n", 2


def _initialise(opened: dict[str, int]) -> tuple[str, int] | None:
    state = opened.get("nvidiactl", errno.ENOENT)
    if state == errno.ENOENT:
        return _NO_DRIVER, 9
    if state == errno.EPERM:  # the device cgroup refuses: what a container without an allow rule sees
        return "Failed to initialize NVML: Unknown Error\n", 255
    if state == errno.EACCES:
        return "Failed to initialize NVML: Insufficient Permissions\n", 4
    return None


def _usable(opened: dict[str, int], node: str) -> bool:
    return opened.get(node, errno.ENOENT) not in (errno.ENOENT, errno.EPERM, errno.EACCES)


def _options(argv: Sequence[str]) -> dict[str, str]:
    """Arguments as name -> value; `--a=b`, `-i 0` and bare words (`topo -m`) are understood."""
    found: dict[str, str] = {}
    rest = list(argv)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        valued = name in ("-i", "--id", "-p2p", "-d", "--display") or _SETTERS.get(name, "-r").startswith(("-p", "-l"))
        if not equals and valued and rest:
            value = rest.pop(0)
        found[name] = value
    return found


def change(
    argv: Sequence[str], live: Live, opened: dict[str, int], may_write: bool
) -> tuple[str, int, dict[str, dict[str, Any]]] | None:
    """Words, exit code and UUID -> fields that these arguments set; None: they only ask. `may_write`: is root here."""
    options = _options(argv)
    wanted = {_SETTERS[name]: value for name, value in options.items() if name in _SETTERS}
    failure = _initialise(opened)
    if not wanted or failure:
        return None
    said = ""
    fields: dict[str, dict[str, Any]] = {}
    try:
        chosen = _selected([dict(c, index=i) for i, c in enumerate(live["cards"])], options)
    except LookupError as error:
        return f"{error.args[0]}\n", 6, {}
    for card in chosen:
        for setter, value in wanted.items():
            words, code, changed = _set(setter, value, card, may_write)
            said += words
            if code:
                return f"{said}Terminating early due to previous errors.\n", code, fields
            fields.setdefault(card["uuid"], {}).update(changed)
    return f"{said}All done.\n", 0, fields


def _set(setter: str, value: str, card: Card, may_write: bool) -> tuple[str, int, dict[str, Any]]:
    """One setting of one card, in the real program's words; what it lacks is a warning there, with exit code 0."""
    bus = card["pci.bus_id"]
    what = {"-pl": "power limit", "-pm": "persistence mode"}.get(setter, "clocks")
    if not may_write:
        return f"The current user does not have permission to change the {what} for GPU {bus}.\n", 4, {}
    if setter == "-pl":
        return _set_power(float(value), card)
    if setter in _CLOCKS:
        name, short, field = _CLOCKS[setter]
        lowest, _, highest = value.partition(",")
        words = f'{name} clocks set to "({short}ClkMin {lowest}, {short}ClkMax {highest})" for GPU {bus}\n'
        now = int(card.get(field, _DEFAULTS[field]))
        return words, 0, {field: max(int(lowest), min(now, int(highest))), setter: value}
    return f"Set {what} for GPU {bus}\n", 0, {setter: value or "reset"}


def _set_power(watts: float, card: Card) -> tuple[str, int, dict[str, Any]]:
    bus, lowest, highest = card["pci.bus_id"], card["power.min_limit"], card["power.max_limit"]
    if card["power.limit"] == "[N/A]":
        words = f"Changing power management limit is not supported for GPU: {bus}.\n"
        return f"{words}Treating as warning and moving on.\n", 0, {}
    if not lowest <= watts <= highest:
        between = f"between {lowest:.2f} W and {highest:.2f} W"
        words = (
            f"Provided power limit {watts:.2f} W is not a valid power limit which should be {between} for GPU {bus}\n"
        )
        return words, 2, {}
    words = f"Power limit for GPU {bus} was set to {watts:.2f} W from {card['power.default_limit']:.2f} W.\n"
    return words, 0, {"power.limit": watts}


def with_changes(live: Live, fields: dict[str, dict[str, Any]]) -> Live:
    """The live state with what was set since the driver was loaded."""
    return {**live, "cards": [{**card, **fields.get(card["uuid"], {})} for card in live["cards"]]}


def _selected(cards: list[Card], options: dict[str, str]) -> list[Card]:
    asked = options.get("-i") or options.get("--id")
    if not asked:
        return cards
    chosen = [c for c in cards for key in asked.split(",") if key in (str(c["index"]), c["uuid"], c["pci.bus_id"])]
    if not chosen:
        raise LookupError("No devices were found")
    return chosen


def _report(options: dict[str, str], live: Live, cards: list[Card]) -> str:
    query = next((v for k, v in options.items() if k in ("--query-gpu",)), None)
    if query is not None:
        return _csv(query, options.get("--format", ""), live, cards)
    if "--query-compute-apps" in options:
        return (
            ""
            if "noheader" in options.get("--format", "")
            else options["--query-compute-apps"].replace(",", ", ") + "\n"
        )
    if "topo" in options:
        return _p2p(live, cards) if "-p2p" in options else _topology(live, cards)
    if "-L" in options or "--list-gpus" in options:
        return "".join(f"GPU {c['index']}: {c['name']} (UUID: {c['uuid']})\n" for c in cards)
    if "-q" in options and "-x" in options and live.get("q_x"):
        return str(live["q_x"])
    if "-q" in options and options.get("-d", options.get("--display", "")).upper() == "POWER":
        return _power(live, cards)
    unknown = [name for name in options if name not in ("-i", "--id")]
    if unknown:
        raise LookupError(f"STAND-IN: this nvidia-smi has no recording for {' '.join(unknown)}")
    return _table(live, cards)


def _csv(query: str, form: str, live: Live, cards: list[Card]) -> str:
    fields = [field.strip() for field in query.split(",")]
    shapes = {part.strip() for part in form.split(",")}
    if "csv" not in shapes:
        raise LookupError('"--query-gpu=" switch is missing "--format=" switch, e.g. --format=csv,noheader')
    units = "nounits" not in shapes
    rows = [", ".join(_value(field, live, card, len(cards), units) for field in fields) for card in cards]
    heads = [] if "noheader" in shapes else [", ".join(f"{f} [{unit}]" if (unit := _unit(f)) else f for f in fields)]
    return "".join(f"{line}\n" for line in heads + rows)


def _value(field: str, live: Live, card: Card, count: int, units: bool) -> str:
    always = {"driver_version": live["driver"], "count": count, "timestamp": time.strftime("%Y/%m/%d %H:%M:%S.000")}
    known = _DEFAULTS | always | card
    name = _ALIASES.get(field, field)
    if name not in known or isinstance(known[name], dict):
        raise LookupError(f'Field "{field}" is not a valid field to query.\n')
    value = known[name]
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"{text} {_unit(field)}" if units and _unit(field) and text != "[N/A]" else text


def _unit(field: str) -> str:
    return "" if field in _UNITLESS else _UNITS.get(field.split(".")[0], "")


def _power(live: Live, cards: list[Card]) -> str:
    """`-q -d POWER`, as driver 590.48.01 lays it out."""
    head = {"Timestamp": time.strftime("%a %b %d %H:%M:%S %Y"), "Driver Version": live["driver"]}
    head["CUDA Version"] = live["cuda"]
    lines = ["", "==============NVSMI LOG==============", ""]
    lines += [f"{name:<55}: {value}" for name, value in head.items()]
    lines += ["", f"{'Attached GPUs':<55}: {len(cards)}"]
    for card in cards:
        lines += [f"GPU {card['pci.bus_id']}", "    GPU Power Readings"]
        fields = {
            "Average Power Draw": "power.draw",
            "Instantaneous Power Draw": "power.draw",
            "Current Power Limit": "power.limit",
            "Requested Power Limit": "power.limit",
            "Default Power Limit": "power.default_limit",
            "Min Power Limit": "power.min_limit",
            "Max Power Limit": "power.max_limit",
        }
        for name, field in fields.items():
            value = card[field]
            shown = f"{value:.2f} W" if isinstance(value, (int, float)) else "N/A"
            lines.append(f"        {name:<47}: {shown}")
    return "\n".join(lines) + "\n"


def _topology(live: Live, cards: list[Card]) -> str:
    names = [f"GPU{c['index']}" for c in cards]
    # the real one writes these escape codes into files and pipes, too
    lines = ["\t\x1b[4m" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\x1b[0m"]
    for name, card in zip(names, cards, strict=True):
        cells = [" X " if other is card else _link(live, card, other) for other in cards]
        lines.append("\t".join([name, *cells, card["numa"]["affinity"], str(card["numa"]["node"]), "", "N/A"]))
    return "\n".join(lines) + "\n" + _TOPO_LEGEND


def _link(live: Live, card: Card, other: Card) -> str:
    same = card["numa"]["node"] == other["numa"]["node"]
    return str(live["links"]["same_node" if same else "other_node"])


def _p2p(live: Live, cards: list[Card]) -> str:
    names = [f"GPU{c['index']}" for c in cards]
    lines = [" \t" + "\t".join(names) + "\t"]
    lines += [f" {n}\t" + "\t".join("X" if n == o else str(live["p2p_read"]) for o in names) + "\t" for n in names]
    return "\n".join(lines) + "\n" + _P2P_LEGEND


def _table(live: Live, cards: list[Card]) -> str:
    rule = "+-----------------------------------------+------------------------+----------------------+"
    head = f"| NVIDIA-SMI {live['driver']:<23}Driver Version: {live['driver']:<15}CUDA Version: {live['cuda']:<9}|"
    lines = [
        time.strftime("%a %b %d %H:%M:%S %Y       "),
        "+" + "-" * 89 + "+",
        head,
        rule,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|",
    ]
    idle = "      0%      Default |"
    for card in cards:
        name = card["name"] if len(card["name"]) <= 23 else card["name"][:20] + "..."
        power = f"{card['power.draw']:.0f}W / {card['power.limit']:>4.0f}W"
        memory = f"{card['memory.used']}MiB / {card['memory.total']:>6}MiB"
        mig = str(card.get("mig.mode.current", "N/A"))
        lines += [
            f"| {card['index']:>3}  {name:<31}On  |   {card['pci.bus_id']} Off |                    0 |",
            f"| N/A {card['temperature.gpu']:>4}C {card['pstate']:>5} {power:>23} | {memory:>22} |" + idle,
            f"|                                         |                        |{mig:>21} |",
            rule,
        ]
    return "\n".join(lines) + "\n" + _NO_PROCESSES


_NO_PROCESSES = """
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def _try_open(node: str) -> int:
    try:
        os.close(os.open(f"/dev/{node}", os.O_RDWR))
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _main() -> int:
    sys.stderr.write("nvidia-smi: STAND-IN of the gpubox practice machine, no GPU is here\n")
    now = json.loads(Path(SET).read_text()) if Path(SET).exists() else {}
    live = with_changes(json.loads(Path(LIVE).read_text()), now)
    opened = {node: _try_open(node) for node in ["nvidiactl", *(f"nvidia{c['minor']}" for c in live["cards"])]}
    changed = change(sys.argv[1:], live, opened, os.access(Path(SET).parent, os.W_OK))
    if changed is None:
        text, code = answer(sys.argv[1:], live, opened)
    else:
        text, code, fields = changed
        _keep({uuid: {**now.get(uuid, {}), **fields.get(uuid, {})} for uuid in {*now, *fields}}, bool(fields))
    sys.stdout.write(text)
    return code


def _keep(fields: dict[str, dict[str, Any]], is_news: bool) -> None:
    if is_news:
        beside = Path(f"{SET}.{os.getpid()}")
        beside.write_text(json.dumps(fields))
        beside.rename(SET)


if __name__ == "__main__":
    sys.exit(_main())
