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
    Unreachable   nobody there: the rest of the batch waits too
    Broken        nobody gets through with this configuration (password, sender): the rest
                  of the batch waits; five times in a row disable the channel, and what
                  waits then waits for an operator, so nothing is lost by a bad password
    RateLimited   slower: the channel pauses, no attempt is counted

What can go out twice. A process that dies between sending a message and writing that
down sends that one message again, two minutes later; the e-mail's Message-ID is the
same on each try, so that the reader's side can drop the repeat. All others go once.

Who may import it: domains above it (style.md 2) call `notify.notify` and
`notify.notify_admins`; archival reads `models`. It imports none of them.
"""
