"""What runs: a folder per domain, a file per handler; key = path."""
