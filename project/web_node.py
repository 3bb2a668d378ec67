"""web_node: a web process among the nodes, so that its connections are in the budget.

Takes part in nothing else. The database may be away when a web process starts: pages
then say so, and the row is written when it is back.
"""

import logging
import threading
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db import connections as django_connections

from workqueue import connections, node
from workqueue.beat import Beat

logger = logging.getLogger(__name__)

TRY_EVERY = 5.0  # seconds
LAST_WAIT = 1.0  # seconds that a stop waits for a row that is being written


class WebNode:
    """The beat of one web process, from after its fork to its exit."""

    def __init__(self) -> None:
        self._beat: Beat | None = None
        self._me: node.Me | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._begin, name="web-node", daemon=True
        )

    def start(self) -> None:
        """Give the process its pool and start its beat, in a thread of its own."""
        connections.use_pool(kind="web")
        self._thread.start()

    def stop(self) -> None:
        """Say that the process ends."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(LAST_WAIT)  # else a row may come that nobody ends
        if self._beat is not None:
            self._beat.stop()
        if self._me is not None:
            with suppress(DatabaseError):
                node.end(self._me)
        connections.close_all()

    def _begin(self) -> None:
        said = False
        while not self._stop.is_set():
            try:
                self._me = node.register(kind="web", report=self._report())
            except DatabaseError as problem:
                if not said:
                    logger.warning(
                        "not in the table of processes yet: %s", str(problem).strip()
                    )
                    said = True
                self._stop.wait(TRY_EVERY)
                continue
            finally:
                django_connections.close_all()
            self._beat = Beat(me=self._me, report=self._report)
            self._beat.start()
            return

    def _report(self) -> dict[str, Any]:
        return {"threads": settings.WEB_THREADS, "connections": connections.report()}
