"""An example: a machine with its own cards and no hypervisor. Copy it, put in your address."""

from gpubox.inventory import checked

gpu_boxes = [
    (
        "gpu-b",
        {
            "ssh_hostname": "192.0.2.21",
            # A user other than root needs: "ssh_user": "ops", "_sudo": True
            "profile": "glm-5-nvfp4",
            # SGLang listens on all addresses: either nobody else is on that network, or `api_key_file` names a key.
            "exposure": "private-network",
            "cuda": {"toolkits": ["12.8", "13.1"], "default": "13.1"},
        },
    ),
]

checked(globals())
