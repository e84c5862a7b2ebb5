"""The streams on which an editor and the adapter exchange messages: standard ones or a port's.

Source: Debug Adapter Protocol, overview, base protocol.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from opkit.debugging.adapter import Adapter
from opkit.debugging.targets import Target
from opkit.errors import UsageError

__all__ = ["read_message", "serve_port", "serve_streams", "write_message"]

_MOST_BYTES = 64 << 20
"""Bytes of one message: far above what an editor sends, far below this machine's memory."""


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next message of a stream; None where it ends.

    Raises:
        UsageError: what comes is none.
    """
    length = None
    while True:
        line = stream.readline()
        if not line:
            return None
        text = line.decode("ascii", "replace").strip()
        if not text:
            if length is not None:
                break
            continue
        name, colon, value = text.partition(":")
        if not colon:
            raise UsageError(
                f"{text[:40]!r} is no header of the Debug Adapter Protocol",
                help="an editor sends Content-Length: N, an empty line, and N bytes of JSON",
            )
        if name.lower() == "content-length":
            digits = value.strip()
            if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(_MOST_BYTES)):
                raise UsageError(f"a message with the length {digits[:40]!r}")
            length = int(digits)
            if length > _MOST_BYTES:
                raise UsageError(
                    f"a message of {length} bytes; an editor's have at most {_MOST_BYTES}"
                )
    raw = stream.read(length)
    try:
        message = json.loads(raw)
    except ValueError as error:
        raise UsageError(f"a message that is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise UsageError("a message that is no object")
    return message


def write_message(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    """Write a message to a stream."""
    raw = json.dumps(message, default=str).encode()
    stream.write(f"Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
    stream.flush()


def serve_streams(target: Callable[[], Target], given: BinaryIO, taken: BinaryIO) -> None:
    """Serve one client until it disconnects or its stream ends."""
    adapter = Adapter(target, lambda message: write_message(taken, message))
    while not adapter.is_over:
        message = read_message(given)
        if message is None:
            return
        if message.get("type") == "request":
            adapter.take(message)


def serve_port(target: Callable[[], Target], port: int, told: Callable[[int], None]) -> None:
    """Serve one client on a port of this machine only.

    Args:
        told: called with the port once clients can connect.
    Raises:
        UsageError: somebody else has the port.
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be served: {error.strerror}", help="--port 0 takes a free one"
            ) from error
        listening.listen(1)
        told(listening.getsockname()[1])
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb") as stream:
            serve_streams(target, stream, stream)  # type: ignore[arg-type]
