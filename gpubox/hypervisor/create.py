"""Make a container that the hypervisor does not have: the commands of each kind, and plain LXC's configuration."""

import shlex
from collections.abc import Sequence

from gpubox.hypervisor.kinds import Kind
from gpubox.hypervisor.lxc_config import Cgroup
from gpubox.settings.host import Create
from gpubox.support.errors import GpuboxError

LXC_ROOT = "/var/lib/lxc"
_BEHIND_A_STUB = "/run/systemd/resolve/resolv.conf"
_FIRST_MAPPED, _MAPPED = 100000, 65536


def commands(box: Kind, wish: Create, hostname: str, cgroup: Cgroup) -> list[list[str]]:
    """The commands, as words, that make the container; it is not started. Errors: what this kind cannot do."""
    if box.name == "proxmox":
        return [_pct(box, wish, hostname)]
    if box.name == "incus":
        return _incus(box, wish)
    return [_unpack(box, wish, hostname, lxc_text(box, wish, hostname, cgroup))]


def lxc_text(box: Kind, wish: Create, hostname: str, cgroup: Cgroup) -> str:
    """Plain LXC: the new container's configuration."""
    lines = ["# made by gpubox; from here on it is yours, but for the block at its end"]
    lines += ["lxc.include = /usr/share/lxc/config/common.conf"]
    if wish.unprivileged:
        lines += ["lxc.include = /usr/share/lxc/config/userns.conf"]
        lines += [f"lxc.idmap = {kind} 0 {_FIRST_MAPPED} {_MAPPED}" for kind in "ug"]
        lines += ["lxc.rootfs.options = idmap=container"]  # the files keep their owners: the mount maps them
    lines += [f"lxc.uts.name = {hostname}", f"lxc.rootfs.path = dir:{LXC_ROOT}/{box.container}/rootfs"]
    lines += ["lxc.start.auto = 1", "lxc.net.0.type = veth", f"lxc.net.0.link = {wish.bridge}"]
    lines += ["lxc.net.0.flags = up", "lxc.net.0.name = eth0"]
    if wish.address != "dhcp":
        lines += [f"lxc.net.0.ipv4.address = {wish.address}"]
    if wish.gateway:
        lines += [f"lxc.net.0.ipv4.gateway = {wish.gateway}"]
    return "\n".join([*lines, *_limits(wish, cgroup), *wish.lines, ""])


def way_in(public_key: str) -> str:
    """Shell text for inside the container: sshd installed and running, `public_key` accepted for root.

    It may be some tenths of a second old, so its systemd is waited for; templates come without host keys.
    """
    key = shlex.quote(public_key.strip())
    return f"""set -e
for wait in $(seq 120); do systemctl list-jobs >/dev/null 2>&1 && break; sleep 0.25; done
if ! [ -x /usr/sbin/sshd ]; then
    export DEBIAN_FRONTEND=noninteractive
    for wait in 1 2 4 8 16; do apt-get update -q && break; sleep $wait; done
    apt-get install -y -q openssh-server
fi
mkdir -p /root/.ssh && chmod 700 /root/.ssh && touch /root/.ssh/authorized_keys && chmod 600 /root/.ssh/authorized_keys
grep -qxF {key} /root/.ssh/authorized_keys || printf '%s\\n' {key} >>/root/.ssh/authorized_keys
ssh-keygen -A >/dev/null
systemctl enable --quiet --now ssh"""


def way_in_question(public_key: str) -> str:
    """Shell text for inside the container: exit code 0 if `way_in` has nothing to do, 1 if it has.

    A container that was restarted a moment ago gets 15 s until its sshd runs.
    """
    known = f"grep -sqxF {shlex.quote(public_key.strip())} /root/.ssh/authorized_keys"
    runs = "for wait in $(seq 60); do systemctl is-active --quiet ssh.service && exit 0; sleep 0.25; done"
    return f"[ -x /usr/sbin/sshd ] && {known} || exit 1; {runs}; exit 1"


def _limits(wish: Create, cgroup: Cgroup) -> list[str]:
    lines = []
    if wish.memory_mib:
        key = "lxc.cgroup.memory.limit_in_bytes" if cgroup == "v1" else "lxc.cgroup2.memory.max"
        lines.append(f"{key} = {wish.memory_mib}M")
    if wish.cores:
        quota = wish.cores * 100000
        lines.append(
            f"lxc.cgroup.cpu.cfs_quota_us = {quota}" if cgroup == "v1" else f"lxc.cgroup2.cpu.max = {quota} 100000"
        )
    return lines


