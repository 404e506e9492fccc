"""The lab's network on the outer machine: a bridge, address translation, and the two kernel settings it needs."""

import ipaddress
import json
from pathlib import Path

from gpubox.lab import firewall, paths, shell
from gpubox.lab.files_io import write

BRIDGE = "gpubox0"
RANGE = ipaddress.IPv4Network("10.87.0.0/24")
OUTER = "10.87.0.1"
TABLE = "gpubox_lab"
MAX_BOXES = 16
HYPERVISOR = "pve01"
# systemd containers past the twentieth fail at the default of 128 instances
SYSCTLS = {"net.ipv4.ip_forward": 1, "fs.inotify.max_user_instances": 2048}


def addresses() -> dict[str, str]:
    """Every name that the lab can have, with its address."""
    boxes = {f"gpu{n:02d}": str(RANGE[10 + n]) for n in range(1, MAX_BOXES + 1)}
    return {HYPERVISOR: str(RANGE[10]), **boxes}


def hosts_file() -> str:
    """/etc/hosts of every box: every name of the lab."""
    lines = ["127.0.0.1 localhost", "::1 localhost", *(f"{address} {other}" for other, address in addresses().items())]
    return "\n".join(lines) + "\n"


def rules(outer_link: str) -> str:
    """The nftables table: masquerade out of the lab's range, and TCP segments that fit the outer link."""
    return f"""\
table ip {TABLE} {{
    chain out {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {RANGE} oifname "{outer_link}" masquerade
    }}
    chain clamp {{
        type filter hook forward priority mangle; policy accept;
        ip saddr {RANGE} tcp flags syn tcp option maxseg size set rt mtu
        ip daddr {RANGE} tcp flags syn tcp option maxseg size set rt mtu
    }}
}}
"""


def default_link() -> tuple[str, int]:
    """Name and MTU of the link of the default route; ("lo", 1500) on a machine without one."""
    routes = json.loads(shell.run("ip", "-j", "route", "show", "default") or "[]")
    name = routes[0]["dev"] if routes else "lo"
    return name, 1500 if name == "lo" else int(json.loads(shell.run("ip", "-j", "link", "show", name))[0]["mtu"])


def links() -> set[str]:
    """The network links of this machine."""
    return {str(link["ifname"]) for link in json.loads(shell.run("ip", "-j", "link"))}


def up() -> bool:
    """Make bridge, table and settings as they must be; whether anything was changed."""
    link, mtu = default_link()
    _save_settings()
    changed = [_set(name, value) for name, value in SYSCTLS.items()]
    if BRIDGE not in links():
        shell.run("ip", "link", "add", BRIDGE, "type", "bridge")
        changed.append(True)
    here = json.loads(shell.run("ip", "-j", "addr", "show", BRIDGE))[0]
    if not any(a.get("local") == OUTER for a in here["addr_info"]) or "UP" not in here["flags"] or here["mtu"] != mtu:
        shell.run("ip", "link", "set", BRIDGE, "up", "mtu", str(mtu))
        shell.run("ip", "addr", "replace", f"{OUTER}/{RANGE.prefixlen}", "dev", BRIDGE)
        changed.append(True)
    if not shell.succeeds("nft", "list", "table", "ip", TABLE):
        shell.run("nft", "-f", "-", stdin=rules(link))
        changed.append(True)
    changed.append(firewall.open_for(BRIDGE))
    return any(changed)


def down() -> None:
    """Take bridge and table away and give the kernel settings their old values back; nothing that is not the lab's."""
    if not is_ours():
        return
    if BRIDGE in links():
        shell.run("ip", "link", "delete", BRIDGE)
    if shell.succeeds("nft", "list", "table", "ip", TABLE):
        shell.run("nft", "delete", "table", "ip", TABLE)
    firewall.close()
    for name, value in json.loads(_saved_path().read_text()).items():
        _path(name).write_text(f"{value}\n")
    _saved_path().unlink()


def is_ours() -> bool:
    """Whether the lab made the bridge that is there: it saves the kernel settings before anything else."""
    return _saved_path().exists()


def _set(name: str, wanted: int) -> bool:
    now = int(_path(name).read_text())
    if now >= wanted:
        return False
    _path(name).write_text(f"{wanted}\n")
    return True


def _save_settings() -> None:
    """Once, before the first change: an interrupted `up` must not take the lab's values for the machine's."""
    if not _saved_path().exists():
        write(_saved_path(), json.dumps({name: int(_path(name).read_text()) for name in SYSCTLS}))


def _saved_path() -> Path:
    return paths.state() / "sysctls-before.json"


def _path(name: str) -> Path:
    return Path("/proc/sys", *name.split("."))
