"""The statements of start: about the server and its locks, not about rows."""

# The one session lock there is: held on a connection of its own for as long as this
# process migrates, and gone with it. Two numbers, so that no other use collides.
TRY_MIGRATION_LOCK = "SELECT pg_try_advisory_lock(1297370194, 1)"  # "MTLR"

# What the connection budget is compared with; the ORM has no model of the server.
MAX_CONNECTIONS = "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"

# The cheapest question there is.
PING = "SELECT 1"
