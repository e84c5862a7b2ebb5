"""What a service and its workers say to each other: one JSON object a packet, tensors elsewhere.

Nothing that a worker sends is more than data here: a version that has gone astray can send
anything.
"""

from __future__ import annotations

import json
import socket
from typing import Any

__all__ = ["LARGEST_MESSAGE", "LARGEST_TEXT", "MessageTooLong", "receive", "send"]

LARGEST_MESSAGE = 128 << 10
LARGEST_TEXT = 8000
"""Letters of an error that are passed on."""


class MessageTooLong(ValueError):
    """A message that no packet holds: it was not sent."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"attributes and shapes of {size_bytes} bytes are too long for a call")
        self.size_bytes = size_bytes


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send one message.

    Raises:
        MessageTooLong: it is longer than a message may be.
        OSError: the other side is gone.
    """
    packet = json.dumps(message, separators=(",", ":")).encode()
    if len(packet) > LARGEST_MESSAGE:
        raise MessageTooLong(len(packet))
    channel.send(packet)


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Return one message; None where the other side is gone.

    Raises:
        TimeoutError: none came in the channel's time.
        ValueError: what came is no message.
    """
    try:
        packet = channel.recv(LARGEST_MESSAGE)
    except ConnectionError:
        return None
    if not packet:
        return None
    message = json.loads(packet)
    if not isinstance(message, dict):
        raise ValueError("a message is an object")
    return message
