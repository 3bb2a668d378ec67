"""The few statements the ORM cannot say.

PostgreSQL only: on SQLite one writer holds the database, so the ORM inside an
IMMEDIATE transaction says the same.
"""

from typing import Final

# A UUIDv7 made by the server: 48 bits of milliseconds over a random version 4, then
# the version's two bits. The ORM has no expression for it below PostgreSQL 18.
_UUID7 = """encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing
  substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
  FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid"""

_NOW = "COALESCE(%(now)s::timestamptz, clock_timestamp())"
_NOW_ONCE = f"(SELECT {_NOW})"

# Numbers travel as %b, in binary: as text, psycopg names the type of each array by the
# size of its numbers, and a statement that was prepared for small ones refuses large ones.

# Columns of claim.Claimed, in its order.
_CLAIMED = """w.id, w.claim_id, w.tenant_id, w.tenant_slug, w.handler, w.dedup_key,
  w.tick_id, w.trigger, w.slot, w.enqueued_at, w.not_before, w.claimed_at, w.attempts,
  w.failures, w.recoveries, w.time_limit_s, w.abandon, w.retry_attempts,
  w.retry_base_s, w.retry_cap_s"""

_TAKE = f"""UPDATE workqueue_workitem w
SET status = 'executing', claim_id = {_UUID7}, node_id = %(node_id)s, node = %(node)s,
  claimed_at = {_NOW}, renewed_at = {_NOW}, started_at = {_NOW},
  attempts = w.attempts + 1, progress = NULL"""

# Per handler a look from its low-water mark, all in one statement: a window over
# LATERAL with a limit per row and SKIP LOCKED inside is beyond the ORM.
_LOOK = f"""SELECT p.id FROM unnest(%({{0}}_handlers)s::text[], %({{0}}_limits)b::int[],
    %({{0}}_from_at)s::timestamptz[], %({{0}}_from_id)b::bigint[]) AS h(handler, n, at, id)
  CROSS JOIN LATERAL (
    SELECT i.id FROM workqueue_workitem i
    WHERE i.status = 'pending' AND i.handler = h.handler AND i.recoveries = 0
      AND i.not_before <= {_NOW_ONCE} AND (i.not_before, i.id) > (h.at, h.id)
      AND NOT i.tenant_id = ANY(%(paused)b::bigint[])
    ORDER BY i.not_before, i.id LIMIT h.n FOR UPDATE SKIP LOCKED
  ) p LIMIT %({{0}}_total)b"""

# Two looks in one statement, so that an idle pass costs one: handlers that need a free
# slot each share what is free, those with short runs may be claimed ahead.
CLAIM = f"""{_TAKE}
WHERE w.id = ANY(ARRAY({_LOOK.format("slow")}) || ARRAY({_LOOK.format("fast")}))
RETURNING {_CLAIMED}"""

# One item that a dead process held, for a process in which nothing else runs.
CLAIM_SUSPECT = f"""{_TAKE}
WHERE w.id = ANY(ARRAY(
  SELECT i.id FROM workqueue_workitem i
  WHERE i.status = 'pending' AND i.recoveries > 0 AND i.handler = ANY(%(handlers)s::text[])
    AND i.not_before <= {_NOW_ONCE} AND NOT i.tenant_id = ANY(%(paused)b::bigint[])
  ORDER BY i.not_before, i.id LIMIT 1 FOR UPDATE SKIP LOCKED))
RETURNING {_CLAIMED}"""

# At the head of a finish: its time-outs, and no sequential scan. A small table with no
# statistics looks cheaper to read whole, once per batch; it is not.
FINISHING = """SELECT set_config('lock_timeout', '10s', TRUE),
  set_config('statement_timeout', '60s', TRUE),
  set_config('idle_in_transaction_session_timeout', '60s', TRUE),
  set_config('enable_seqscan', 'off', TRUE)"""

