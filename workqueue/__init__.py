"""How work is run, once per tenant: the life of an item.

    pending   -> executing   a worker's claim
    executing -> (deleted)   finish writes the attempt's Run in the same transaction
    executing -> pending     a retry, `again_in`, one more run asked for meanwhile, a claim
                             handed back unstarted, or abandoned by a process that died
    executing -> held        its row says hold, or three processes died with it
    held      -> pending     an operator's release; an operator's drop deletes it

The table holds live items only, so it is as small as the work in hand and a claim costs
the same after ten million runs. What happened is the ledger's.

Who decides. The database: that one tenant, handler and key has one live item (a unique
constraint), who holds it (the claim's UPDATE), whether an attempt still counts (its
claim_id, fresh per claim, in every write), and what time it is. A process decides only
when to look.

Read it in this order:

    enqueue   a tick, or a call, -> items
    claim     items -> one worker (demand says how many of which)
    run       a claimed item -> an outcome, in one of the slots
    finish    outcomes -> ledger, in batches by the finisher
    renew     claims kept with every beat
    reclaim   what a dead process held -> pending, failed or held
    worker    the loop around all this

Failure by failure:

- A worker is killed: its node is marked stopped after 2.4 keep-alives; the next look
  returns what it held, as suspects that run alone, so that the one that kills is found.
- A worker freezes and wakes up: its claims are somebody else's by then. Its finish
  matches no row and is kept as a late result; nothing of the successor is touched.
- The reply to a COMMIT is lost: the batch is sent again under the same finish id, and
  the Run it finds says that it had been stored.
- The reply to a claim is lost: the beat finds rows of this node that nobody holds in
  memory, twice in a row, and hands them back.
- The database goes away: running handlers go on, results wait in memory, nothing new
  starts once the last beat is too old, and after the outage nobody judges anybody before
  a full keep-alive of beats.
- A handler never returns: its attempt fails at the time limit, its thread's stack in the
  transcript, its next query raises ClaimLost, and its slot gets a new thread.
- A worker is told to stop: what has not begun goes back at once, what runs gets
  WORKER_DRAIN_TIMEOUT_S, what is left is given up and runs elsewhere.
"""
