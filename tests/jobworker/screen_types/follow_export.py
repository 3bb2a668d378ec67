"""follow_export: what it begins outside can be followed."""

from dataclasses import dataclass
from typing import Any

from workqueue.context import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    pass


def run(ctx: Any, params: Params) -> Outcome:
    return Outcome()


def follow(ctx: Any, params: Params, ref: dict[str, Any]) -> Outcome:
    return Outcome()
