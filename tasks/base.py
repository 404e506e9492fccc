"""Step `base`: OS packages, time zone, limits, kernel settings."""

from functools import partial

from gpubox.deploy import step
from gpubox.facts.base import BaseFact
from gpubox.facts.once import read
from gpubox.hosts import Box
from gpubox.operations.base import sysctls, timezone
from gpubox.operations.files import owned_files
from gpubox.operations.packages import foresee, installed
from gpubox.support.owned_file import OwnedFile
from gpubox.support.templates import render


@step("Base")
def base(box: Box) -> None:
    """Bring the box's own system to what `base` in its data says."""
    wish = box.settings.base
    files = [
        OwnedFile("/etc/security/limits.d/90-gpubox.conf", render("limits.conf.j2", limits=wish.limits)),
        OwnedFile("/etc/sysctl.d/90-gpubox.conf", render("sysctl.conf.j2", sysctls=wish.sysctls)),
    ]
    paths = [file.path for file in files]
    look = partial(read, BaseFact, names=wish.packages, paths=paths, sysctls=list(wish.sysctls))

    foresee(wish.packages, look().packages)
    installed(name="OS packages", names=wish.packages, look=lambda: look().packages)
    timezone(name="Time zone", zone=wish.timezone, look=lambda: look().timezone)
    owned_files(name="Limits and kernel settings, for the next boot", files=files, look=lambda: look().files)
    sysctls(name="Kernel settings, now", wanted=wish.sysctls, look=lambda: look().sysctls)
