"""Running an application on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from opkit.errors import UsageError
from opkit.service.http import make_app
from opkit.service.security import refuse_open_door
from opkit.service.service import Service

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_HEADER_SECONDS = 10.0
"""What a client may take to send a request's headers."""

__all__ = ["bound_socket", "run_app", "run_service", "server_config"]

_BACKLOG = 1024
_KEEP_ALIVE_SECONDS = 30
_MOST_CONNECTIONS = 1024


def run_service(service: Service, *, ready: Callable[[str], None] = lambda _: None) -> None:
    """Answer requests until SIGTERM or SIGINT; calls that are under way are answered first.

    Args:
        ready: told the address when the socket listens.
    Raises:
        UsageError: the address cannot be had, or needs tokens.
    """
    http = service.settings.http
    refuse_open_door(http)
    app = make_app(service)
    with bound_socket(http.host, http.port) as bound:
        ready(address_of(bound))
        run_app(app, bound, stop_seconds=http.stop_seconds)


def run_app(app: ASGIApp, bound: socket.socket, *, stop_seconds: float) -> None:
    """Serve an application on a socket until a signal."""
    with _signals_end_here():
        uvicorn.Server(server_config(app, stop_seconds=stop_seconds)).run(sockets=[bound])


def server_config(app: ASGIApp, *, stop_seconds: float = 1.0) -> uvicorn.Config:
    """Return how an application is served."""
    return uvicorn.Config(
        app,
        http=_Impatient,
        access_log=False,
        log_config=None,
        server_header=False,
        ws="none",
        backlog=_BACKLOG,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(stop_seconds)),
    )


class _Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes connections whose requests never begin: each counts among those that there may be."""

    _headers_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, error: Exception | None) -> None:
        self._have_headers()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self._headers_due is None and self._is_between_requests():
            self._await_headers()
        super().data_received(data)
        if not self._is_between_requests():
            self._have_headers()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_headers(self) -> None:
        loop = asyncio.get_running_loop()
        self._headers_due = loop.call_later(_HEADER_SECONDS, self._give_up)

    def _have_headers(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

    def _give_up(self) -> None:
        self._headers_due = None
        if self._is_between_requests():
            self.transport.close()


@contextmanager
def bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Give a socket that listens at an address; port 0 takes a free one.

    Raises:
        UsageError: the address is in use or not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host.strip("[]"), port))
            # Whoever is told the address may connect at once, and waits until the server runs.
            bound.listen(_BACKLOG)
        except OSError as err:
            raise UsageError(
                f"{host}:{port} cannot be served: {err.strerror or err}",
                help="choose another port with --port; 0 takes a free one",
            ) from err
        yield bound
    finally:
        bound.close()


def address_of(bound: socket.socket) -> str:
    """Return the URL of a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _signals_end_here() -> Iterator[None]:
    """Let a signal that has stopped the server be over with that: it is sent again afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.signal(number, _heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _heard(number: int, frame: object) -> None:
    """Nothing: the server has stopped."""
