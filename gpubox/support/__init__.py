"""What every floor uses and what uses none of them: errors, ssh, files, versions, secrets."""
