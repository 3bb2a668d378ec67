"""sql: what the ORM cannot say about the ledger, and nothing else."""

from collections.abc import Sequence
from functools import cache, lru_cache

# --- audit.partitions (PostgreSQL only: SQLite has plain tables)

# The catalogue is no model. Bounds as text: "FOR VALUES FROM ('…') TO ('…')".
PARTITIONS = """
SELECT child.relname,
       pg_get_expr(child.relpartbound, child.oid),
       inherits.inhdetachpending
  FROM pg_inherits AS inherits
  JOIN pg_class AS child ON child.oid = inherits.inhrelid
 WHERE inherits.inhparent = to_regclass(%(parent)s)
 ORDER BY child.relname
"""

# Tables of ours by name that belong to no parent: a detach or a build that was cut short.
STRAYS = """
SELECT child.relname
  FROM pg_class AS child
 WHERE child.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(%(parent)s))
   AND child.relkind = 'r'
   AND child.relname ~ ('^' || %(parent)s || '_[0-9]{4}_[0-9]{2}$')
   AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = child.oid)
 ORDER BY child.relname
"""

# Whether a month is attached, and if so, whether a detach of it is under way.
IS_PARTITION = """
SELECT inhdetachpending
  FROM pg_inherits
 WHERE inhparent = to_regclass(%(parent)s) AND inhrelid = to_regclass(%(partition)s)
"""
EXISTS = "SELECT to_regclass(%(partition)s) IS NOT NULL"

# Two processes that find the same month missing make it one after the other. The
# lock lives as long as the transaction, so a transaction pooler does not lose it.
ALONE = "SELECT pg_advisory_xact_lock(%(key)s)"

# SET takes no parameters; the function does, and says LOCAL by its third argument.
WAIT_AT_MOST = "SELECT set_config('lock_timeout', %(timeout)s, %(local)s)"

# CREATE TABLE … PARTITION OF locks the parent against every writer and queues all
# finishes behind one long reader. LIKE locks nothing of the parent for long, and
# ATTACH takes a lock that lets rows be written meanwhile. Defaults, checks and
# indexes are copied from the parent, so that ATTACH adopts them as they are.
COPY_SHAPE = "CREATE TABLE {partition} (LIKE {parent} INCLUDING ALL)"
ATTACH = "ALTER TABLE {parent} ATTACH PARTITION {partition} FOR VALUES FROM ('{low}') TO ('{high}')"

# DROP of an attached partition locks the parent against everybody. These do not;
# CONCURRENTLY refuses to run inside a transaction.
DETACH = "ALTER TABLE {parent} DETACH PARTITION {partition} CONCURRENTLY"
FINALIZE = "ALTER TABLE {parent} DETACH PARTITION {partition} FINALIZE"
DROP = "DROP TABLE {partition}"

# One row is proof enough; a count would read them all.
HAS_ROWS = "SELECT EXISTS (SELECT FROM {partition})"

# --- audit.recent

# The newest few of each of many handlers: the ORM has no LATERAL, and a window
# function would read every run there is. This walks the index of each handler from
# its end and stops. It is asked for as a range and in both columns' order, because by
# equality the planner prefers to walk all runs by their finish, and finds the 50 of a
# rare handler after millions of others. Errors are cut here: a list shows their beginning.
RECENT_POSTGRESQL = """
SELECT run.*
  FROM unnest(%(handlers)s::text[]) AS wanted(handler)
 CROSS JOIN LATERAL (
       SELECT id, handler, outcome, tenant_id, tenant, started_at, finished_at,
              left(summary, 300) AS said, left(error, 300) AS problem
         FROM audit_run
        WHERE audit_run.handler >= wanted.handler AND audit_run.handler <= wanted.handler
        ORDER BY audit_run.handler DESC, finished_at DESC
        LIMIT %(per)s) AS run
"""

