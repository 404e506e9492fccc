"""For every GPU box: the settings of gpubox.settings.BoxSettings, as far as they differ from its defaults."""

venv_path = "/root/ml-env"
