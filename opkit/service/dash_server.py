"""`opkit dash`: the dashboard over a running service, and over files."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from opkit.service.dash_files import DashFiles
from opkit.service.dash_history import DashLimits, History
from opkit.service.dash_page import PAGE_HEADERS, dash_page
from opkit.service.security import Guard, Tokens
from opkit.service.server import address_of, bound_socket, run_app

__all__ = ["make_dash", "run_dash"]

_LOOPBACK = "127.0.0.1"
_SECONDS = 5.0
_WATCH_SECONDS = 5.0
_LARGEST_REPORT = 64 << 20


def make_dash(
    files: Sequence[Path],
    *,
    service: str | None = None,
    token: str | None = None,
    history: Path | None = None,
    limits: DashLimits | None = None,
) -> Starlette:
    """Return the dashboard's application.

    Args:
        files: of `--json` and `--trace`, and folders of such.
        service: the address of a service.
        token: that the service wants.
        history: the SQLite database that keeps what was seen; in memory where it is left out.
        limits: what is an alert.
    Raises:
        UsageError: a file is not there, or `history` is no such database.
    """
    read = DashFiles(tuple(files))
    past = History(history)
    reading = threading.Lock()

    def state() -> dict[str, Any]:
        # The page and the clock ask; one of them at a time.
        with reading:
            found, problem = _report(service, token) if service is not None else (None, "")
            now = {"service": found, "files": read.read(), "problem": problem}
            past.note(now)
            return {**now, "alerts": past.alerts(now, limits or DashLimits())}

    async def page(_: Request) -> Response:
        return HTMLResponse(dash_page(), headers=PAGE_HEADERS)

    async def api(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(state))

    async def over_time(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(past.series))

    async def home(_: Request) -> Response:
        return RedirectResponse("/dash")

    async def watch() -> None:
        while True:
            await run_in_threadpool(state)
            await asyncio.sleep(_WATCH_SECONDS)

    @asynccontextmanager
    async def watched(_: Starlette) -> AsyncIterator[None]:
        # What happens is kept where no page is open, too.
        task = asyncio.create_task(watch())
        try:
            yield
        finally:
            task.cancel()
            past.close()

    routes = [
        Route("/", home),
        Route("/dash", page),
        Route("/api/state", api),
        Route("/api/history", over_time),
    ]
    app = Starlette(routes=routes, lifespan=watched)
    app.add_middleware(Guard, tokens=Tokens({}), host=_LOOPBACK)
    return app


def run_dash(
    files: Sequence[Path],
    *,
    port: int,
    service: str | None = None,
    token: str | None = None,
    history: Path | None = None,
    limits: DashLimits | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Show the dashboard on the loopback address until SIGTERM or SIGINT.

    Raises:
        UsageError: a file is not there, the port is in use, or `history` is no such database.
    """
    app = make_dash(files, service=service, token=token, history=history, limits=limits)
    with bound_socket(_LOOPBACK, port) as bound:
        ready(f"{address_of(bound)}/dash")
        run_app(app, bound, stop_seconds=1)


def _report(service: str, token: str | None) -> tuple[Any, str]:
    """Return a service's report, and why there is none."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{service.rstrip('/')}/opkit/v1/report", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return json.loads(answer.read(_LARGEST_REPORT)), ""
    except urllib.error.HTTPError as err:
        return None, f"{service} answers {err.code}: {err.reason}"
    except (OSError, ValueError) as err:
        return None, f"{service} does not answer: {err}"
