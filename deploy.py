"""Take GPU boxes from a bare system to a verified model server: the steps, in order.

pyinfra -y inventory/lxc.py deploy.py
"""

from gpubox.deploy import here
from gpubox.hosts import Box, Hypervisor
from tasks.alone import alone
from tasks.apt import apt
from tasks.base import base
from tasks.connection import connection
from tasks.cuda import cuda
from tasks.driver import driver
from tasks.hypervisor import hypervisor
from tasks.judge import judge
from tasks.model import model
from tasks.python_env import python_env
from tasks.ready import ready
from tasks.server import server
from tasks.sources import sources

this = here()

alone()  # one run at a time on a host

if isinstance(this, Hypervisor):
    hypervisor(this)  # cards into the containers; restarts one only when its devices changed

connection()  # every host waits here for the hypervisors; ssh again to a container that was restarted

if isinstance(this, Box):
    apt(this)  # sources with one owner, nobody in the way, a dpkg that is whole
    base(this)  # packages, time zone, limits, kernel settings
    sources(this)  # NVIDIA's packages: key and source
    driver(this)  # libraries of exactly the kernel module's version
    judge(this)  # the rules again, with what only the box can say
    cuda(this)  # toolkits side by side, the system's default: the last step that may install packages
    python_env(this)  # a venv equal to the stack's locks, beside the one that serves
    model(this)  # in place
    server(this)  # a release: built, looked at, then one switch and one restart
    ready(this)  # real answers; else back to the release that gave them
