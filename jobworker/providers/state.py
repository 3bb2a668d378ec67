"""state: Terraform's http backend, for the jobs of this process.

A listener on the loopback interface, at a random port, started on first use. A job
that holds `backend` may read, write and lock the state of its one deployment, with its
claim id as the password, as long as it holds the claim: a worker that lost its job
cannot write, and Terraform then keeps what it has in errored.tfstate.

While the database is away a request waits for it: a restart of the database is no
reason to lose what was just made.
"""

import base64
import binascii
import hashlib
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from django.db import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    connections,
    transaction,
)
from django.db.models import QuerySet

from audit import clock, text
from audit.secret import UnreadableSecret
from jobworker.context import JobContext
from jobworker.exceptions import JobFailed
from jobworker.models import Deployment, Job, TerraformLock, TerraformState
from jobworker.models.deployment import mask
from jobworker.providers.patient import patiently

logger = logging.getLogger(__name__)

USER = "job"
KEPT = 20  # versions of a state
LARGEST = 200_000_000  # bytes of a state


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one claim may touch."""

    claim_id: UUID
    job_id: UUID
    deployment_id: int
    # Of the job's thread: the secrets in a state are the attempt's, whoever is told them.
    context: Context = field(default_factory=copy_context, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What Terraform is told."""

    status: int
    body: bytes = b""  # JSON, or a sentence


LOST = Answer(status=403, body=b"this job no longer holds its claim")

_grants: dict[str, Grant] = {}  # by password
_started = threading.Lock()


@contextmanager
def backend(ctx: JobContext, deployment: Deployment) -> Iterator[dict[str, str]]:
    """The environment with which Terraform finds the state; good inside the block."""
    password = str(ctx.claim_id)
    address = f"http://127.0.0.1:{_port()}/state/{deployment.pk}"
    _grants[password] = Grant(
        claim_id=ctx.claim_id, job_id=ctx.job_id, deployment_id=deployment.pk
    )
    try:
        yield {
            "TF_HTTP_ADDRESS": address,
            "TF_HTTP_LOCK_ADDRESS": address,
            "TF_HTTP_UNLOCK_ADDRESS": address,
            "TF_HTTP_USERNAME": USER,
            "TF_HTTP_PASSWORD": password,
            # A worker that is gone is gone: each try costs seconds for each resource, and
            # the guard's patience is over before errored.tfstate is written [seen].
            "TF_HTTP_RETRY_MAX": "0",
        }
    finally:
        del _grants[password]


@contextmanager
def opened() -> Iterator[None]:
    """A job fails with what to do where no key opens the state, or another secret, that is read inside."""
    try:
        yield
    except UnreadableSecret as problem:
        raise JobFailed(str(problem), code="unreadable_secret") from None


def newest(deployment: Deployment) -> TerraformState | None:
    """The state as it was stored last; None: nothing was ever made. Raises UnreadableSecret."""
    return TerraformState.objects.filter(deployment=deployment).order_by("-id").first()


def lock(deployment: Deployment) -> TerraformLock | None:
    """Who holds the state."""
    return TerraformLock.objects.filter(deployment=deployment).first()


def is_held(lock: TerraformLock) -> bool:
    """Whether the claim that took the lock is still alive."""
    return _held(lock.claim_id).exists()


def hold(ctx: JobContext, what: object) -> None:
    """Nobody fails this job, or leaves `what` to another, before the end of the caller's transaction.

    Raises JobFailed where that was done already: the job must write nothing.
    """
    if not _held(ctx.claim_id).select_for_update(no_key=True):
        raise JobFailed(
            f"this job was ended, its claim is gone: it writes nothing more on {what}",
            code="lost",
        )


def answer(
    method: str,
    *,
    grant: Grant,
    lock_id: str = "",
    body: bytes = b"",
    md5: str = "",
) -> Answer:
    """Do what Terraform asks: GET, POST, LOCK, UNLOCK. `md5` is the Content-MD5 header."""
    if method == "GET":
        return _read(grant) if _held(grant.claim_id).exists() else LOST
    if md5 and md5 != base64.b64encode(_md5(body).digest()).decode():
        return Answer(status=400, body=b"Content-MD5 differs: the body was damaged")
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return Answer(status=400, body=b"the body is no JSON object")
    with transaction.atomic():
        # Locked: nobody fails the job between this look and the write.
        if not _held(grant.claim_id).select_for_update():
            return LOST
        if method == "POST":
            return _write(grant, lock_id=lock_id, body=body, document=document)
        if method == "LOCK":
            return _lock(grant, document)
        return _unlock(grant, document)


def store(deployment_id: int, *, body: bytes, document: Any, job_id: UUID) -> None:
    """Add a version of the state, drop those beyond KEPT, in the caller's transaction."""
    for output in (document.get("outputs") or {}).values():
        if isinstance(output, dict) and output.get("sensitive"):
            mask(output.get("value"))
    serial = document.get("serial")
    TerraformState.objects.create(
        deployment_id=deployment_id,
        serial=serial if isinstance(serial, int) else 0,
        lineage=str(document.get("lineage", ""))[:64],
        body=body.decode("utf-8", "replace"),
        md5=_md5(body).hexdigest(),
        job=job_id,
        created_at=clock.DatabaseNow(),
    )
    versions = TerraformState.objects.filter(deployment_id=deployment_id)
    oldest = versions.order_by("-id").values_list("id", flat=True)[KEPT : KEPT + 1]
    for id in oldest:
        versions.filter(id__lte=id).delete()


