"""An example: a container on Proxmox VE. Copy it, put in your addresses, run pyinfra with it and deploy.py."""

from gpubox.inventory import checked

hypervisors = [
    # The Proxmox host: ssh as root, because it edits /etc/pve/lxc/ID.conf and restarts the container.
    ("pve", {"ssh_hostname": "192.0.2.10", "kind": "proxmox"}),
]

gpu_boxes = [
    (
        "gpu-a",
        {
            "ssh_hostname": "192.0.2.11",
            "hypervisor": "pve",
            # allow_restart=False: changed devices are written and reported, the container goes on serving.
            "container": {"kind": "proxmox", "name": "101", "allow_restart": False},
            "gpus": "all",  # or indices, UUIDs or PCI addresses: [0, 1], ["0000:c1:00.0"]
            "profile": "glm-5-nvfp4",
            # SGLang listens on all addresses: either nobody else is on that network, or `api_key_file` names a key.
            "exposure": "private-network",
        },
    ),
]

checked(globals())
