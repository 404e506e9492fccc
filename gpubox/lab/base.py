"""The layers that boxes stand on: Debian, the outer machine's client settings, and the hypervisor's programs."""

import tempfile
from pathlib import Path

from gpubox.lab import layers, paths, shell
from gpubox.lab.layers import Recipe, Stack
from gpubox.lab.steps import Steps

SUITE = "bookworm"
PACKAGES = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "python3",
    "iproute2",
    "iputils-ping",
    "netbase",
    "ca-certificates",
    "sudo",
    "procps",
    "kmod",
    "less",
    "cron",
    "logrotate",
]


def ensure(steps: Steps, client_files: dict[str, str], mirror: str, overlay: bool) -> tuple[Stack, Stack]:
    """Make what is missing; return what a GPU box and what the hypervisor stands on."""
    paths.base().mkdir(parents=True, exist_ok=True)
    stack, stacks = Stack((), overlay), []
    for recipe, title, make in (
        (_debian(mirror), "Debian base system", _debootstrap),
        (Recipe("clients", _CLIENTS, client_files), "CA certificates and package-client settings", layers.build),
        (Recipe("pve", _PVE), "programs of the hypervisor", layers.build),
    ):
        place = layers.place(recipe, stack)
        with steps.step(title) as step:
            if not place.exists():
                make(recipe, stack, step.say)
                step.did()
        stack = stack.with_top(place)
        stacks.append(stack)
    return stacks[1], stacks[2]


def _debian(mirror: str) -> Recipe:
    sources = _SOURCES.format(mirror=mirror, security=mirror.rstrip("/") + "-security", suite=SUITE)
    return Recipe("debian", _TRIM, {"etc/apt/sources.list.d/debian.sources": sources, "packages": " ".join(PACKAGES)})


def _debootstrap(recipe: Recipe, below: Stack, say: shell.OnLine) -> None:
    work = Path(tempfile.mkdtemp(prefix="tmp-", dir=paths.base()))
    work.chmod(0o755)
    downloads = paths.cache() / "debootstrap"
    downloads.mkdir(parents=True, exist_ok=True)
    mirror = recipe.files["etc/apt/sources.list.d/debian.sources"].splitlines()[1].removeprefix("URIs: ")
    options = ("--variant=minbase", f"--include={','.join(PACKAGES)}", f"--cache-dir={downloads}")
    shell.stream(shell.guarded("debootstrap", *options, SUITE, str(work), mirror), say)
    (work / "etc/apt/sources.list").unlink(missing_ok=True)
    for path, text in recipe.files.items():
        (work / path).write_text(text)
    shell.run("chroot", str(work), "sh", "-ec", recipe.script)
    work.rename(layers.place(recipe, below))


_SOURCES = """\
Types: deb
URIs: {mirror}
Suites: {suite} {suite}-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: {security}
Suites: {suite}-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""

# Boxes boot in under a second without these; host keys and the machine id belong to each box.
_TRIM = """
rm -f /packages /etc/ssh/ssh_host_* /etc/machine-id /etc/hostname /etc/resolv.conf
apt-get clean
rm -rf /var/lib/apt/lists/*
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \\
    logrotate.timer getty@.service console-getty.service container-getty@.service systemd-udevd.service \\
    systemd-journal-flush.service; do
    ln -sf /dev/null /etc/systemd/system/$unit
done
ln -sf /lib/systemd/system/multi-user.target /etc/systemd/system/default.target
"""

_CLIENTS = """
update-ca-certificates
rm -f /etc/resolv.conf
"""

_PVE = """
mkdir -p /etc/default
echo 'USE_LXC_BRIDGE="false"' > /etc/default/lxc-net
apt-get update
apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-confold lxc ifupdown bridge-utils uidmap
systemctl disable lxc-net.service lxc-monitord.service
systemctl enable lxc.service networking.service
apt-get clean
rm -rf /var/lib/apt/lists/* /etc/resolv.conf
"""
