"""Notifications: messages to people, through channels that a tenant sets up.

A `Notification` is written in the transaction of whatever it tells of (`notify`), and
`notifications.deliver` takes it from there: every 15 s, per tenant, the rows that are
due are claimed (`claim`), sent one by one through their channel (`send`), and what
became of each is written at once. No transaction is open while the network is used.

Who decides what. A channel's module (`channels/email`, `channels/web`) only says what
the other side answered, in the words of `channels/border`; `send` turns that into the
row's next state:

    sent          the other side took it
    Refused       it will never take this one (5xx): failed, not retried
    Deferred      not now (4xx): again after 30 s, 60 s ... 6 h, failed after 8 attempts
    Unreachable   nobody there: the whole batch waits, at most ten minutes at a time, for
                  as long as it takes. It counts an attempt on each row, but never more
                  than five of the eight (`back_off.outage`)
    PerhapsTaken  the connection was lost after the final dot: once more, an hour later,
                  then failed with these words
    Broken        nobody gets through with this configuration (password, sender): the
                  batch waits as above; five times in a row disable the channel, and what
                  waits then waits for an operator, so nothing is lost by a bad password
    RateLimited   slower: the channel pauses, no attempt is counted

What can go out twice. A process that dies between sending a message and writing that
down sends that one message again, six minutes later. A mail server that takes a message
and does not say so, because the connection breaks or because it thinks for over four
minutes, gets it once more, an hour later: to leave it could lose it. The e-mail's
Message-ID is the same on each try, so that the reader's side can drop the repeat. All
others go once.

Who may import it: domains above it (style.md 2) call `notify.notify` and
`notify.notify_admins`; archival reads `models`. It imports none of them.
"""
