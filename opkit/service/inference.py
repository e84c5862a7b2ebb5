"""The path of a request for inference: body, queue, thread, answer.

The one path that is walked a thousand times a second, so it stands on ASGI itself; everything else
of the service is FastAPI's.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from opkit.errors import BusyError, OpkitError, UsageError
from opkit.service.service import Service
from opkit.service.serving import Answer
from opkit.service.tensors import HEADER_LENGTH, read_request, write_answer

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["Inference", "Reply", "TooLarge", "TooSlow", "error_reply", "read_body"]

CALLER_HEADER = b"x-opkit-caller"
SECONDS_HEADER = b"x-opkit-seconds"
_LENGTH_HEADER = HEADER_LENGTH.encode()
_MOST_THREADS = 32
_LONGEST_CALLER = 256
_JSON = b"application/json"

Headers: TypeAlias = Mapping[bytes, bytes]


class TooLarge(UsageError):
    """A request's body is longer than it may be."""


class TooSlow(UsageError):
    """A request's body takes longer to arrive than it may."""


class _Gone(Exception):
    """The client has closed the connection."""


_STATUS = {TooLarge: 413, TooSlow: 408, UsageError: 400, BusyError: 503}


@dataclass(frozen=True)
class Reply:
    """A response as ASGI sends it."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", _JSON),)


class Inference:
    """Answers requests, so many at a time."""

    def __init__(self, service: Service) -> None:
        """Start the threads that wait for versions."""
        self._service = service
        self._http = service.settings.http
        self._threads = _Threads(min(_MOST_THREADS, self._http.queue))
        self._under_way = 0

    @staticmethod
    def target(scope: Scope) -> tuple[str, str | None] | None:
        """Return the operator and version that a request is for; None where it is for neither."""
        path: str = scope["path"]
        if scope["method"] != "POST" or not path.startswith("/v2/models/"):
            return None
        # Of the raw path, so that a name with an encoded slash stays one name.
        raw = scope.get("raw_path") or path.encode()
        parts = raw.decode("latin-1").split("/")[3:]
        if len(parts) == 2 and parts[1] == "infer":
            return unquote(parts[0]), None
        if len(parts) == 4 and parts[1] == "versions" and parts[3] == "infer":
            return unquote(parts[0]), unquote(parts[2])
        return None

    async def answer(
        self, scope: Scope, receive: Receive, send: Send, operator: str, version: str | None
    ) -> None:
        """Answer one request."""
        if self._under_way >= self._http.queue:
            self._service.metrics.count("refused_full", "")
            await _send(send, _full(self._http.queue))
            return
        self._under_way += 1
        try:
            arrived = time.monotonic()
            headers: Headers = dict(scope["headers"])
            body = await read_body(receive, headers, self._http.body_bytes, self._http.body_seconds)
            reply = await self._threads.run(
                lambda: self._work(headers, operator, version, body, arrived)
            )
        except OpkitError as error:
            reply = error_reply(error)
        except _Gone:
            return
        finally:
            self._under_way -= 1
        await _send(send, reply)

    def close(self) -> None:
        """End the threads once they have done what they are at."""
        self._threads.close()

    def _work(
        self, headers: Headers, operator: str, version: str | None, body: bytes, arrived: float
    ) -> Reply:
        try:
            served = self._service.operator(operator)
            first = served.versions[served.deployment.default].version.interface
            read = read_request(body, _header_length(headers), first)
            most = served.settings.limits.call_seconds
            left = _seconds(headers, most) - (time.monotonic() - arrived)
            if left <= 0:
                raise BusyError(f"{operator}: no time was left when the call's turn came")
            caller = headers.get(CALLER_HEADER, b"")[:_LONGEST_CALLER].decode("latin-1")
            parent = headers.get(b"traceparent")
            answer = self._service.call_bound(
                operator,
                read.inputs,
                read.attributes,
                caller=caller or None,
                version=version,
                seconds=left,
                traceparent=parent.decode("latin-1") if parent else None,
            )
            told = _told(answer)
            return _reply(
                *write_answer(operator, answer.version, answer.outputs, first, read, told)
            )
        except OpkitError as error:
            return error_reply(error)


class _Threads:
    """Threads that run functions for an event loop; lighter than an executor's."""

    def __init__(self, count: int) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._count = count
        for _ in range(count):
            self._begin()

    async def run(self, function: Callable[[], Reply]) -> Reply:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()

        def finish(reply: Reply | None) -> None:
            if future.done():
                return
            if reply is None:
                future.set_exception(RuntimeError("a call has ended its thread"))
            else:
                future.set_result(reply)

        def job() -> None:
            reply = None
            try:
                reply = function()
            finally:
                # Also after an exception that nobody expects: somebody waits for this.
                loop.call_soon_threadsafe(finish, reply)

        self._jobs.put(job)
        return await future

    def close(self) -> None:
        for _ in range(self._count):
            self._jobs.put(None)

    def _begin(self) -> None:
        threading.Thread(target=self._run, name="opkit-call", daemon=True).start()

    def _run(self) -> None:
        job = None
        try:
            while (job := self._jobs.get()) is not None:
                job()
        finally:
            # A job that ended in an exception of ours takes one thread with it, not all in turn.
            if job is not None:
                self._begin()


