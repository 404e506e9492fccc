"""For every host: how pyinfra reaches it. Plain values; a host's own data in the inventory stand above these."""

ssh_user = "root"
ssh_look_for_keys = False  # each key of the agent costs a try; servers hang up after six (pyinfra#1224)
ssh_connect_retries = 3