# Joined with its outcomes in the ledger's statement, whose `id` are the claims. By
# primary key and claim id alone. A condition on status would let the planner walk
# the partial index of executing rows with all its dead entries (13,000/s for 21,000/s).
FINISH = """DELETE FROM workqueue_workitem
WHERE id = ANY(%(ids)b::bigint[]) AND claim_id = ANY(%(id)b::uuid[]) AND NOT rerun
RETURNING claim_id AS id, id AS item_id, tenant_id, tenant_slug AS tenant, handler, dedup_key,
  tick_id, "trigger", slot, enqueued_at, claimed_at, node_id, node, attempts AS attempt, recoveries"""

# Back to pending, each after its own delay; the ORM has no UPDATE ... FROM unnest.
FINISH_AGAIN = f"""UPDATE workqueue_workitem w
SET status = 'pending', claim_id = NULL, node_id = NULL, node = '', claimed_at = NULL,
  renewed_at = NULL, started_at = NULL, progress = NULL, recoveries = 0,
  not_before = {_NOW} + make_interval(secs => f.delay_s), failures = f.failures,
  last_error = f.error, rerun = FALSE
FROM unnest(%(ids)b::bigint[], %(claims)s::uuid[], %(delays)b::float8[],
  %(failures)b::int[], %(errors)s::text[]) AS f(id, claim_id, delay_s, failures, error)
WHERE w.id = f.id AND w.claim_id = f.claim_id
RETURNING w.id"""

# SKIP LOCKED, so that renewing and finishing cannot deadlock.
RENEW = f"""UPDATE workqueue_workitem SET renewed_at = {_NOW}
WHERE id = ANY(ARRAY(SELECT id FROM workqueue_workitem
  WHERE status = 'executing' AND node_id = %(node_id)s FOR UPDATE SKIP LOCKED))
RETURNING id, claim_id, claimed_at < {_NOW} - make_interval(secs => %(beat_s)s)"""


# --- workqueue.run

# What DISCARD ALL does, but for prepared statements: the driver believes that it has them.
RENEW_SESSION: Final = """CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *;
DISCARD TEMP; SELECT pg_advisory_unlock_all()"""

# --- workqueue.connections

# SET takes no parameters; the function does, for the transaction alone.
END_IF_FROZEN = "SELECT set_config('idle_in_transaction_session_timeout', '10s', TRUE)"

# --- workqueue.live

# Settings and pauses in one statement, as two texts: an idle process asks every 5 s
# and may not spend a transaction on each. Scalar sub-selects, so that the scheduler's
# look can carry them too; JSON aggregates are beyond the ORM on both databases.
# No percent sign: a caller's statement has parameters of its own.
_LIVE_NAME = "Worker Node Configuration"
_LIVE_PAUSES = """FROM workqueue_pause p LEFT JOIN workqueue_tenant t ON t.id = p.tenant_id
  WHERE p.ended_at IS NULL"""
_LIVE_PAUSE = """'id', p.id, 'scope', p.scope, 'handler', p.handler, 'tenant_id', p.tenant_id,
  'tenant', t.slug, 'reason', p.reason, 'who', p.who, 'since', p.since, 'until', p.until"""

# By vendor; LIVE_... are the columns alone, for a larger statement.
LIVE_POSTGRESQL = f"""(SELECT json_build_object('version', s.version, 'values', s."values"::text)
  FROM workqueue_setting s WHERE s.name = '{_LIVE_NAME}' ORDER BY s.version DESC LIMIT 1)::text,
(SELECT json_agg(json_build_object({_LIVE_PAUSE}) ORDER BY p.id) {_LIVE_PAUSES})::text"""
LIVE_SQLITE = f"""(SELECT json_object('version', s.version, 'values', s."values")
  FROM workqueue_setting s WHERE s.name = '{_LIVE_NAME}' ORDER BY s.version DESC LIMIT 1),
(SELECT json_group_array(json_object({_LIVE_PAUSE})) {_LIVE_PAUSES})"""
LIVE = {"postgresql": f"SELECT {LIVE_POSTGRESQL}", "sqlite": f"SELECT {LIVE_SQLITE}"}

