"""`python -m gpubox.cli`: the command line without its installed script."""

from gpubox.cli import main

main()
