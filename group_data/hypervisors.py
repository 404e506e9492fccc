"""For every hypervisor: the settings of gpubox.settings.host.HypervisorSettings."""

kind = "lxc"
