"""For every hypervisor: the settings of gpubox.settings.HypervisorSettings."""

kind = "lxc"
