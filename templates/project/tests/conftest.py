"""`pytest tests/ --hosts=NAME` asks the boxes whether they are as the inventory says.

The tests are gpubox's own acceptance tests, as installed, and what you put into this folder.
"""

pytest_plugins = ["gpubox.testing.plugin"]
