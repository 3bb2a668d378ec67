"""What happened: the ledger. Lowest of all, because everybody writes to it.

Its doors: `audit.ledger` (the only writer of rows), `audit.transcript` (numbered
lines of a run) and `audit.queries` (frozen rows, never models). Rows keep plain
values instead of foreign keys, so they outlive the tenant, the node and the
handler they speak of.
"""
