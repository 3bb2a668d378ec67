"""When things run: heartbeat, lease, tick.

A server process (`runscheduler`) is a standby or the master.

  standby -> master     `election.take`: nobody holds the lease, or it has expired
  master  -> standby    `election.resign`: told to stop, or its ticker stood still for 30 s
  master  -> standby    a renewal, a look or a held lease shows another term
  master  -> unknown    a renewal failed: no act, until one with the same term succeeds

Who decides. The database: one row, `MasterLease`, says who is master, for which term,
until when, by its own clock. A term is a number that only grows. What a process
believes may only make it do less: it fences itself keep-alive minus one beat after
the last renewal that was confirmed, counted from before the request. Local time
decides when to look, and nothing else.

Four locks, and their order. Whatever the master writes stands in a transaction that
first takes the lease row FOR KEY SHARE and checks holder, term and expiry
(`election.acting`). Its renewal is a plain UPDATE, which passes that lock. A take-over
begins with FOR UPDATE, which waits for it. So a new term begins after the last write
of the old one, whatever froze, woke up or came late. A slot is taken by a conditional
UPDATE of `Schedule` and by a unique `Tick`; an item by its own unique key.

Failure by failure:
- the master is killed: its lease runs out; a standby that saw its expiry is there.
  Keep-alive + 2 s.
- it is told to stop: it resigns and wakes the standbys. 2 s.
- it freezes between two transactions: as if killed. When it wakes, the first thing it
  does is refused, and it says that its term is over.
- it freezes inside one: the server ends the idle transaction after 3 s, and the lock
  with it. Keep-alive + 6 s. (On SQLite it blocks every writer until it wakes.)
- its ticker hangs while its beat goes on: the beat's thread resigns after 30 s.
- the database is away: nobody acts; the loop tries again, at most once a second, and
  the first beats that succeed decide who goes on.
- everybody was away for two weeks: slots are computed, not remembered. Each row ticks
  its newest missed slot once, or as its misfire rule says, and its Tick says how many
  went by.
- somebody's open transaction holds a tenant's item: the tick leaves out that tenant,
  says so, and tries it last the next time.
- a cadence that cannot be read, a probe that raises: that one row is flagged.

Slots are aligned and computed (`cadence`), so that a restart changes none of them.
`Schedule` remembers the newest slot that was ticked and since when slots count; first
sight, a changed cadence and the end of a pause begin anew, and nothing before counts
as missed.

Reading order: `ticker` (the loop), `look` (what it sees), `election`, `plan` (the rows
as they are ticked at present), `catch_up` and `slots` (what is due), `tick` (one
decision), then `workqueue.enqueue`. Beside it: `bootstrap` and `daily` (what a master
does once), `override` and `why` (what operators ask), `timetable` (the rows).
"""
