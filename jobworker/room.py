"""room: whether one process has room for one more job of a tier, and what is full where not.

Asked by the supervisor before it claims and by waiting.py, which says why a job waits:
one rule, so that the sentence is what the claim does. A job asleep counts among those
that run, and takes nothing of what the pool serves.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The limits of one process, and what is taken of them."""

    caps: Mapping[str, int]  # tier -> jobs
    total: int  # jobs, as asked for: what the pool serves limits only those awake
    usable: int  # jobs awake
    threads: int
    running: Mapping[str, int]  # tier -> jobs
    awake: int  # of those that run; also those about to wake up
    stuck: int  # threads of jobs that have ended

    def full(self, tier: str) -> str:
        """The tier, "total", "usable" or "threads"; "": there is room."""
        running = sum(self.running.values())
        if self.running.get(tier, 0) >= self.caps[tier]:
            return tier
        if running >= self.total:
            return "total"
        if self.awake >= self.usable:
            return "usable"
        return "threads" if running + self.stuck >= self.threads else ""