def _unpack(box: Kind, wish: Create, hostname: str, text: str) -> list[str]:
    """Built beside and renamed: a container is there whole or not at all."""
    final, new = f"{LXC_ROOT}/{box.container}", f"{LXC_ROOT}/.{box.container}.gpubox-new"
    steps: Sequence[Sequence[str]] = [
        ["rm", "-rf", new],
        ["mkdir", "-p", "-m", "755", f"{new}/rootfs"],
        ["tar", "--numeric-owner", "--xattrs", "-xpf", wish.template, "-C", f"{new}/rootfs"],
        ["test", "-x", f"{new}/rootfs/sbin/init"],
    ]
    write = f"printf %s {shlex.quote(text)} >{shlex.quote(new + '/config')}"
    etc = shlex.quote(f"{new}/rootfs/etc")
    name = f"printf '%s\\n' {shlex.quote(hostname)} >{etc}/hostname"
    # with a fixed address nobody tells the container its name servers; a resolver of the hypervisor's own is not its
    copied = f"cp {_BEHIND_A_STUB} {etc}/resolv.conf 2>/dev/null || cp /etc/resolv.conf {etc}/"
    servers = f"rm -f {etc}/resolv.conf && {{ {copied}; }}"
    # without an identity its systemd would enable all that a first boot enables, and wait for a network
    identity = f"tr -d - </proc/sys/kernel/random/uuid >{etc}/machine-id"
    own = [name, identity] if wish.address == "dhcp" else [name, identity, servers]
    last = shlex.join(["mv", "-T", new, final])
    grants = [_grant(file) for file in ("/etc/subuid", "/etc/subgid")] if wish.unprivileged else []
    return ["/bin/sh", "-c", " && ".join([*grants, *map(shlex.join, steps), *own, write, last])]


def _grant(file: str) -> str:
    """Root may map these ids: newuidmap refuses without, even for root (Proxmox ships the line)."""
    line = f"root:{_FIRST_MAPPED}:{_MAPPED}"
    return f"{{ grep -sqxF {line} {file} || printf '%s\\n' {line} >>{file}; }}"


def _pct(box: Kind, wish: Create, hostname: str) -> list[str]:
    if not wish.storage:
        raise GpuboxError("create.storage is not given", "the storage for the container's disk, as local-zfs")
    gateway = f",gw={wish.gateway}" if wish.gateway else ""
    words = ["/usr/sbin/pct", "create", box.container, wish.template, "--hostname", hostname]
    words += ["--rootfs", f"{wish.storage}:{wish.disk_gib}", "--onboot", "1", "--features", "nesting=1"]
    words += ["--net0", f"name=eth0,bridge={wish.bridge},ip={wish.address}{gateway}"]
    words += ["--unprivileged", str(int(wish.unprivileged))]
    words += ["--cores", str(wish.cores)] if wish.cores else []
    return [*words, "--memory", str(wish.memory_mib), "--swap", "0"] if wish.memory_mib else words


def _incus(box: Kind, wish: Create) -> list[list[str]]:
    if wish.address != "dhcp":
        raise GpuboxError(
            f"create.address is {wish.address}: Incus gives addresses through its network",
            "dhcp",
            "reserve the address there: incus network / the DHCP server of the bridge",
        )
    config = [f"security.privileged={'false' if wish.unprivileged else 'true'}", "boot.autostart=true"]
    config += [f"limits.cpu={wish.cores}"] if wish.cores else []
    config += [f"limits.memory={wish.memory_mib}MiB"] if wish.memory_mib else []
    options = [word for pair in config for word in ("-c", pair)]
    pool = wish.storage or "default"
    words = ["/usr/bin/incus", "init", wish.template, box.container, "--no-profiles", "--storage", pool, *options]
    words += ["--device", f"root,size={wish.disk_gib}GiB"]
    nic = ["eth0", "nic", "nictype=bridged", f"parent={wish.bridge}", "name=eth0"]
    return [words, ["/usr/bin/incus", "config", "device", "add", box.container, *nic]]