def _held(claim_id: UUID) -> "QuerySet[Job]":
    return Job.objects.running().filter(claim_id=claim_id)


def _read(grant: Grant) -> Answer:
    states = TerraformState.objects.filter(deployment_id=grant.deployment_id)
    state = states.order_by("-id").first()
    if state is None:
        return Answer(status=404, body=b"there is no state yet")
    return Answer(status=200, body=state.body.encode())


def _write(grant: Grant, *, lock_id: str, body: bytes, document: Any) -> Answer:
    lock = TerraformLock.objects.filter(deployment_id=grant.deployment_id).first()
    if (lock.lock_id if lock else "") != lock_id:
        who = f"held by job {lock.job}" if lock else "not held by anybody"
        return Answer(status=409, body=f"the state is locked: {who}".encode())
    grant.context.copy().run(
        store,
        grant.deployment_id,
        body=body,
        document=document,
        job_id=grant.job_id,
    )
    return Answer(status=200)


def _lock(grant: Grant, info: Any) -> Answer:
    lock_id = str(info.get("ID", ""))[:64]
    try:
        with transaction.atomic():
            TerraformLock.objects.create(
                deployment_id=grant.deployment_id,
                lock_id=lock_id,
                info=text.gate_json(info),
                job=grant.job_id,
                claim_id=grant.claim_id,
                created_at=clock.DatabaseNow(),
            )
    except IntegrityError:
        lock = TerraformLock.objects.filter(deployment_id=grant.deployment_id).first()
        if lock is None:  # given back at this moment; Terraform says who to ask
            return Answer(status=423, body=b"{}")
        # The same once more: the reply to the first was lost.
        same = lock.lock_id == lock_id and lock.claim_id == grant.claim_id
        return Answer(status=200 if same else 423, body=json.dumps(lock.info).encode())
    return Answer(status=200)


def _unlock(grant: Grant, info: Any) -> Answer:
    locks = TerraformLock.objects.filter(deployment_id=grant.deployment_id)
    lock_id = str(info.get("ID", ""))[:64]
    if locks.filter(lock_id=lock_id).delete()[0] or not (lock := locks.first()):
        return Answer(status=200)
    return Answer(status=409, body=json.dumps(lock.info).encode())


class Listener(BaseHTTPRequestHandler):
    """One connection of a Terraform."""

    protocol_version = "HTTP/1.1"
    server_version = "millrace"
    timeout = 600  # seconds of silence

    def do_GET(self) -> None:
        """Read the state."""
        self._serve()

    do_POST = do_LOCK = do_UNLOCK = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: the state's versions and the lock tell it."""

    def _serve(self) -> None:
        length = self.headers.get("Content-Length", "0")
        grant = _granted(self.headers.get("Authorization", ""))
        address = urlsplit(self.path)
        if grant is None:
            self._refuse(401, b"no job of this worker has this claim")
        elif address.path != f"/state/{grant.deployment_id}":
            self._refuse(403, b"that is not this job's deployment")
        elif not length.isdigit() or int(length) > LARGEST:
            self._refuse(413, b"the body is too large")
        else:
            body = self.rfile.read(int(length))
            reply = _answer(
                lambda: answer(
                    self.command,
                    grant=grant,
                    lock_id=parse_qs(address.query).get("ID", [""])[0],
                    body=body,
                    md5=self.headers.get("Content-MD5", ""),
                ),
                go_on=lambda: str(grant.claim_id) in _grants,
            )
            self._reply(reply)

    def _refuse(self, status: int, why: bytes) -> None:
        """Without reading the body: anybody on this machine can send one, and it is held in memory."""
        self.close_connection = True
        self._reply(Answer(status=status, body=why))

    def _reply(self, reply: Answer) -> None:
        self.send_response(reply.status)
        if reply.status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="state"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply.body)))
        if reply.body:
            digest = base64.b64encode(_md5(reply.body).digest()).decode()
            self.send_header("Content-MD5", digest)
        self.end_headers()
        self.wfile.write(reply.body)


class _Server(ThreadingHTTPServer):
    """A thread per connection; a Terraform that was stopped closes its own rudely."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Not on stderr: what matters of it stands in the job's output."""
        logger.debug("a connection for a state ended: %s", sys.exception())


def _answer(ask: Callable[[], Answer], *, go_on: Callable[[], bool]) -> Answer:
    try:
        return patiently(ask, go_on=go_on)
    except (OperationalError, InterfaceError):
        return Answer(status=503, body=b"the database is away")
    except Exception:
        logger.exception("a request for a state failed")
        return Answer(status=500, body=b"the state could not be served")
    finally:
        connections.close_all()


def _granted(authorization: str) -> Grant | None:
    kind, _, coded = authorization.partition(" ")
    try:
        user, _, password = (
            base64.b64decode(coded, validate=True).decode().partition(":")
        )
    except (binascii.Error, UnicodeDecodeError):
        return None
    return _grants.get(password) if (kind, user) == ("Basic", USER) else None


def _md5(body: bytes) -> Any:
    return hashlib.md5(body, usedforsecurity=False)


def _port() -> int:
    with _started:
        return _serving()


@cache
def _serving() -> int:
    server = _Server(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, name="state", daemon=True).start()
    logger.info("listener=state port=%s", server.server_port)
    return int(server.server_port)
