"""How work is run, once per tenant: the life of an item.

pending   -> executing   a worker's claim (workqueue.claim)
executing -> (deleted)   finish writes the attempt's Run in the same transaction
executing -> pending     a retry, `again_in`, `rerun`, a claim handed back or abandoned
executing -> held        its row says hold, or it killed three workers
held      -> pending     an operator's release; an operator's drop deletes it
"""