# The same walk, of which only the middle is told: 50 rows of each of twelve handlers as
# objects were a third of the time of a list.
MEDIANS = """
SELECT wanted.handler, percentile_disc(0.5) WITHIN GROUP (ORDER BY run.ran)
  FROM unnest(%(handlers)s::text[]) AS wanted(handler)
 CROSS JOIN LATERAL (
       SELECT CASE WHEN started_at IS NOT NULL AND outcome IN ('succeeded', 'partial')
                   THEN greatest(finished_at - started_at, interval '0') END AS ran
         FROM audit_run
        WHERE audit_run.handler >= wanted.handler AND audit_run.handler <= wanted.handler
        ORDER BY audit_run.handler DESC, finished_at DESC
        LIMIT %(per)s) AS run
 WHERE run.ran IS NOT NULL
 GROUP BY wanted.handler
"""

# SQLite has no LATERAL; a correlated list of row numbers does the same.
RECENT_SQLITE = """
SELECT run.id, run.handler, run.outcome, run.tenant_id, run.tenant, run.started_at, run.finished_at,
       substr(run.summary, 1, 300) AS said, substr(run.error, 1, 300) AS problem
  FROM json_each(%(handlers)s) AS wanted
  JOIN audit_run AS run ON run.rowid IN (
       SELECT newest.rowid
         FROM audit_run AS newest
        WHERE newest.handler = wanted.value
        ORDER BY newest.finished_at DESC
        LIMIT %(per)s)
 ORDER BY run.finished_at DESC
"""

# --- audit.keyset

# SET takes no parameters; the function does, for the transaction alone.
STATEMENT_TIMEOUT = "SELECT set_config('statement_timeout', %s, true)"

# --- audit.ledger and audit.transcript

# The columns that the ledger writes and how PostgreSQL is told their types. JSON
# travels as text: psycopg has no binary form for it.
RUN_TYPES = {
    "id": "uuid",
    "kind": "text",
    "item_id": "int8",
    "tenant_id": "int8",
    "tenant": "text",
    "handler": "text",
    "dedup_key": "text",
    "tick_id": "int8",
    "trigger": "text",
    "slot": "timestamptz",
    "enqueued_at": "timestamptz",
    "claimed_at": "timestamptz",
    "started_at": "timestamptz",
    "finished_at": "timestamptz",
    "node_id": "uuid",
    "node": "text",
    "attempt": "int8",
    "recoveries": "int8",
    "outcome": "text",
    "seen": "int8",
    "changed": "int8",
    "skipped": "int8",
    "failed": "int8",
    "summary": "text",
    "error": "text",
    "details": "text",
    "transcript": "text",
    "line_count": "int8",
    "dropped_lines": "int8",
    "finish_id": "uuid",
}

# Those that a statement which closes items returns, by these names.
CLOSED_COLUMNS = (
    "id", "item_id", "tenant_id", "tenant", "handler", "dedup_key", "tick_id", "trigger", "slot",
    "enqueued_at", "claimed_at", "node_id", "node", "attempt", "recoveries",
)  # fmt: skip


@lru_cache(maxsize=256)  # kinds of batches, by what varies in them
def insert_runs(varying: tuple[str, ...]) -> str:
    """The INSERT of a batch on PostgreSQL, whose `varying` columns are arrays and whose others are one value.

    bulk_create sends every value of every row as text inside the statement. Measured
    with batches of 100 rows of this table and its five indexes, two cores shared by
    client and server, rows a second with one COMMIT per batch: this form 20,000 to
    26,000; COPY BINARY the same, at one more round trip, and it cannot be prepared; all
    columns as arrays in text form 7,000; columns that vary in text form 14,000; a JSON
    document taken apart by the server 16,000 to 19,000; executemany 12,000. Prepared it
    takes an eighth less of the server's time than parsed each time.
    """
    insert = _insert_runs(varying)
    return f"{insert} FROM {_unnest(varying)}" if varying else insert


@lru_cache(maxsize=256)
def insert_closed(varying: tuple[str, ...], close: str) -> str:
    """The same for items that `close` ends and returns: what they know need not travel.

    Half the parameters and a round trip less than a DELETE and an INSERT.
    """
    insert = _insert_runs(varying, of_item=CLOSED_COLUMNS)
    arrays = _unnest(varying)
    return f"""WITH item AS ({close}) {insert} FROM item JOIN {arrays} USING (id)
RETURNING item_id"""


