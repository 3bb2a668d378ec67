import threading
from uuid import UUID

import pytest
from django.db import connections

from scheduler.handlers.instance.identity import NAME, instance_id
from workqueue.models import Setting


@pytest.mark.django_db
def test_the_id_is_made_once_and_stays() -> None:
    first = instance_id()

    assert isinstance(first, UUID)
    assert instance_id() == first
    assert Setting.objects.filter(name=NAME).count() == 1


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_of_many_first_calls_at_once_one_makes_it() -> None:
    start = threading.Barrier(6)
    found: list[UUID] = []

    def call() -> None:
        try:
            start.wait(10)
            found.append(instance_id())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(found) == 6
    assert len(set(found)) == 1
