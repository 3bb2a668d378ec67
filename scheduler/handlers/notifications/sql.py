"""The one statement that the ORM cannot say."""

from datetime import timedelta

LEASE = timedelta(seconds=120)
HELD = timedelta(
    minutes=6
)  # the row that is being sent: above what one message may take

_NOW = "COALESCE(%(now)s::timestamptz, clock_timestamp())"

# Claim a channel's due rows and say which: the ORM's update() has no RETURNING, and
# without it a select and an update need a transaction around them.
CLAIM_ON_POSTGRESQL = f"""UPDATE notifications_notification
SET state = 'sending', claim_id = %(claim)s, attempts = attempts + 1,
  claimed_until = l.until, next_attempt_at = l.until
FROM (SELECT {_NOW} + %(lease)s AS until) l
WHERE id = ANY(ARRAY(
  SELECT n.id FROM notifications_notification n
  WHERE n.channel_id = %(channel)s AND n.next_attempt_at <= (SELECT {_NOW})
    AND EXISTS (SELECT 1 FROM notifications_channel c WHERE c.id = %(channel)s
      AND c.is_enabled AND (c.paused_until IS NULL OR c.paused_until <= {_NOW}))
  ORDER BY n.next_attempt_at, n.id LIMIT %(limit)s FOR UPDATE OF n SKIP LOCKED))
RETURNING id"""

# The same where one writer holds the whole database; %(until)s is now + LEASE.
CLAIM_ON_SQLITE = """UPDATE notifications_notification
SET state = 'sending', claim_id = %(claim)s, attempts = attempts + 1,
  claimed_until = %(until)s, next_attempt_at = %(until)s
WHERE id IN (
  SELECT n.id FROM notifications_notification n
  WHERE n.channel_id = %(channel)s AND n.next_attempt_at <= %(now)s
    AND EXISTS (SELECT 1 FROM notifications_channel c WHERE c.id = %(channel)s
      AND c.is_enabled AND (c.paused_until IS NULL OR c.paused_until <= %(now)s))
  ORDER BY n.next_attempt_at, n.id LIMIT %(limit)s)
RETURNING id"""
