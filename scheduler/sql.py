"""The few statements the ORM cannot say."""

from workqueue import live

# The first statements of everything the master writes. A transaction that waits, runs
# or idles longer than this has lost its claim to be the master's: the server ends it,
# so that a frozen master holds up its successor for 3 s and not for ever.
MASTER_TIMEOUTS = """SET LOCAL lock_timeout = '2s';
SET LOCAL statement_timeout = '10s';
SET LOCAL idle_in_transaction_session_timeout = '3s'"""

# A take-over gives up soon and looks again: a heartbeat and a tick never queue behind it.
ELECTION_TIMEOUT = "SET LOCAL lock_timeout = '1s'"

# FOR KEY SHARE lets the master's own renewal (a plain UPDATE) pass and holds off FOR
# UPDATE, which every take-over begins with. Django has no such lock. FOR SHARE would
# block the renewal.
HOLD_LEASE = """SELECT COALESCE(holder = %(holder)s AND term = %(term)s, FALSE),
  COALESCE(expires_at > COALESCE(%(now)s::timestamptz, clock_timestamp()), FALSE)
FROM scheduler_masterlease WHERE id = 1 FOR KEY SHARE"""

# Servers wait on a channel of their own: the queue's would wake them at every enqueue.
CHANNEL = "millrace_servers"
WAKE_SERVERS = f"SELECT pg_notify('{CHANNEL}', '')"

# All that a server looks at, every two seconds, in one statement: a standby's whole
# budget is 45 transactions a minute. JSON, because the parts have different shapes.
_LOOK = """SELECT {now}, lease.holder, lease.node, lease.term, lease.since, lease.expires_at,
  COALESCE(lease.holder IS NULL OR lease.expires_at <= {now}, TRUE),
  (SELECT {array}({object}(
    'key', s.key, 'last_slot', s.last_slot, 'since', s.since, 'effective', s.effective,
    'problem', s.problem, 'cadence', s.cadence, 'run_requested_at', s.run_requested_at,
    'run_requested_by', s.run_requested_by, 'run_requested_why', s.run_requested_why
  )){text} FROM scheduler_schedule s), {live}
FROM scheduler_masterlease lease WHERE lease.id = 1"""

LOOK = {
    "postgresql": _LOOK.format(
        now="COALESCE(%s::timestamptz, clock_timestamp())",
        array="json_agg",
        object="json_build_object",
        text="::text",
        live=live.READ["postgresql"].replace("%", "%%"),
    ),
    "sqlite": _LOOK.format(
        now="COALESCE(%s, clock_timestamp())",
        array="json_group_array",
        object="json_object",
        text="",
        live=live.READ["sqlite"].replace("%", "%%"),
    ),
}
