"""admin: what the job worker deploys, on the admin's own lists."""
