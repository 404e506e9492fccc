"""The layers that boxes stand on: Debian, the outer machine's client settings, and the hypervisor's programs."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubox.lab import layers, paths, shell
from gpubox.lab.layers import Recipe, Stack
from gpubox.lab.releases import DEFAULT, PYTHON_311, RELEASES
from gpubox.lab.steps import Steps

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


Make = Callable[[Recipe, Stack, shell.OnLine], None]


@dataclass(frozen=True)
class Ground:
    """What every layer is made from: this machine's client settings, its Debian mirror, whether layers overlay."""

    client_files: dict[str, str]
    mirror: str
    overlay: bool

    def box(self, release: str) -> list[tuple[Recipe, str, Make]]:
        """The layers of a box of this release, bottom first: recipe, title, and what makes it."""
        about = RELEASES[release]
        title = f"Debian {about.version}"
        found: list[tuple[Recipe, str, Make]] = [
            (_debian(self.mirror, release), f"{title} base system", _debootstrap),
            (Recipe("clients", _CLIENTS, self.client_files), f"{title}: CA certificates and clients", layers.build),
        ]
        if not about.has_python_311:
            script = PYTHON_311.replace("{mirror}", self.mirror)
            found.append((Recipe("python-3.11", script), f"{title}: Python 3.11 from source", layers.build))
        return found

    def hypervisor(self) -> list[tuple[Recipe, str, Make]]:
        """The layers of the hypervisor."""
        return [*self.box(DEFAULT), (Recipe("pve", _PVE), "programs of the hypervisor", layers.build)]

    def known(self) -> set[Path]:
        """Every layer that this machine's boxes may stand on, made or not."""
        each = [self.hypervisor(), *(self.box(release) for release in RELEASES)]
        return {layer for recipes in each for layer in self.stack(recipes).layers}

    def stack(self, recipes: Sequence[tuple[Recipe, str, Make]]) -> Stack:
        """The stack that these layers make."""
        stack = Stack((), self.overlay)
        for recipe, _, _ in recipes:
            stack = stack.with_top(layers.place(recipe, stack))
        return stack


def ensure(steps: Steps, ground: Ground, releases: Iterable[str]) -> tuple[dict[str, Stack], Stack]:
    """Make what is missing; return what a GPU box of each release and what the hypervisor stands on."""
    paths.base().mkdir(parents=True, exist_ok=True)
    hypervisor = _made(steps, ground.hypervisor(), ground.overlay)
    return {release: _made(steps, ground.box(release), ground.overlay) for release in releases}, hypervisor


def _made(steps: Steps, recipes: Sequence[tuple[Recipe, str, Make]], overlay: bool) -> Stack:
    stack = Stack((), overlay)
    for recipe, title, make in recipes:
        place = layers.place(recipe, stack)
        if not place.exists():
            with steps.step(title) as step:
                make(recipe, stack, step.say)
                step.did()
        stack = stack.with_top(place)
    return stack


def _debian(mirror: str, suite: str) -> Recipe:
    sources = _SOURCES.format(mirror=mirror, security=mirror.rstrip("/") + "-security", suite=suite)
    return Recipe("debian", _TRIM, {"etc/apt/sources.list.d/debian.sources": sources, "packages": " ".join(PACKAGES)})


def _debootstrap(recipe: Recipe, below: Stack, say: shell.OnLine) -> None:
    work = Path(tempfile.mkdtemp(prefix="tmp-", dir=paths.base()))
    work.chmod(0o755)
    downloads = paths.cache() / "debootstrap"
    downloads.mkdir(parents=True, exist_ok=True)
    lines = recipe.files["etc/apt/sources.list.d/debian.sources"].splitlines()
    mirror, suite = lines[1].removeprefix("URIs: "), lines[2].split()[1]
    options = ("--variant=minbase", f"--include={','.join(PACKAGES)}", f"--cache-dir={downloads}")
    shell.stream(shell.guarded("debootstrap", *options, suite, str(work), mirror), say)
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