def _insert_runs(varying: Sequence[str], *, of_item: Sequence[str] = ()) -> str:
    columns = ", ".join(f'"{name}"' for name in RUN_TYPES)

    def value(name: str, kind: str) -> str:
        if name in of_item:
            return f'item."{name}"'
        return f'u."{name}"' if name in varying else f"%({name})b::{kind}"

    values = ", ".join(
        value(name, kind) + ("::jsonb" if name == "details" else "")
        for name, kind in RUN_TYPES.items()
    )
    return f"INSERT INTO audit_run ({columns}) SELECT {values}"


def _unnest(varying: Sequence[str]) -> str:
    arrays = ", ".join(f"%({name})b::{RUN_TYPES[name]}[]" for name in varying)
    names = ", ".join(f'"{name}"' for name in varying)
    return f"unnest({arrays}) AS u({names})"


# SQLite: one writer at a time, and the same row by row costs it little.
INSERT_RUN = "INSERT INTO audit_run ({}) VALUES ({})".format(
    ", ".join(f'"{name}"' for name in RUN_TYPES),
    ", ".join(["%s"] * len(RUN_TYPES)),
)

# As above: lines come by the thousand. Those of a COMMIT whose reply was lost come again.
INSERT_LINES = """
INSERT INTO audit_line (claim_id, seq, at, level, text)
SELECT * FROM unnest(%(claim_id)b::uuid[], %(seq)b::int8[], %(at)b::timestamptz[], %(level)b::int8[], %(text)b::text[])
ON CONFLICT DO NOTHING"""
INSERT_LINE = "INSERT INTO audit_line (claim_id, seq, at, level, text) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"


# --- audit.queries

# A minute may hold a million runs: each is counted up to a bound, by a look of its own
# at the index. The ORM has no LATERAL. (SQLite counts its few by GROUP BY.)
PER_MINUTE = """
SELECT minute.start, count(run.finished_at), max(run.finished_at)
  FROM generate_series(%(since)s::timestamptz, %(until)s::timestamptz - interval '1 minute', interval '1 minute')
       AS minute(start)
 CROSS JOIN LATERAL (
       SELECT finished_at
         FROM audit_run
        WHERE finished_at >= minute.start AND finished_at < minute.start + interval '1 minute'
        ORDER BY finished_at
        LIMIT %(most)s) AS run
 GROUP BY minute.start
"""

# The newest of each outcome by its own walk along the partial index, whose condition is
# repeated so that the planner sees that it may. Asked for as a range and in both columns'
# order, as above: by equality it prefers to read all bad runs of all time by their item
# (600 ms for 60 with 1,000,000 runs).
NEWEST_BAD = """
SELECT run.*
  FROM unnest(%(outcomes)s::text[]) AS bad(outcome)
 CROSS JOIN LATERAL (
       SELECT handler, outcome, tenant, finished_at, left(error, 300) AS said
         FROM audit_run
        WHERE audit_run.outcome >= bad.outcome AND audit_run.outcome <= bad.outcome
          AND NOT (audit_run.outcome = 'succeeded')
          AND finished_at >= %(since)s::timestamptz
        ORDER BY audit_run.outcome DESC, finished_at DESC
        LIMIT %(per)s) AS run
"""

# --- audit.sum_up and audit.metrics

