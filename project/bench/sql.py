"""Statements of the benchmark: filling tables, and the limits that plain psycopg reaches."""

# Databases of the benchmark's own, beside whatever the server has. No model is one.
DROP_DATABASE = 'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'
CREATE_DATABASE = 'CREATE DATABASE "{name}"'

# Twenty thousand rows are made where they lie.
TENANTS = """INSERT INTO workqueue_tenant (slug, name, is_platform, is_active, modules, time_zone)
SELECT 'bench-' || g, 'Bench ' || g, FALSE, TRUE, '[]', 'UTC' FROM generate_series(1, %(count)s) g"""

# %(each)s items a tenant; the worker finds them as it would find a tick's.
ITEMS = """INSERT INTO workqueue_workitem (tenant_id, tenant_slug, handler, dedup_key, status,
  not_before, enqueued_at, trigger, slot, time_limit_s, abandon, retry_attempts, retry_base_s,
  retry_cap_s, node, attempts, failures, recoveries, rerun, last_error, held_reason)
SELECT t.id, t.slug, 'noop', CASE WHEN k = 1 THEN '' ELSE k::text END, 'pending', clock_timestamp(),
  clock_timestamp(), 'slot', date_trunc('minute', now()), 3600, 'requeue', 0, 60, 3600, '', 0, 0, 0, FALSE, '', ''
FROM workqueue_tenant t CROSS JOIN generate_series(1, %(each)s) k WHERE NOT t.is_platform"""

# A run as wide as the worker's.
_RUN = """kind, item_id, tenant_id, tenant, handler, dedup_key, trigger, slot, enqueued_at,
  claimed_at, started_at, finished_at, node_id, node, attempt, recoveries, outcome, seen, changed,
  skipped, failed, summary, error, transcript, line_count, dropped_lines, finish_id"""
_LINE = "'2026-01-01T00:00:00.000000Z INFO nothing to do for bench-' || "

# Finished runs, as many as wanted, without running anything.
HISTORY = f"""INSERT INTO audit_run (id, {_RUN})
SELECT gen_random_uuid(), 'item', g, 1 + g %% 20000, 'bench-' || g %% 20000, 'noop', '', 'slot', now(), now(),
  now(), now(), now() - g * interval '1 ms', gen_random_uuid(), 'bench, 1', 1, 0, 'succeeded', 1, 0, 0, 0, '', '',
  {_LINE} g, 1, 0, gen_random_uuid()
FROM generate_series(1, %(count)s) g"""

# A ledger as a busy installation has it, newest run first: twelve handlers, of which one is rare,
# 2,000 tenants, 40 processes, one run in forty bad, of those one in twenty with a long traceback.
# The ids carry their time, as those of claims do.
RUNS = """INSERT INTO audit_run (id, kind, item_id, tenant_id, tenant, handler, dedup_key, trigger, slot, enqueued_at,
  claimed_at, started_at, finished_at, node_id, node, attempt, recoveries, outcome, seen, changed, skipped, failed,
  summary, error, transcript, line_count, dropped_lines, finish_id)
SELECT (lpad(to_hex((extract(epoch FROM r.done) * 1000)::bigint), 12, '0') || '7' || substr(r.hash, 1, 3) || '8'
    || substr(r.hash, 4, 15))::uuid,
  'item', g, t.id, t.slug,
  CASE WHEN g %% 50000 = 77 THEN 'listed.rare' ELSE 'listed.handler_' || g %% 11 END, '', 'slot',
  date_trunc('minute', r.done), r.done - r.ran - r.waited, r.done - r.ran, r.done - r.ran, r.done,
  md5('node' || g %% 40)::uuid, 'app-' || g %% 40 || ', 31', 1, 0, r.outcome,
  g %% 50, g %% 7, 0, (r.outcome <> 'succeeded')::int,
  CASE WHEN r.outcome IN ('succeeded', 'partial') THEN g %% 50 || ' checked, ' || g %% 7 || ' changed' ELSE '' END,
  CASE WHEN r.outcome = 'succeeded' THEN ''
       WHEN g %% 800 = 0 THEN repeat('File "/app/handlers/listed.py", line ' || g %% 97 || E', in run\n', 60)
       ELSE 'ConnectionError: mail.internal:587 refused delivery ' || g || ' of tenant ' || t.slug END,
  to_char(r.done, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' INFO ' || g %% 50 || ' records are due for ' || t.slug, 1, 0,
  md5('batch' || g / 10)::uuid
FROM generate_series(%(count)s::bigint, 1, -1) g
CROSS JOIN LATERAL (SELECT md5(g::text) AS hash, now() - g * %(apart)s::interval AS done,
  interval '1 ms' * (20 + g * 7919 %% 900 + CASE WHEN g %% 1009 = 0 THEN 240000 ELSE 0 END) AS ran,
  interval '1 ms' * (100 + g * 104729 %% 3000) AS waited,
  CASE WHEN g %% 40 <> 0 THEN 'succeeded'
       ELSE (ARRAY['failed', 'partial', 'failed', 'abandoned', 'failed', 'cancelled'])[1 + (g / 40 %% 6)::int] END AS outcome) r
JOIN workqueue_tenant t ON t.slug = 'bench-' || 1 + g * 7919 %% 2000"""