# --- workqueue.node

# One autocommit statement per beat that also brings back the database's time: the ORM's
# update() returns nothing, and a second statement would double an idle process's load.
# A node that was marked stopped is not touched, so that its return is noticed.
BEAT = """UPDATE workqueue_node
SET heartbeat_at = COALESCE(%(now)s, clock_timestamp()), clock_skew_ms = %(skew_ms)s,
  report = %(report)s
WHERE id = %(id)s AND status <> 'stopped'
RETURNING heartbeat_at"""

# --- enqueue.py

# From the tenants' table straight into the queue: 10,000 items in 40 ms, where rows
# made in Python would be fetched, sent back and take seconds. ON CONFLICT DO NOTHING is
# the rule that a slow run is never doubled; the ORM has no INSERT ... SELECT. The list
# of candidates is the ORM's own text, so that conditions stay Q objects. WHERE TRUE:
# SQLite would otherwise read ON CONFLICT as a join's ON.
_ENQUEUE = """INSERT INTO workqueue_workitem (tenant_id, tenant_slug, dedup_key, handler, status,
  enqueued_at, not_before, tick_id, trigger, slot, time_limit_s, abandon, retry_attempts,
  retry_base_s, retry_cap_s, node, attempts, failures, recoveries, rerun, last_error, held_reason)
WITH moment (now) AS MATERIALIZED (SELECT COALESCE(%s{time}, clock_timestamp())),
  candidate (tenant_id, tenant_slug, dedup_key) AS ({{candidates}})
SELECT tenant_id, tenant_slug, dedup_key, %s, 'pending', now, COALESCE(%s{time}, now), %s, %s,
  %s{time}, %s, %s, %s, %s, %s, '', 0, 0, 0, FALSE, '', ''
FROM candidate CROSS JOIN moment WHERE TRUE ORDER BY tenant_id, dedup_key
ON CONFLICT DO NOTHING"""

ENQUEUE = {
    "postgresql": _ENQUEUE.format(time="::timestamptz"),
    "sqlite": _ENQUEUE.format(time=""),
}

# A candidate that the caller names.
NAMED = {
    "postgresql": "SELECT %s::bigint, %s::text, %s::text",
    "sqlite": "SELECT %s, %s, %s",
}

# How long the caller's transaction has lived; no row where nothing was inserted.
_AGE = "RETURNING extract(epoch FROM clock_timestamp() - transaction_timestamp())"

# Rows whose scope is a query of pairs: its columns have names of its own, hence the CTE.
CANDIDATE_PAIRS = """WITH pair (tenant_id, dedup_key) AS ({pairs}), tenant AS ({tenants})
SELECT tenant.id, tenant.slug, pair.dedup_key FROM pair JOIN tenant ON tenant.id = pair.tenant_id"""

# A tick's INSERT waits this long for somebody's open transaction; the ORM sets nothing.
LOCK_TIMEOUT = "SET LOCAL lock_timeout = %s"
STATEMENT_TIMEOUT = "SET LOCAL statement_timeout = %s"
TIMEOUTS = (
    "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
)


def with_age(insert: str) -> str:
    """The same INSERT, which returns the age of its transaction in seconds. PostgreSQL only."""
    return f"{insert} {_AGE}"


# --- workqueue.wakeup and workqueue.sources

# Channels are no models. pg_notify takes the name as a parameter, LISTEN does not.
NOTIFY = "SELECT pg_notify(%(channel)s, '')"
LISTEN: Final = "LISTEN {}"
# Changes when another connection has committed; reads no page and takes no lock.
DATA_VERSION = "PRAGMA data_version"
QUERY_ONLY = "PRAGMA query_only = ON"

