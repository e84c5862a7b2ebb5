"""Who may do what: tokens, and which hosts a request may say that it was sent to."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.errors import UsageError
from opkit.service.settings import HttpSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Guard", "Tokens", "is_loopback", "read_tokens", "refuse_open_door"]

ROLES = ("call", "admin")
_SHORTEST_TOKEN = 16
_OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready"})
_CHANGES = "/opkit/v1/"


class Tokens:
    """Tokens by their digests; none stands for everybody may everything."""

    def __init__(self, roles: Mapping[str, str]) -> None:
        """Keep tokens with their roles, `call` or `admin`."""
        self._roles = {
            hashlib.sha256(token.encode()).digest(): role for token, role in roles.items()
        }

    def __bool__(self) -> bool:
        return bool(self._roles)

    def role(self, token: str) -> str | None:
        """Return a token's role; None for one that is not known. Takes as long for all."""
        given = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        found = None
        for digest, role in self._roles.items():
            if hmac.compare_digest(digest, given):
                found = role
        return found


def read_tokens(path: Path | None) -> Tokens:
    """Return the tokens of a file of lines `ROLE TOKEN`; `#` begins a comment.

    Raises:
        UsageError: it cannot be read, others may read it, or a line is no such line.
    """
    if path is None:
        return Tokens({})
    try:
        lines = path.read_text("utf-8").splitlines()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as err:
        if isinstance(err, OSError):
            raise UsageError(f"{path}: cannot be read: {err.strerror}") from err
        raise UsageError(f"{path}: not UTF-8") from err
    if mode & 0o077:
        raise UsageError(f"{path}: others may read it", help=f"chmod 600 {path}")
    roles = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in ROLES or len(words[1]) < _SHORTEST_TOKEN:
            raise UsageError(
                f"{path}:{number}: expected ROLE TOKEN, ROLE call or admin, TOKEN of"
                f" {_SHORTEST_TOKEN} letters or more"
            )
        roles[words[1]] = words[0]
    if not roles:
        raise UsageError(f"{path}: it has no token")
    return Tokens(roles)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def refuse_open_door(http: HttpSettings) -> None:
    """Raise UsageError where other machines could call without a token."""
    if not is_loopback(http.host) and http.tokens is None:
        raise UsageError(
            f"http.host is {http.host}, which other machines reach, and there are no tokens",
            help='write a line "admin TOKEN" to a file and name it as http.tokens',
        )


class Guard:
    """The first thing that a request meets."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens, host: str) -> None:
        """Guard an app that is bound to a host."""
        self._app = app
        self._tokens = tokens
        self._host = host
        self._loopback = is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 400, 401, 403 or 421."""
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is not None:
                await _answer(send, *refusal)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = dict(scope["headers"])
        # A page on the web can make a browser send requests here under another name.
        named = headers.get(b"host", b"").decode("latin-1")
        host = named.rpartition(":")[0] if named.rpartition(":")[2].isdigit() else named
        if self._loopback and not (is_loopback(host) or host == self._host):
            return 421, f"this service does not answer to the host {host!r:.80}"
        path = scope["path"]
        if not self._tokens or path in _OPEN_PATHS:
            return None
        if sum(name == b"authorization" for name, _ in scope["headers"]) > 1:
            return 400, "more than one Authorization header: send one"
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        role = self._tokens.role(token.strip()) if scheme.lower() == "bearer" else None
        if role is None:
            return 401, "no valid token: send Authorization: Bearer TOKEN"
        if role != "admin" and path.startswith(_CHANGES) and scope["method"] != "GET":
            return 403, "this token may call, and not change what is deployed"
        return None


async def _answer(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