# The limits: what one plain client does in turn. Nothing of the engine is in them.
CLAIM = """UPDATE workqueue_workitem SET status = 'executing', claim_id = gen_random_uuid(),
  node_id = %(node)s, node = 'bench, 1', claimed_at = now(), renewed_at = now(), started_at = now(),
  attempts = attempts + 1
WHERE id = ANY(ARRAY(SELECT id FROM workqueue_workitem WHERE status = 'pending' AND handler = 'noop'
  AND not_before <= (SELECT clock_timestamp()) ORDER BY not_before, id LIMIT 100 FOR UPDATE SKIP LOCKED))
RETURNING id, claim_id, tenant_id, tenant_slug, handler, slot, enqueued_at, not_before, claimed_at, attempts"""
DELETE = "DELETE FROM workqueue_workitem WHERE id = ANY(%(ids)s)"
INSERT = f"""INSERT INTO audit_run (id, {_RUN})
SELECT c.claim, 'item', c.id, c.tenant_id, c.tenant, 'noop', '', 'slot', now(), now(), now(), now(), now(),
  %(node)s, 'bench, 1', 1, 0, 'succeeded', 1, 0, 0, 0, '', '', {_LINE} c.id, 1, 0, %(node)s
FROM unnest(%(claims)s::uuid[], %(ids)s::bigint[], %(tenants)s::bigint[], %(slugs)s::text[])
  AS c(claim, id, tenant_id, tenant)"""

# The least that a tick is: one INSERT … SELECT.
TICK = """INSERT INTO workqueue_workitem (tenant_id, tenant_slug, handler, dedup_key, status,
  not_before, enqueued_at, trigger, slot, time_limit_s, abandon, retry_attempts, retry_base_s,
  retry_cap_s, node, attempts, failures, recoveries, rerun, last_error, held_reason)
SELECT id, slug, 'noop', '', 'pending', now(), now(), 'slot', now(), 3600, 'requeue', 0, 60, 3600, '', 0, 0, 0,
  FALSE, '', '' FROM workqueue_tenant WHERE is_active
ON CONFLICT DO NOTHING"""

# What came of a measure, and how long it took by the database's own clock.
NOW = "SELECT clock_timestamp()"
LEFT = "SELECT EXISTS (SELECT FROM workqueue_workitem)"
SPAN = "SELECT extract(epoch FROM max(finished_at) - min(claimed_at)), count(*) FROM audit_run WHERE claimed_at > %(since)s"
FIFTHS = """SELECT part, count(*), extract(epoch FROM max(finished_at) - min(finished_at))
FROM (SELECT finished_at, ntile(5) OVER (ORDER BY finished_at) AS part FROM audit_run WHERE claimed_at > %(since)s) r
GROUP BY part ORDER BY part"""
TRANSACTIONS_OF = (
    "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %(name)s"
)

# Else autovacuum comes to a fresh database, and its transactions count as the process's.
NOTHING_TO_VACUUM = "VACUUM (ANALYZE)"

# A lease that somebody else holds for an hour: who starts now is standby.
FOREIGN_LEASE = """UPDATE scheduler_masterlease SET holder = gen_random_uuid(), node = 'elsewhere, 1', term = term + 1,
  since = now(), renewed_at = now(), expires_at = now() + interval '1 hour'"""

# Each measure begins with the log written out and, where it says so, fresh or no statistics.
CHECKPOINT = "CHECKPOINT"
ANALYZE = "ANALYZE"
VACUUM = "VACUUM ANALYZE"
EMPTY = "TRUNCATE workqueue_workitem"

# A reader that keeps its snapshot, so that vacuum can remove nothing.
HOLD = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
LOOK = "SELECT 1 FROM workqueue_tenant LIMIT 1"

# What one process holds of its database, as the server counts it.
CONNECTIONS = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'millrace jobworker%%'"""
NEWEST_LINE = (
    "SELECT at FROM audit_line WHERE claim_id = %(claim)s ORDER BY seq DESC LIMIT 1"
)
