"""What happened: the ledger. Lowest of all, because everybody writes to it.

Elections, operators' changes, runs and their transcripts are written by a direct call
from wherever they happen, in the transaction that makes them true. Were this app on
top, writing would need signals, and the flow could not be read. So it imports no
other app; its rows keep plain values (a slug, a handler's key, "host, pid") instead of
foreign keys, and outlive the tenant, the node and the release they speak of.

The doors
---------
`ledger`      the only writer of rows: runs, late results, events, node events, changes.
`transcript`  the numbered lines of one attempt, from the logger to the database.
`queries`     the questions; frozen rows, never models.
`tally`       counters of runs that only grow, for whoever watches from outside.
`text`        the gate that all stored text passes; `secret` for fields that are encrypted.
`capture`     log records to whoever is recording in this thread.
Tables, statements and partitions are nobody else's business; import-linter says so.

What stays true
---------------
* One Run per claim that was not handed back unstarted, and it never changes. Its id is
  the claim's id, so lines and the page's address have it before the run exists. Rows
  carry the `finish_id` of the batch that wrote them: whoever lost the reply to a COMMIT
  asks for it and knows whether it was his (`queries.finish_ids`).
* A result that comes after its claim was taken away is a LateResult of that claim: kept,
  shown beside the run, and never mistaken for it.
* An event and the change that it tells of commit together or not at all. The table of
  events is the outbox.
* A transcript keeps its order, its first and its last lines, and the number of what lies
  between. Its memory is bounded by the cap, not by the handler.
* What is stored can be stored: no NUL, no half surrogate, no NaN, no text without end,
  and none of the secrets that we know of.

Failure by failure
------------------
* The month has no partition (the master was away, a clock jumped, a file is restored):
  the writer looks once per month, makes it on a connection of its own and goes on. No
  default partition is needed, and none exists: it would block all finishes to attach.
* A partition disappears between that look and the INSERT: IntegrityError. The process
  forgets what it had seen, the finish is repeated by its caller and makes the partition.
* The database goes away in the middle of a batch: nothing of the batch is stored, the
  transcript answers `close()` as before, and the caller repeats the whole.
* Dropping a month waits for somebody's long query: it gives up after a second, the detach
  stays pending, finishes go on, and the next pass completes it.
* A log record cannot be written out (its `__str__` raises): the line says so. Whatever
  happens inside `Transcript.write`, the attempt goes on; at worst a line is counted as
  left out.
* A key of FIELD_KEY is lost: reading such a field raises UnreadableSecret and names the
  field; nothing else of the row is affected.

Reading order: models, ledger, sql, partitions; then capture, transcript, text, mask;
then rows, queries. The screens (keyset, filters, tables, views, page) come last.
"""
