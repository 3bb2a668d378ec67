"""Millrace: the background operations of a multi-tenant Django installation.

Time ticks, an item is enqueued per tenant, one worker claims it, the handler
runs, and the ledger keeps what happened. The packages in the order of that flow:
scheduler (when), workqueue (how), audit (what happened). This one wires
them together; nobody imports it.
"""
