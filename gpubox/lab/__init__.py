"""The practice machine: real LXC, systemd, sshd, apt and SGLang; only the GPU is stood in. Never imported by the product."""
