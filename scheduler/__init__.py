"""When things run: heartbeat, lease, tick.

The database decides who is master and which ticks exist; local time decides only
when to look. See `election` for the lease and `ticker` for the loop.
"""
