"""For every host: how pyinfra reaches it. Plain values; a host's own data in the inventory stand above these."""

ssh_user = "root"
ssh_connect_retries = 3
