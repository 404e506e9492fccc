"""The model server's life: command line, systemd text, readiness, log verdict, releases and rollback."""
