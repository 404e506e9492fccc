"""The platform itself; imported by SGLang only after `activate`, because its own imports reach torchvision."""

from sglang.srt.platforms.cpu import CpuDeviceMixin  # type: ignore[import-not-found]  # in the service's venv
from sglang.srt.platforms.device_mixin import PlatformEnum  # type: ignore[import-not-found]
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform  # type: ignore[import-not-found]
from typing_extensions import override


class TorchCpuPlatform(CpuDeviceMixin, SRTPlatform):  # type: ignore[misc]  # bases unknown outside the service's venv
    """SGLang on torch's own CPU operators: no sgl_kernel, no AMX, no graphs."""

    _enum = PlatformEnum.OOT
    capabilities = PlatformCapabilities()

    @override
    def get_default_attention_backend(self) -> str:
        """torch's own attention; SGLang's other backends need a GPU or AMX."""
        return "torch_native"

    @override
    def is_pin_memory_available(self, device: object = None) -> bool:
        """No: there is no device to copy to."""
        return False

    @override
    def get_dispatch_key_name(self) -> str:
        """Plain torch forwards of every fused operator."""
        return "native"