# --- workqueue.pooler

# A variable of the session, which a pooler that shares sessions shows to another client.
SERVER_PROCESS = "SELECT pg_backend_pid()"
MARK_SESSION = "SELECT set_config('millrace.session', %(mark)s, false)"
MARK = "SELECT current_setting('millrace.session', true)"

# --- workqueue.depth

# Rows counted no further than the slice inside: the ORM has no scalar count of a subquery.
COUNT_OF = "(SELECT count(*) FROM (%(subquery)s) AS counted)"

# --- workqueue.invariants: questions across the tables of three apps, which no model of
# the queue can ask without importing upwards. Read-only; they run as they stand on both
# databases. %(since)s: how far back; the ledger is long.

# The database's clock, to compute the limits of all questions from.
DATABASE_TIME = "SELECT COALESCE(%(now)s, clock_timestamp())"
# Must come first in a transaction; Django cannot say it per transaction.
ALL_READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

# I1: what the unique constraint forbids, should anybody have dropped it.
TICKED_TWICE = """
SELECT handler, "trigger", slot, count(*) AS ticks FROM scheduler_tick
GROUP BY handler, "trigger", slot HAVING count(*) > 1"""

# I1, for items.
LIVE_TWICE = """
SELECT tenant_id, handler, dedup_key, count(*) AS items FROM workqueue_workitem
GROUP BY tenant_id, handler, dedup_key HAVING count(*) > 1"""

# I2: an item is live, or its attempts are in the ledger, or it is lost.
ITEMS_LOST = """
SELECT t.id AS tick, t.handler, t.slot, t.enqueued, count(DISTINCT i.item_id) AS found
FROM scheduler_tick t LEFT JOIN (
  SELECT tick_id, id AS item_id FROM workqueue_workitem WHERE tick_id IS NOT NULL
  UNION ALL
  SELECT tick_id, item_id FROM audit_run
  WHERE tick_id IS NOT NULL AND kind = 'item' AND finished_at >= %(since)s
) i ON i.tick_id = t.id
WHERE t.at >= %(since)s
GROUP BY t.id, t.handler, t.slot, t.enqueued
HAVING t.enqueued <> count(DISTINCT i.item_id)"""

# I3: two items with one claim would be finished by one finish.
CLAIMED_TWICE = """
SELECT claim_id, count(*) AS items FROM workqueue_workitem WHERE claim_id IS NOT NULL
GROUP BY claim_id HAVING count(*) > 1"""

# I3: a claim on an item that is not executing lets a late finish close it.
CLAIM_AND_STATUS_DIFFER = """
SELECT id AS item, handler, tenant_slug AS tenant, status, claim_id, node_id
FROM workqueue_workitem
WHERE (status = 'executing') <> (claim_id IS NOT NULL)
  OR (status = 'executing' AND node_id IS NULL)"""

# I4: the key of the partitioned table is (id, finished_at), so it cannot refuse this.
RUN_TWICE = """
SELECT id AS run, count(*) AS runs FROM audit_run WHERE finished_at >= %(since)s
GROUP BY id HAVING count(*) > 1"""

# I4: the finish that wrote the run must have let the item go.
RECORDED_AND_HELD = """
SELECT w.id AS item, w.handler, w.claim_id, r.outcome, r.finished_at
FROM workqueue_workitem w
JOIN audit_run r ON r.id = w.claim_id AND r.finished_at >= %(since)s"""

# I5: such an item is failed and gone when its process dies.
STARTED_AGAIN = """
SELECT id AS item, handler, tenant_slug AS tenant, attempts, recoveries
FROM workqueue_workitem WHERE abandon = 'fail' AND recoveries > 0"""

# I6: without its one row nobody is elected.
MASTERS = "SELECT count(*) AS leases FROM scheduler_masterlease HAVING count(*) <> 1"