def error_reply(error: OpkitError) -> Reply:
    """Return what a client is told of an error: the status by who must act, the reason, a hint."""
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    text = f"{error.message}; {error.help}" if error.help else error.message
    headers = [(b"content-type", _JSON)]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    if status in (408, 413):
        # The rest of a body that is not read would be taken for the next request.
        headers.append((b"connection", b"close"))
    return Reply(status, json.dumps({"error": text}).encode(), tuple(headers))


async def read_body(receive: Receive, headers: Headers, most_bytes: int, seconds: float) -> bytes:
    """Return a request's body.

    Raises:
        TooLarge, TooSlow: it is, or takes, more than it may.
    """
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > most_bytes:
        raise TooLarge(f"the body has {int(declared)} bytes, and {most_bytes} is the limit")
    task = asyncio.current_task()
    assert task is not None
    is_late = False

    def late() -> None:
        nonlocal is_late
        is_late = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, late)
    try:
        return await _collect(receive, most_bytes)
    except asyncio.CancelledError:
        if not is_late:
            raise
        if hasattr(task, "uncancel"):
            task.uncancel()
        raise TooSlow(f"the body did not arrive in {seconds:g} seconds") from None
    finally:
        timer.cancel()


async def _collect(receive: Receive, most_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Gone
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > most_bytes:
            raise TooLarge(f"the body has more than {most_bytes} bytes")
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _send(send: Send, reply: Reply) -> None:
    headers = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _full(count: int) -> Reply:
    text = json.dumps({"error": f"{count} requests are under way: call again later"})
    return Reply(429, text.encode(), ((b"content-type", _JSON), (b"retry-after", b"1")))


def _header_length(headers: Headers) -> int | None:
    text = headers.get(_LENGTH_HEADER)
    if text is None:
        return None
    if not text.isdigit() or len(text) > 12:
        raise UsageError(f"{HEADER_LENGTH}: {text[:40]!r} is no length")
    return int(text)


def _seconds(headers: Headers, most: float) -> float:
    text = headers.get(SECONDS_HEADER)
    if text is None:
        return most
    name = SECONDS_HEADER.decode()
    try:
        seconds = float(text)
    except ValueError as err:
        raise UsageError(f"{name}: {text[:40]!r} is no number") from err
    if not 0 < seconds <= 86_400:
        raise UsageError(f"{name}: {text[:40]!r} is no time that a call may take")
    return min(seconds, most)


def _told(answer: Answer) -> dict[str, object]:
    told: dict[str, object] = {
        "opkit_digest": answer.digest[:12],
        "opkit_reason": answer.reason,
        "opkit_checked": answer.checked,
    }
    if answer.attempts:
        told["opkit_failed"] = ", ".join(f"{a.version}: {a.kind}" for a in answer.attempts)
    return told


def _reply(body: bytes, header_length: int | None) -> Reply:
    if header_length is None:
        return Reply(200, body)
    length = (_LENGTH_HEADER, b"%d" % header_length)
    return Reply(200, body, ((b"content-type", b"application/octet-stream"), length))
