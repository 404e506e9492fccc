"""The steps that deal with packages alone, in the order of the deploy: what the tests of apt and the driver run."""

from gpubox.deploy import here
from gpubox.hosts import Box
from tasks.alone import alone
from tasks.apt import apt
from tasks.base import base
from tasks.cuda import cuda
from tasks.driver import driver
from tasks.sources import sources

this = here()

alone()
if isinstance(this, Box):
    apt(this)
    base(this)
    sources(this)
    driver(this)
    cuda(this)
