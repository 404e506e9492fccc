"""Secure Boot, told before a reboot: as mokutil, the firmware's variable and modinfo print it."""

import pytest

from gpubox.hypervisor import secure_boot
from gpubox.hypervisor.secure_boot import SecureBoot

ON = "SecureBoot enabled\n"
NEW_KEY = f"key: {secure_boot.KEY} is not enrolled\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", SecureBoot()),
        ("EFI variables are not supported on this system\nsigner: \n", SecureBoot()),
        ("SecureBoot disabled\nsigner: \n", SecureBoot(on=False)),
        (f"{ON}signer: DKMS module signing key\n{NEW_KEY}", SecureBoot(True, "DKMS module signing key", False)),
        (
            f"{ON}signer: Canonical Ltd.\nkey: {secure_boot.KEY} is already enrolled\n",
            SecureBoot(True, "Canonical Ltd.", True),
        ),
        (f"{ON}signer: DKMS\nkey: mokutil: command not found\n", SecureBoot(True, "DKMS", None)),
    ],
)
@pytest.mark.pain("P105")
def test_what_the_programs_print(text: str, found: SecureBoot) -> None:
    assert secure_boot.parse(text) == found


@pytest.mark.parametrize(
    ("found", "module", "said"),
    [
        (SecureBoot(True, "", None), True, "is not signed"),
        (SecureBoot(True, "DKMS module signing key", False), True, "does not know the key"),
        (SecureBoot(True, "Canonical Ltd.", None), True, None),
        (SecureBoot(True, "DKMS", True), True, None),
        (SecureBoot(True, "", None), False, None),
        (SecureBoot(False, "", None), True, None),
        (SecureBoot(), True, None),
    ],
)
@pytest.mark.pain("P105")
def test_what_the_next_boot_would_refuse(found: SecureBoot, module: bool, said: str | None) -> None:
    line = secure_boot.warning(found, module)
    assert (line is None) is (said is None)
    if line is not None and said is not None:
        assert said in line
        assert "mokutil --import" in line
        assert "console" in line
