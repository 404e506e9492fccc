"""Let the lab's packets through a firewall that drops forwarding by default, as Docker's and ufw's do.

An accept in the lab's own table would not help: every table has its say. So two rules, marked as ours, go first into
the chain that drops (the one that iptables over nftables makes); `down` removes exactly these.
"""

import json
from typing import Any

from gpubox.lab import shell

_CHAIN = ("ip", "filter", "FORWARD")
_MARK = "gpubox_lab"


def open_for(bridge: str) -> bool:
    """Insert the rules if forwarding is dropped and they are missing; whether they were inserted."""
    listed = _listing()
    if not any(item.get("chain", {}).get("policy") == "drop" for item in listed) or _own_handles(listed):
        return False
    for direction in ("iifname", "oifname"):
        shell.run("nft", "insert", "rule", *_CHAIN, direction, bridge, "accept", "comment", f'"{_MARK}"')
    return True


def close() -> None:
    """Remove the rules that `open_for` inserted."""
    for handle in _own_handles(_listing()):
        shell.run("nft", "delete", "rule", *_CHAIN, "handle", str(handle))


def _listing() -> list[dict[str, Any]]:
    """The chain as nft's JSON; empty where there is none."""
    text = shell.run("nft", "-j", "list", "chain", *_CHAIN, ok=(0, 1))
    found: list[dict[str, Any]] = json.loads(text)["nftables"] if text.strip() else []
    return found


def _own_handles(listed: list[dict[str, Any]]) -> list[int]:
    return [item["rule"]["handle"] for item in listed if item.get("rule", {}).get("comment") == _MARK]
