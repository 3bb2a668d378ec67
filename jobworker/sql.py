"""The few statements of the job worker that the ORM cannot say."""

from workqueue import live

# One statement per pass: settings and pauses of the queue (they come along), the caps,
# this process's jobs that are to be cancelled, and whether anything waits. As four it
# would be most of an idle worker's transactions.
_CAPS_POSTGRESQL = """(SELECT json_build_object('version', s.version, 'values', s."values"::text)
  FROM workqueue_setting s WHERE s.name = 'Job Worker' ORDER BY s.version DESC LIMIT 1)::text"""
_CAPS_SQLITE = """(SELECT json_object('version', s.version, 'values', s."values")
  FROM workqueue_setting s WHERE s.name = 'Job Worker' ORDER BY s.version DESC LIMIT 1)"""
_WAITING = "EXISTS (SELECT 1 FROM jobworker_job j WHERE j.status = 'pending')"
_CANCELLED = """FROM jobworker_job j WHERE j.node_id = %(node_id)s AND j.status = 'running'
  AND j.cancel_requested_at IS NOT NULL"""

LOOK = {
    "postgresql": f"""SELECT {live.READ["postgresql"]}, {_CAPS_POSTGRESQL}, {_WAITING},
(SELECT json_agg(j.claim_id) {_CANCELLED})::text""",
    "sqlite": f"""SELECT {live.READ["sqlite"]}, {_CAPS_SQLITE}, {_WAITING},
(SELECT json_group_array(j.claim_id) {_CANCELLED})""",
}

# The lock is the row count. It also matches the version of the caps, so that nothing is
# claimed under caps that were changed since they were read, and looks for the peer of
# its exclusive group (the unique index is the backstop for two that look at once). One
# statement with the database's own clock; the ORM could not name the row in the
# subquery of its own UPDATE.
CLAIM = """UPDATE jobworker_job
SET status = 'running', claim_id = %(claim_id)s, node_id = %(node_id)s, node = %(node)s,
  claimed_at = COALESCE(%(now)s, clock_timestamp()),
  started_at = COALESCE(%(now)s, clock_timestamp()),
  heartbeat_at = COALESCE(%(now)s, clock_timestamp()),
  progress_at = COALESCE(%(now)s, clock_timestamp())
WHERE id = %(id)s AND status = 'pending'
  AND COALESCE((SELECT max(s.version) FROM workqueue_setting s WHERE s.name = 'Job Worker'), 0)
    = %(version)s
  AND (exclusive = '' OR NOT EXISTS (SELECT 1 FROM jobworker_job peer
    WHERE peer.exclusive = jobworker_job.exclusive AND peer.status = 'running'))"""

# SET takes no parameters; the function does, for the transaction alone. A process that is
# frozen while it has rows locked would keep everybody waiting who judges it.
END_IF_FROZEN = "SELECT set_config('idle_in_transaction_session_timeout', '10s', TRUE)"

# The connection budget; the ORM has no model of the server.
CONNECTIONS = """SELECT current_setting('max_connections')::int,
  (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend')"""

# --- invariants (I4, I5, I7 to I9 for jobs)

# I5: two attempts of one job. The job's id is its runs' dedup_key.
JOB_RUN_TWICE = """
SELECT dedup_key AS job, count(*) AS runs FROM audit_run
WHERE kind = 'job' AND finished_at >= %(since)s
GROUP BY dedup_key HAVING count(*) > 1"""

# I4: a job that ended has its run, and one that has a run has ended.
JOB_AND_RUN_DIFFER = """
SELECT j.id AS job, j.type, j.tenant_slug AS tenant, j.status, j.claim_id, r.outcome
FROM jobworker_job j LEFT JOIN audit_run r ON r.id = j.claim_id AND r.finished_at >= %(since)s
WHERE (j.status IN ('succeeded', 'failed') AND j.finished_at >= %(since)s AND r.id IS NULL)
  OR (j.status IN ('pending', 'running') AND r.id IS NOT NULL)"""

# I7, I9: what the constraints do not say.
JOB_INCONSISTENT = """
SELECT id AS job, type, tier, status, claim_id, node_id, started_at, finished_at
FROM jobworker_job
WHERE (status = 'pending' AND (claim_id IS NOT NULL OR started_at IS NOT NULL))
  OR (status = 'running' AND (started_at IS NULL OR finished_at IS NOT NULL))
  OR (status NOT IN ('pending', 'running') AND finished_at IS NULL)
  OR progress NOT BETWEEN 0 AND 100"""

# I9: two of one exclusive group at the same time.
JOB_NOT_EXCLUSIVE = """
SELECT exclusive, count(*) AS jobs FROM jobworker_job
WHERE status = 'running' AND exclusive <> '' GROUP BY exclusive HAVING count(*) > 1"""

# I8: a job that looks alive without a live claimant, while a job worker lives that has
# had the time to fail it.
JOB_NOBODY_HOLDS = """
SELECT j.id AS job, j.type, j.tenant_slug AS tenant, j.node, j.heartbeat_at,
  n.status AS node_status, n.heartbeat_at AS node_heartbeat_at
FROM jobworker_job j LEFT JOIN workqueue_node n ON n.id = j.node_id
WHERE j.status = 'running'
  AND ((n.id IS NULL AND j.claimed_at < %(ended)s)
    OR (n.status = 'stopped' AND n.stopped_at < %(ended)s)
    OR j.heartbeat_at < %(silent)s)
  AND EXISTS (SELECT 1 FROM workqueue_node l WHERE l.kind = 'jobworker' AND l.status = 'running'
    AND l.started_at < %(silent)s AND l.heartbeat_at >= %(fresh)s)"""

# I10: a live job worker ends such a job.
JOB_OF_NO_TENANT = """
SELECT j.id AS job, j.type, j.tenant_id, j.tenant_slug AS tenant
FROM jobworker_job j LEFT JOIN workqueue_tenant t ON t.id = j.tenant_id
WHERE t.id IS NULL AND j.status = 'pending' AND j.created_at < %(ended)s
  AND EXISTS (SELECT 1 FROM workqueue_node l WHERE l.kind = 'jobworker' AND l.status = 'running'
    AND l.started_at < %(silent)s AND l.heartbeat_at >= %(fresh)s)"""
