"""The practice machine: real LXC, systemd, sshd, apt, SGLang; only the GPU is stood in. No product code imports it."""
