"""Operations: one verb of an operator, done to all rows that a list's filters match.

An operation is asked for on a page that has counted what it would do (`views.begin`),
and is frozen there: nothing that was enqueued, or ended, after that page was shown
belongs to it. `start` writes it and enqueues its item in one transaction; `operations.bulk`
takes the rows through the queue's own verbs, one transaction a row, together with what
became of it, so that a worker that dies in the middle repeats nothing and loses nothing.

Where that item ends before all rows are taken (an operator cancelled it, or its retries
are used up), the operation is interrupted: it goes on when an operator says so on its
page, and is over when one stops it.

It belongs to one tenant, or to the platform where it was asked for by somebody who
operates all of them, and acts only on rows of tenants that its operator operates.
Results are kept for 90 days, like the rows they tell of; what each row went through is
in the ledger and under Changes as if it had been done by hand.
"""