# I6: every election has a term of its own.
TERM_TAKEN_TWICE = """
SELECT term, count(*) AS elections FROM audit_nodeevent
WHERE type = 'elected' AND at >= %(since)s GROUP BY term HAVING count(*) > 1"""

# I6: a tick holds the lease, so it commits before the next term can begin.
TICKED_OUTSIDE_ITS_TERM = """
SELECT t.id AS tick, t.handler, t.slot, t.term, t.at, e.term AS later_term, e.at AS began
FROM scheduler_tick t
JOIN audit_nodeevent e ON e.type = 'elected' AND e.term > t.term AND e.at < t.at
WHERE t.at >= %(since)s
UNION ALL
SELECT t.id, t.handler, t.slot, t.term, t.at, l.term, l.since
FROM scheduler_tick t JOIN scheduler_masterlease l ON l.term < t.term
WHERE t.at >= %(since)s"""

# I7: an operator's release takes the recoveries away, nothing else does.
COUNTED_WRONG = """
SELECT id AS item, handler, tenant_slug AS tenant, status, attempts, failures, recoveries
FROM workqueue_workitem
WHERE attempts < 0 OR failures > attempts OR (status = 'executing' AND attempts < 1)
  OR recoveries > 3 OR (recoveries = 3 AND status <> 'held')"""

# I8: only where a worker lives that has had the time to return it.
NOBODY_HOLDS_IT = """
SELECT w.id AS item, w.handler, w.tenant_slug AS tenant, w.node, w.claimed_at, w.renewed_at,
  n.status AS node_status, n.heartbeat_at
FROM workqueue_workitem w LEFT JOIN workqueue_node n ON n.id = w.node_id
WHERE w.status = 'executing'
  AND ((n.id IS NULL AND w.claimed_at < %(ended)s)
    OR (n.status = 'stopped' AND n.stopped_at < %(ended)s)
    OR (n.status <> 'stopped' AND n.heartbeat_at < %(silent)s)
    OR w.renewed_at < %(unrenewed)s)
  AND EXISTS (SELECT 1 FROM workqueue_node l WHERE l.kind = 'worker' AND l.status = 'running'
    AND l.started_at < %(silent)s AND l.heartbeat_at >= %(fresh)s)"""

# I10: the column has no constraint; a worker that meets such an item cancels it.
OF_NO_TENANT = """
SELECT w.id AS item, w.handler, w.tenant_id, w.tenant_slug AS tenant
FROM workqueue_workitem w LEFT JOIN workqueue_tenant t ON t.id = w.tenant_id
WHERE t.id IS NULL AND w.enqueued_at < %(ended)s"""

# I10: attempts of one item that are shown to different tenants.
OF_TWO_TENANTS = """
SELECT item_id AS item, count(DISTINCT tenant_id) AS tenants FROM audit_run
WHERE item_id IS NOT NULL AND kind = 'item' AND finished_at >= %(since)s
GROUP BY item_id HAVING count(DISTINCT tenant_id) > 1"""

# I12: lines stand in the run or in their table; what the cap left out is counted.
LINES_MISSING = """
SELECT r.id AS run, r.handler, r.line_count, r.dropped_lines, count(l.seq) AS stored
FROM audit_run r LEFT JOIN audit_line l ON l.claim_id = r.id
WHERE r.finished_at >= %(since)s AND r.transcript = '' AND r.line_count > 0
GROUP BY r.id, r.handler, r.line_count, r.dropped_lines
HAVING count(l.seq) <> r.line_count OR max(l.seq) > r.line_count + r.dropped_lines"""

# I14: the columns are plain texts, so the ledger cannot refuse an empty one.
CHANGED_BY_NOBODY = """
SELECT id AS change, at, who, subject, verb FROM audit_change
WHERE at >= %(since)s
  AND (who = '' OR subject = '' OR verb = '' OR (old IS NULL AND new IS NULL))"""
