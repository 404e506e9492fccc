"""Containers on a hypervisor, reached by ssh. Ships pointing at the practice machine that `gpubox lab up` makes."""

from gpubox.inventory import checked

_lab = {
    "ssh_user": "root",
    "ssh_key": "/var/lib/gpubox-lab/ssh/id_ed25519",
    "ssh_known_hosts_file": "/var/lib/gpubox-lab/ssh/known_hosts",
}

hypervisors = [
    ("pve01", {"ssh_hostname": "10.87.0.10", "kind": "lxc", **_lab}),
]

gpu_boxes = [
    (
        "gpu01",
        {
            "ssh_hostname": "10.87.0.11",
            "hypervisor": "pve01",
            "container": {"kind": "lxc", "name": "gpu01"},
            "profile": "tiny-cpu",
            # The practice machine's own packages. Leave `cuda` out, and the box takes NVIDIA's repository.
            "cuda": {
                "source": {
                    "uri": "http://10.87.0.10:8080/cuda/debian12/x86_64/",
                    "keyring": "/var/lib/gpubox-lab/apt/cuda/debian12/x86_64/cuda-keyring_1.1-1_all.deb",
                }
            },
            **_lab,
        },
    ),
]

checked(globals())
