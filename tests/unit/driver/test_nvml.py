"""What nvidia-smi says when it does not answer: messages of public reports, words in place of values, unknown ones."""

import pytest

from gpubox.driver import nvml
from gpubox.support.known_texts import KnownText


@pytest.mark.parametrize(
    ("said", "known", "cure"),
    [
        ("Unable to determine the device handle for GPU0000:07:00.0: Unknown Error", "handle-unknown", "power-cycle"),
        (
            "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system",
            "handle-lost",
            "power away",
        ),
        ("Failed to initialize NVML: Unknown Error", "nvml-unknown", "Run the deploy"),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95",
            "version-mismatch",
            "deploy",
        ),
        ("Failed to initialize NVML: Insufficient Permissions", "nvml-permissions", "666"),
        (
            "Failed to initialize NVML: GPU access blocked by the operating system\nFailed to properly shut down NVML",
            "nvml-blocked",
            "host",
        ),
        ("Failed to initialize NVML: Driver Not Loaded", "nvml-not-loaded", "modprobe"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "nvml-library", "deploy"),
        ("No devices were found", "no-devices", "run the deploy"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest",
            "no-communication",
            "modprobe nvidia",
        ),
        ('Field "compute_cap" is not a valid field to query.', "field-unknown", "driver"),
    ],
)
def test_messages_have_a_cause_and_a_cure(said: str, known: str, cure: str) -> None:
    entry = next(text for text in nvml.table().messages if text.id == known)
    told = nvml.explain(said)
    assert (told.cause, told.known) == (entry.cause, True)
    assert cure in told.cure


def test_a_message_that_is_not_known_is_shown_and_not_guessed() -> None:
    told = nvml.explain("Something entirely\nnew happened (0x77)")
    assert told.found == "Something entirely new happened (0x77)"
    assert (told.known, told.cause) == (False, nvml.NOT_KNOWN)


@pytest.mark.parametrize(
    ("text", "value", "broken"),
    [
        (" 97887 ", "97887", False),
        ("NVIDIA GB10", "NVIDIA GB10", False),
        ("[N/A]", None, False),
        ("N/A", None, False),
        ("[Not Supported]", None, False),
        ("[Insufficient Permissions]", None, False),
        ("[Unknown Error]", None, True),
        ("Unknown Error", None, True),
        ("[GPU is lost]", None, True),
        ("[GPU requires reset]", None, True),
        ("ERR!", None, True),
        ("[Some New Word]", None, False),
        ("", None, False),
    ],
)
@pytest.mark.pain("P92", "P101")
def test_a_word_is_never_a_value(text: str, value: str | None, broken: bool) -> None:
    cell = nvml.cell(text)
    assert (cell.value, cell.broken) == (value, broken)


@pytest.mark.parametrize("entry", [*nvml.table().messages, *nvml.table().fields], ids=lambda entry: entry.id)
def test_every_entry_has_a_page(entry: KnownText) -> None:
    assert entry.source.startswith("https://")
    assert entry.cause
    assert entry.cure
