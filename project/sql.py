"""The statements of start: about the server and its locks, not about rows."""

# The one session lock there is: held on a connection of its own for as long as this
# process migrates, and gone with it. Two numbers, so that no other use collides.
TRY_MIGRATION_LOCK = "SELECT pg_try_advisory_lock(1297370194, 1)"  # "MTLR"

# The cheapest question there is.
PING = "SELECT 1"

# What the overview says of the server: one row, from views that no model describes.
# backend_xid and backend_xmin are what vacuum waits for; other databases' hold nothing
# back here. Who may not read others' sessions sees neither: those are counted.
HEALTH = """WITH sessions AS (
  SELECT pid, usename::text, application_name, state, xact_start, query, backend_type,
    GREATEST(age(backend_xid), age(backend_xmin)) AS held,
    datname = current_database() AS here
  FROM pg_stat_activity WHERE pid <> pg_backend_pid()
), holders AS (
  SELECT 'session' AS kind, pid, usename AS name, application_name, state, xact_start AS since, query, held
  FROM sessions WHERE held IS NOT NULL AND here
  UNION ALL
  SELECT 'prepared', NULL, gid, owner::text, NULL, prepared, NULL, age(transaction)
  FROM pg_prepared_xacts WHERE database = current_database()
  UNION ALL
  SELECT 'slot', NULL, slot_name::text, NULL, NULL, NULL, NULL, age(xmin)
  FROM pg_replication_slots WHERE xmin IS NOT NULL
), oldest AS (SELECT * FROM holders ORDER BY since NULLS FIRST, held DESC LIMIT 1)
SELECT current_setting('server_version'), pg_database_size(current_database()),
  current_setting('max_connections')::int,
  current_setting('superuser_reserved_connections')::int
    + COALESCE(current_setting('reserved_connections', TRUE), '0')::int,
  (SELECT count(*) FROM sessions WHERE backend_type = 'client backend') + 1,
  (SELECT count(*) FROM sessions WHERE here AND backend_type IS NULL),
  t.n_live_tup, t.n_dead_tup, t.last_autovacuum,
  o.kind, o.pid, o.name, o.application_name, o.state, o.since, o.query, o.held
FROM (SELECT 1) one
LEFT JOIN pg_stat_user_tables t ON t.relid = 'workqueue_workitem'::regclass
LEFT JOIN oldest o ON TRUE"""

# SQLite: its file, and what a VACUUM would give back.
FILE_HEALTH = """SELECT sqlite_version(), p.page_count * s.page_size, f.freelist_count * s.page_size
FROM pragma_page_count() p, pragma_page_size() s, pragma_freelist_count() f"""

# What an operator types to end what holds vacuum back; shown, never run.
CURES = {
    "session": "SELECT pg_terminate_backend({pid})",
    "prepared": "ROLLBACK PREPARED '{name}'",
    "slot": "SELECT pg_drop_replication_slot('{name}')",
}
