"""sweep: submitted by a handler only."""

from dataclasses import dataclass
from typing import Any

from workqueue.context import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    pass


def run(ctx: Any, params: Params) -> Outcome:
    return Outcome()
