"""The questions of the look, as shell text that changes nothing; gpubox.onboard.probe reads the answers."""

from gpubox.driver import kernel_log
from gpubox.facts import apt
from gpubox.hypervisor import bars, boots, bus, cards, modules, nodes, secure_boot
from gpubox.remote import cgroup
from gpubox.support import payload

CARD_FIELDS = (
    "index,uuid,name,compute_cap,memory.total,power.limit,pci.bus_id,"
    "pcie.link.gen.max,pcie.link.gen.current,pcie.link.width.max,pcie.link.width.current,temperature.gpu"
)
GPUS = {
    "cards": f"nvidia-smi --query-gpu={CARD_FIELDS} --format=csv,noheader,nounits",
    "stand-in": "nvidia-smi -L 2>&1 >/dev/null | grep -q STAND-IN",
    "topo-m": "nvidia-smi topo -m",
    "topo-p2p": "nvidia-smi topo -p2p r",
    "driver": "cat /proc/driver/nvidia/version",
    "licence": "/sbin/modinfo -F license nvidia",
    "module-on-disk": modules.ON_DISK,
    "reboot-required": modules.REBOOT,
    "nvidiactl": "( : <>/dev/nvidiactl ) 2>&1",
    "pci": cards.LIST,
    "numa": """for d in /sys/bus/pci/devices/*; do case $(cat "$d/vendor")$(cat "$d/class") in 0x10de0x03*)
echo "${d##*/} $(cat "$d/numa_node")";; esac; done""",
    "devices": "cat /proc/devices",
    "nodes": nodes.LIST,
    "bus": bus.LIST,
    "bars": bars.QUESTION,
    "secure-boot": secure_boot.QUESTION,
    "kernel-log": kernel_log.QUESTION,
    "boots": boots.QUESTION,
}
"""About driver and cards: asked of a box and of its hypervisor alike."""

_PROXIES = "grep -iE '^[a-z]+_proxy=' | sed -E '/^no_proxy=/I!s/=.*/=set/'"
"""Of NAME=value lines those about proxies; a proxy's own value may hold a password, and stays on the machine."""

_COMMON = {
    "hostname": "cat /proc/sys/kernel/hostname",
    "os": '. /etc/os-release; echo "$ID$VERSION_ID"; echo "$PRETTY_NAME"',
    "kernel": "uname -r",
}

BOX = {
    **_COMMON,
    **GPUS,
    "addresses": "hostname -I",
    "init": "tr '\\0' '\\n' </proc/1/environ | sed -n 's/^container=//p'",
    "run-container": "cat /run/systemd/container",
    "detect-virt": "systemd-detect-virt",
    "dmi": "cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name",
    "cpu-flag": "grep -qw hypervisor /proc/cpuinfo",
    "python": "python3 --version",
    "cpu": "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n1",
    "cores": cgroup.AFFINITY_TEXT,
    "cpuset": cgroup.first(cgroup.CPUSET),
    "quota": cgroup.QUOTA_TEXT,
    "sockets": "sed -n 's/^physical id[^:]*: //p' /proc/cpuinfo | sort -u | wc -l",
    "memory": "sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo",
    "memory-free": "sed -n 's/^MemAvailable: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo",
    "architecture": "uname -m",
    "memory-limit": cgroup.first(cgroup.LIMIT),
    "shm": "df -PB1 /dev/shm",
    "disks": "df -PB1 -x tmpfs -x devtmpfs -x squashfs -x efivarfs",
    "toolkits": """for d in /usr/local/cuda-*; do [ -d "$d" ] && [ ! -L "$d" ] || continue
echo "${d#/usr/local/cuda-} $("$d/bin/nvcc" --version | sed -n 's/.*release \\([0-9.]*\\).*/\\1/p')"; done""",
    "toolkit-default": "readlink -e /usr/local/cuda",
    "venvs": """find /root /opt /home /srv /data /mnt /venv /var/lib/gpubox -xdev -maxdepth 4 -name pyvenv.cfg |
while read -r f; do d=${f%/pyvenv.cfg}; s=$(echo "$d"/lib/python*/site-packages/sglang-*.dist-info); s=${s##*/sglang-}
[ "$s" != "*.dist-info" ] || s=
printf '%s\\t%s\\t%s\\n' "$d" "$(sed -n 's/^version[^=]*= *//p' "$f" | head -n1)" "${s%.dist-info}"; done""",
    "units": """grep -lE 'sglang|vllm' /etc/systemd/system/*.service /usr/lib/systemd/system/*.service |
while read -r f; do u=${f##*/}; echo "$u $(systemctl is-active "$u")"; done""",
    "servers": payload.shell("servers", flags=payload.BARE),
    "users": """find /proc/[0-9]*/fd -lname '/dev/nvidia*' | cut -d/ -f3 | sort -un |
while read -r p; do printf '%s\\t%s\\n' "$p" "$(tr '\\0\\n' '\\t ' <"/proc/$p/cmdline")"; done""",
    "proxies": f"systemctl show-environment | {_PROXIES}",
    "login-proxies": f"""sed -E 's/^export[[:space:]]+//; s/="(.*)"$/=\\1/' /etc/environment | {_PROXIES}""",
    "apt-check": "LC_ALL=C apt-get check -q -o Debug::NoLocking=1 2>&1",
    "dpkg-audit": "LC_ALL=C dpkg --audit 2>&1",
    "apt-holders": apt.HOLDERS,
}

# as PVE::LXC::Config::parse_pct_config: up to the first header, the last of equal keys
_PCT_HOSTNAME = """name_of() { sed -nE '/^\\[(pve:pending|[a-z][a-z0-9_-]+)\\][[:space:]]*$/Iq
s/^hostname:[[:space:]]*(.*[^[:space:]])[[:space:]]*$/\\1/p' "$1" | tail -n1; }
"""

HYPERVISOR = {
    **_COMMON,
    **GPUS,
    "kind": """if [ -x /usr/sbin/pct ]; then echo proxmox; elif [ -x /usr/bin/incus ]; then echo incus
elif [ -x /usr/bin/lxc-ls ]; then echo lxc; fi""",
    "containers": f"""{_PCT_HOSTNAME}if [ -x /usr/sbin/pct ]; then
for f in /etc/pve/lxc/*.conf; do [ -e "$f" ] || continue
n=${{f##*/}}; n=${{n%.conf}}; printf '%s\\t%s\\t%s\\n' "$n" "$(name_of "$f")" "$(
/usr/bin/lxc-info -n "$n" -iH | tr '\\n' ' ')"; done
elif [ -x /usr/bin/incus ]; then /usr/bin/incus list --format csv --columns n4 | sed 's/"//g' | grep -E '^[^,]+,' |
while IFS=, read -r n a; do printf '%s\\t%s\\t%s\\n' "$n" "$n" "$a"; done
elif [ -x /usr/bin/lxc-ls ]; then for n in $(/usr/bin/lxc-ls -1); do
printf '%s\\t%s\\t%s\\n' "$n" "$n" "$(/usr/bin/lxc-info -n "$n" -iH | tr '\\n' ' ')"; done; fi""",
}

_FOR_RULES = (
    "cards",
    "pci",
    "driver",
    "licence",
    "module-on-disk",
    "reboot-required",
    "os",
    "init",
    "run-container",
    "detect-virt",
    "dmi",
    "cpu-flag",
    "memory-free",
    "architecture",
    "kernel-log",
    "proxies",
)
FACTS = {name: BOX[name] for name in _FOR_RULES}
"""What the rules judge by (gpubox.rules.facts.BoxFacts)."""
