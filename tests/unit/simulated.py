"""Answers of machines that are only described: the practice machine's hardware, as the look would meet it."""

from gpubox.facts.answers import Answer
from gpubox.lab import hardware, nvidia_smi
from gpubox.onboard import probe, questions
from gpubox.onboard.state import Box

_DF = "Filesystem 1-blocks Used Available Capacity Mounted on\n"
_SIGNS = {
    "lxc": {"init": "lxc\n"},
    "vm": {"detect-virt": "kvm\n", "dmi": "QEMU\nStandard PC (Q35 + ICH9, 2009)\n"},
    "bare": {"detect-virt": "none\n", "dmi": "Supermicro\nAS-4125GS\n"},
}


def box(described: str, place: str, **more: str) -> Box:
    """The machine with the described hardware.

    + more: texts of other answers, by the question's name with _ for -
    """
    return probe.read_box(answers(described, place, **more))


def answers(described: str, place: str, **more: str) -> dict[str, Answer]:
    """Every question's answer, exit code 0 where there is a text, 1 where there is none."""
    wanted = hardware.load(described)
    live = hardware.live_state(described, wanted, wanted.majors)
    opened = dict.fromkeys(("nvidiactl", *(f"nvidia{n}" for n in range(len(wanted.cards)))), 0)

    def smi(*words: str) -> str:
        return nvidia_smi.answer(words, live, opened)[0]

    texts = {
        "hostname": "box\n",
        "os": "debian12\nDebian GNU/Linux 12 (bookworm)\n",
        "kernel": "6.8.12-4-pve\n",
        "architecture": "x86_64\n",
        "memory-free": "1040000000\n",
        "addresses": "192.0.2.21\n",
        "python": "Python 3.11.2\n",
        "cpu": "AMD EPYC 9355\n",
        "cores": "64\n",
        "sockets": "2\n",
        "memory": "1056000000\n",
        "memory-limit": "max\n",
        "shm": f"{_DF}tmpfs 540672000000 0 540672000000 0% /dev/shm\n",
        "disks": f"{_DF}/dev/nvme0n1p2 3800000000000 0 3500000000000 5% /\n",
        "cards": smi(f"--query-gpu={questions.CARD_FIELDS}", "--format=csv,noheader,nounits"),
        "topo-m": smi("topo", "-m"),
        "topo-p2p": smi("topo", "-p2p", "r"),
        "driver": hardware.driver_text(wanted.driver),
        "devices": hardware.proc_devices("Character devices:\n  1 mem\n\nBlock devices:\n", wanted.majors),
        "nodes": _nodes(hardware.node_list(len(wanted.cards), wanted.majors)),
        "pci": "".join(f"{card['pci.bus_id'][4:].lower()} nvidia\n" for card in wanted.cards),
        "nvidiactl": "\n",
        "servers": "[]\n",
        **_SIGNS[place],
        **{name.replace("_", "-"): text for name, text in more.items()},
    }
    return {name: Answer(0 if texts.get(name) else 1, texts.get(name, "")) for name in questions.BOX}


def _nodes(listing: str) -> str:
    """`name major minor mode` in decimal, as stat prints it: path, hexadecimal numbers."""
    rows = (line.split() for line in listing.splitlines())
    return "".join(f"/dev/{name} {int(major):x} {int(minor):x} {mode}\n" for name, major, minor, mode in rows)