# Two histograms and five counts from one scan: the ORM has neither the aggregate of
# JSON objects on both databases nor INSERT … SELECT. Runs are first counted by all
# that matters of them, so that what follows is small however many there are.
_SUMS = """
WITH ended AS (
  SELECT {tenant} AS tenant_id, handler, {start} AS start, outcome,
         {waited} AS waited, {ran} AS ran, count(*) AS runs
    FROM audit_run
   WHERE finished_at >= %(since)s AND finished_at < %(until)s{scope}
   GROUP BY 1, 2, 3, 4, 5, 6
), totals AS (
  SELECT tenant_id, handler, start, {whole}(sum(runs)) AS runs,
         {whole}(sum(CASE WHEN outcome = 'failed' THEN runs ELSE 0 END)) AS failed,
         {whole}(sum(CASE WHEN outcome = 'partial' THEN runs ELSE 0 END)) AS partial,
         {whole}(sum(CASE WHEN outcome = 'abandoned' THEN runs ELSE 0 END)) AS abandoned,
         {whole}(sum(CASE WHEN outcome = 'cancelled' THEN runs ELSE 0 END)) AS cancelled
    FROM ended GROUP BY 1, 2, 3
), waits AS (
  SELECT tenant_id, handler, start, {object}(CAST(waited AS text), runs) AS waits
    FROM (SELECT tenant_id, handler, start, waited, {whole}(sum(runs)) AS runs
            FROM ended WHERE waited IS NOT NULL GROUP BY 1, 2, 3, 4) AS one
   GROUP BY 1, 2, 3
), rans AS (
  SELECT tenant_id, handler, start, {object}(CAST(ran AS text), runs) AS rans
    FROM (SELECT tenant_id, handler, start, ran, {whole}(sum(runs)) AS runs
            FROM ended WHERE ran IS NOT NULL GROUP BY 1, 2, 3, 4) AS one
   GROUP BY 1, 2, 3
)
{insert}SELECT {minutes} AS minutes, totals.tenant_id, totals.start, totals.handler,
       totals.runs, totals.failed, totals.partial, totals.abandoned, totals.cancelled,
       coalesce(waits.waits, '{empty}') AS waits, coalesce(rans.rans, '{empty}') AS rans
  FROM totals
  LEFT JOIN waits USING (tenant_id, handler, start)
  LEFT JOIN rans USING (tenant_id, handler, start)
 WHERE true
"""
_INSERT_SUMS = """INSERT INTO audit_runsum
  (minutes, tenant_id, start, handler, runs, failed, partial, abandoned, cancelled, waits, rans)
"""
# 20 buckets for each power of ten of the milliseconds: 160 reach from 1 ms to a day.
# greatest() leaves NULL out, so that of PostgreSQL looks for it first.
_BUCKET_POSTGRESQL = (
    "CASE WHEN {to} - {since} IS NOT NULL THEN "
    "least(floor(20 * log(greatest(1000 * extract(epoch FROM {to} - {since}), 1)::float8)), 159)::int END"
)
_BUCKET_SQLITE = "min(CAST(20 * ln(max((julianday({to}) - julianday({since})) * 86400000, 1)) / ln(10) AS int), 159)"


@cache
def sums(
    vendor: str, *, minutes: int, by_tenant: bool, scoped: bool, kept: bool
) -> str:
    """Sums of the runs that ended from %(since)s to %(until)s: `kept` inserts them, else they are read.

    `scoped`: of the tenants %(tenants)s only.
    """
    postgresql = vendor == "postgresql"
    bucket = _BUCKET_POSTGRESQL if postgresql else _BUCKET_SQLITE
    # A wider sum is of one stretch, which begins where it does.
    if minutes > 1:
        start = "%(since)s::timestamptz" if postgresql else "%(since)s"
    elif postgresql:
        start = "date_trunc('minute', finished_at)"
    else:
        start = "strftime('%%Y-%%m-%%d %%H:%%M:00', finished_at)"
    among = (
        "ANY(%(tenants)s)"
        if postgresql
        else "(SELECT value FROM json_each(%(tenants)s))"
    )
    return _SUMS.format(
        tenant="tenant_id" if by_tenant else "0",
        start=start,
        waited=f"CASE WHEN attempt <= 1 THEN {bucket.format(since='enqueued_at', to='claimed_at')} END",
        ran=bucket.format(since="started_at", to="finished_at"),
        scope=f" AND tenant_id {'=' if postgresql else 'IN'} {among}" if scoped else "",
        object="jsonb_object_agg" if postgresql else "json_group_object",
        whole="int8" if postgresql else "",
        empty="{}",
        minutes=minutes,
        insert=_INSERT_SUMS if kept else "",
    ) + (" ON CONFLICT DO NOTHING" if kept else "")
