"""An example: a virtual machine with its cards passed through (VFIO). Copy it, put in your address.

There is no hypervisor here: the VM owns its cards. Between them there is no peer-to-peer, or one that lies
(nccl#2335), so the profile is one that does without.
"""

from gpubox.inventory import checked

gpu_boxes = [
    (
        "gpu-c",
        {
            "ssh_hostname": "192.0.2.31",
            "profile": "glm-5-nvfp4-vm",
            # SGLang listens on all addresses: either nobody else is on that network, or `api_key_file` names a key.
            "exposure": "private-network",
        },
    ),
]

checked(globals())
