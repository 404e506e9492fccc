"""Take GPU boxes from a bare system to a verified model server: the steps, in order.

pyinfra -y inventory/lxc.py deploy.py
"""

from gpubox.deploy import here
from gpubox.inventory import Box, Hypervisor
from tasks.alone import alone
from tasks.base import base
from tasks.connection import connection
from tasks.cuda import cuda
from tasks.hypervisor import hypervisor
from tasks.model import model
from tasks.python_env import python_env
from tasks.ready import ready
from tasks.server import server

this = here()

alone()  # one run at a time on a host

if isinstance(this, Hypervisor):
    hypervisor(this)  # cards into the containers; restarts one only when its devices changed

connection()  # every host waits here for the hypervisors; ssh again to a container that was restarted

if isinstance(this, Box):
    base(this)  # packages, time zone, limits, kernel settings
    cuda(this)  # toolkits side by side, the system's default
    packages = python_env(this)  # the venv, equal to the stack's locks
    weights = model(this)  # in place
    server(this, changed=packages + weights)  # unit and environment, started, restarted on change
    ready(this)  # a real answer
