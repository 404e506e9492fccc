"""Take the boxes of an inventory from a bare system to a verified model server: gpubox's own steps, in their order.

pyinfra -y inventory/NAME.py deploy.py
"""

from gpubox.deploy import run_steps

run_steps()

# Operations of your own go below: https://docs.pyinfra.com
