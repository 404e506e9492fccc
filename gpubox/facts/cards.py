"""Whether the NVIDIA driver answers on this machine. One command."""

from typing_extensions import override

from gpubox.facts.answers import Fact


class DriverAnswers(Fact[str]):
    """Empty: /dev/nvidiactl opens; else why not, as the shell said it (no such file, not permitted, no such device)."""

    @override
    def command(self) -> str:
        return "( : <>/dev/nvidiactl ) 2>&1 || true"

    @override
    def process(self, output: list[str]) -> str:
        return " ".join(output).rpartition("/dev/nvidiactl: ")[2].strip()
