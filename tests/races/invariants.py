"""The design's invariants once more, in plain SQL that shares no code with the product's.

A sample is one transaction over one snapshot; each rule is a statement that finds
nothing. Works on psycopg and on sqlite3 connections.
"""

from typing import Any

# Rule -> a statement that finds what breaks it. {old}: a bound for what takes a while.
RULES = {
    "I1 one tick per handler, trigger and slot": """
        SELECT handler, "trigger", slot FROM scheduler_tick GROUP BY 1, 2, 3 HAVING count(*) > 1""",
    "I1 one live item per tenant, handler and key": """
        SELECT tenant_id, handler, dedup_key FROM workqueue_workitem GROUP BY 1, 2, 3 HAVING count(*) > 1""",
    "I2 what a tick enqueued is live or in the ledger": """
        SELECT t.id, t.handler, t.enqueued FROM scheduler_tick t
        WHERE t.merged = 1 AND t.enqueued <> (SELECT count(*) FROM (
            SELECT id FROM workqueue_workitem WHERE tick_id = t.id
            UNION SELECT item_id FROM audit_run WHERE tick_id = t.id) i)""",
    "I3 a claim is one item's": """
        SELECT claim_id FROM workqueue_workitem WHERE claim_id IS NOT NULL GROUP BY 1 HAVING count(*) > 1""",
    "I3 what executes has a claim and a node, what does not has none": """
        SELECT id, status FROM workqueue_workitem
        WHERE (status = 'executing') <> (claim_id IS NOT NULL AND node_id IS NOT NULL)""",
    "I4 one run per claim": "SELECT id FROM audit_run GROUP BY 1 HAVING count(*) > 1",
    "I4 no run of a claim that is still held": """
        SELECT r.id FROM audit_run r JOIN workqueue_workitem i ON i.claim_id = r.id""",
    "I5 rows that say fail start at most once": """
        SELECT item_id FROM audit_run WHERE handler = 'act_fail' AND claimed_at IS NOT NULL
        GROUP BY 1 HAVING count(*) > 1""",
    "I6 one lease": "SELECT count(*) FROM scheduler_masterlease HAVING count(*) <> 1",
    "I6 a term is taken once": """
        SELECT term FROM audit_nodeevent WHERE type = 'elected' GROUP BY 1 HAVING count(*) > 1""",
    "I6 no tick of a term that is yet to come": """
        SELECT id FROM scheduler_tick WHERE term > (SELECT max(term) FROM scheduler_masterlease)""",
    "I6 no tick of a term after the next one began": """
        SELECT t.id, t.term FROM scheduler_tick t JOIN audit_nodeevent e
        ON e.type = 'elected' AND e.term > t.term AND e.at < t.at""",
    "I7 no more runs than claims": """
        SELECT i.id, i.attempts FROM workqueue_workitem i
        WHERE i.attempts < (SELECT count(*) FROM audit_run r WHERE r.item_id = i.id)""",
    "I7 three recoveries, then held": """
        SELECT id, recoveries FROM workqueue_workitem WHERE recoveries > 3 OR (recoveries = 3 AND status <> 'held')""",
    "I12 a transcript's lines are counted": """
        SELECT r.id, r.line_count FROM audit_run r
        WHERE r.transcript = '' AND r.line_count <> (SELECT count(*) FROM audit_line l WHERE l.claim_id = r.id)""",
}


def broken(connection: Any) -> dict[str, list[Any]]:
    """The rules that do not hold at this moment, with some of the rows that break them."""
    found = {
        rule: connection.execute(statement).fetchmany(5)
        for rule, statement in RULES.items()
    }
    return {rule: rows for rule, rows in found.items() if rows}
