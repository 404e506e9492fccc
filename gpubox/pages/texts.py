"""What nvidia-smi, the kernel, apt and DKMS print, as a page for people; made from the program's own tables."""

from collections.abc import Iterable

from gpubox.apt import explain
from gpubox.driver import kernel_log, nvml
from gpubox.hypervisor import last_words
from gpubox.support.known_texts import KnownText


def lines() -> list[str]:
    """Lines of Markdown, without the page's first."""
    known = kernel_log.table()
    written = [
        "# What drivers, kernels and package managers print",
        "",
        "Known texts, as regular expressions: onboarding, the doctor and the deploy judge by them, the first that fits",
        "counts. A text that is not here is shown as it stands, without a guess.",
        "",
        "## nvidia-smi, instead of cards",
        *_entries(nvml.table().messages),
        "",
        "## nvidia-smi, instead of one value of a card",
        *_entries(nvml.table().fields),
        "",
        "## Kernel log: Xids",
        "",
        f"NVIDIA's [catalogue]({known.source}) in our own words. 154 says itself what the card needs now; nothing is",
        "restarted into a reset or reboot that it asks for.",
        "",
        "| Xid | meaning | first measure |",
        "| --- | --- | --- |",
    ]
    for number, xid in known.xids.items():
        cure = " ".join(f"{known.actions[xid.action].cure} {xid.more}".split())
        written.append(f"| {number} | {_cell(xid.meaning)} | {_cell(cure)} |")
    written += ["", "## Kernel log: other lines", *_entries(known.lines)]
    written += ["", "## apt, dpkg, DKMS", *_entries(explain.table().messages)]
    written += ["", "## DKMS's make.log", *_entries(explain.table().make_log)]
    return [*written, "", "## A container that is down", *_entries(last_words.table().lines)]


def _entries(texts: Iterable[KnownText]) -> list[str]:
    written: list[str] = []
    for text in texts:
        written += ["", f"### `{text.id}`", "", "```text", text.pattern, "```", ""]
        written += [f"- cause: {' '.join(text.cause.split())}", f"- cure: {' '.join(text.cure.split())}"]
        written.append(f"- source: {text.source}")
    return written


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
