"""Take in a machine that gpubox does not know: look, propose, write inventory and profile; nothing there changes."""
