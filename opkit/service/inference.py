"""The path of a request for inference: body, queue, thread, answer."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from opkit.errors import BusyError, OpkitError, UsageError
from opkit.service.service import Service
from opkit.service.serving import Answer
from opkit.service.tensors import HEADER_LENGTH, read_request, write_answer

__all__ = ["CALLER_HEADER", "Inference", "TooLarge", "TooSlow", "error_response", "read_body"]

CALLER_HEADER = "x-opkit-caller"
SECONDS_HEADER = "x-opkit-seconds"
_MOST_THREADS = 32
_LONGEST_CALLER = 256


class TooLarge(UsageError):
    """A request's body is longer than it may be."""


class TooSlow(UsageError):
    """A request's body takes longer to arrive than it may."""


_STATUS = {TooLarge: 413, TooSlow: 408, UsageError: 400, BusyError: 503}


class Inference:
    """Answers requests, so many at a time."""

    def __init__(self, service: Service) -> None:
        """Prepare the threads that wait for versions."""
        self._service = service
        self._http = service.settings.http
        self._threads = ThreadPoolExecutor(
            min(_MOST_THREADS, self._http.queue), thread_name_prefix="opkit-call"
        )
        self._under_way = 0

    async def answer(self, request: Request, operator: str, version: str | None) -> Response:
        """Return the response to one request."""
        if self._under_way >= self._http.queue:
            self._service.metrics.count("refused_full", "")
            return JSONResponse(
                {"error": f"{self._http.queue} requests are under way: call again later"},
                429,
                {"Retry-After": "1"},
            )
        self._under_way += 1
        try:
            arrived = time.monotonic()
            body = await read_body(request, self._http.body_bytes, self._http.body_seconds)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads, self._work, request, operator, version, body, arrived
            )
        except OpkitError as error:
            return error_response(error)
        except ClientDisconnect:
            return Response(status_code=499)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False)

    def _work(
        self, request: Request, operator: str, version: str | None, body: bytes, arrived: float
    ) -> Response:
        try:
            served = self._service.operator(operator)
            first = served.versions[served.deployment.default].version.interface
            read = read_request(body, _header_length(request), first)
            most = served.settings.limits.call_seconds
            left = _seconds(request, most) - (time.monotonic() - arrived)
            if left <= 0:
                raise BusyError(f"{operator}: no time was left when the call's turn came")
            answer = self._service.call_bound(
                operator,
                read.inputs,
                read.attributes,
                caller=(request.headers.get(CALLER_HEADER) or "")[:_LONGEST_CALLER] or None,
                version=version,
                seconds=left,
                traceparent=request.headers.get("traceparent"),
            )
            told = _told(answer)
            return _response(
                *write_answer(operator, answer.version, answer.outputs, first, read, told)
            )
        except OpkitError as error:
            return error_response(error)


def error_response(error: OpkitError) -> JSONResponse:
    """Return what a client is told of an error: the status by who must act, the reason, a hint."""
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    text = f"{error.message}; {error.help}" if error.help else error.message
    headers = {"Retry-After": "1"} if status == 503 else {}
    # The rest of a body that is not read would be taken for the next request.
    if status in (408, 413):
        headers["Connection"] = "close"
    return JSONResponse({"error": text}, status, headers)


async def read_body(request: Request, most_bytes: int, seconds: float) -> bytes:
    """Return a request's body.

    Raises:
        TooLarge, TooSlow: it is, or takes, more than it may.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most_bytes:
        raise TooLarge(f"the body has {declared} bytes, and {most_bytes} is the limit")
    try:
        return await asyncio.wait_for(_collect(request, most_bytes), seconds)
    except asyncio.TimeoutError as err:
        raise TooSlow(f"the body did not arrive in {seconds:g} seconds") from err


async def _collect(request: Request, most_bytes: int) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most_bytes:
            raise TooLarge(f"the body has more than {most_bytes} bytes")
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _header_length(request: Request) -> int | None:
    text = request.headers.get(HEADER_LENGTH)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        raise UsageError(f"{HEADER_LENGTH}: {text!r:.40} is no length")
    return int(text)


def _seconds(request: Request, most: float) -> float:
    text = request.headers.get(SECONDS_HEADER)
    if text is None:
        return most
    try:
        seconds = float(text)
    except ValueError as err:
        raise UsageError(f"{SECONDS_HEADER}: {text!r:.40} is no number") from err
    if not 0 < seconds <= 86_400:
        raise UsageError(f"{SECONDS_HEADER}: {text!r:.40} is no time that a call may take")
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


def _response(body: bytes, header_length: int | None) -> Response:
    if header_length is None:
        return Response(body, media_type="application/json")
    headers = {HEADER_LENGTH: str(header_length)}
    return Response(body, headers=headers, media_type="application/octet-stream")
