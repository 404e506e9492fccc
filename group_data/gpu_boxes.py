"""For every GPU box: the settings of gpubox.settings.host.BoxSettings, as far as they differ from its defaults."""

venv_path = "/root/ml-env"
