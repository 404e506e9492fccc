"""What people write, as typed data: hosts, profiles, stacks and their lock files."""
