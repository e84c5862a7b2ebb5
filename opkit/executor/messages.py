"""What workers say through their pipes, read as it comes.

The pipe is one of `multiprocessing.connection`, which says a message's length in front of it.
Whoever asks reads what is there and goes on: code that nobody trusts may write a length to the pipe
and then nothing. What is too long for one message goes as several parts behind their whole length.
"""

from __future__ import annotations

import pickle
import socket
import struct
from multiprocessing.connection import Connection

__all__ = ["Garbage", "Incoming", "packed", "send"]

_PART_BYTES = 1 << 28
"""The longest message; more is none, but something else than opkit that has written to the pipe."""
_LENGTH = struct.Struct("!i")
_PARTS = b"\0parts"
"""In front of how many bytes the next messages have together; no pickle begins so."""
_COUNT = struct.Struct("!Q")


class Garbage(Exception):
    """Somebody else than opkit has written to a worker's pipe."""


def packed(value: object) -> bytes:
    """Return a value as a message has it; arrays and buffers in it are copied once."""
    return pickle.dumps(value, protocol=5)


def send(pipe: Connection, data: bytes) -> None:
    """Send a message of any length; see `Incoming`."""
    if len(data) <= _PART_BYTES:
        pipe.send_bytes(data)
        return
    pipe.send_bytes(_PARTS + _COUNT.pack(len(data)))
    for begin in range(0, len(data), _PART_BYTES):
        pipe.send_bytes(data, begin, min(_PART_BYTES, len(data) - begin))


class Incoming:
    """One end of a pipe, from which messages are read without waiting."""

    def __init__(self, pipe: Connection, most_bytes: int) -> None:
        """Read from the pipe, which stays open; a message may have `most_bytes` together."""
        self._pipe = socket.socket(fileno=pipe.fileno())
        self._most_bytes = most_bytes
        self._length = bytearray()
        self._body: bytearray | None = None
        self._filled = 0
        self._whole = bytearray()
        self._whole_bytes = 0

    def detach(self) -> None:
        """Leave the pipe to its owner."""
        self._pipe.detach()

    def read(self) -> bytes | bytearray | None:
        """Return the next message, once all of it is there; None: not yet.

        Raises:
            EOFError, ConnectionResetError: the worker has ended.
            Garbage: it is no message: a kernel, host code or golden has written there.
        """
        while self._receive():
            body, self._body = self._body, None
            assert body is not None
            self._length.clear()
            if self._whole_bytes:
                self._whole += body
                if len(self._whole) > self._whole_bytes:
                    raise Garbage
                if len(self._whole) < self._whole_bytes:
                    continue
                whole, self._whole, self._whole_bytes = self._whole, bytearray(), 0
                return whole
            self._whole_bytes = _count_of(body)
            if self._whole_bytes > self._most_bytes:
                raise Garbage
            if not self._whole_bytes:
                return body
        return None

    def _receive(self) -> bool:
        """Take what is there; return whether a message is complete."""
        try:
            if self._body is None:
                while len(self._length) < _LENGTH.size:
                    self._length += self._some(_LENGTH.size - len(self._length))
                (size,) = _LENGTH.unpack(self._length)
                if not 0 <= size <= _PART_BYTES:
                    raise Garbage
                self._body, self._filled = bytearray(size), 0
            while self._filled < len(self._body):
                rest = memoryview(self._body)[self._filled :]
                count = self._pipe.recv_into(rest, 0, socket.MSG_DONTWAIT)
                if count == 0:
                    raise Garbage
                self._filled += count
        except BlockingIOError:
            return False
        return True

    def _some(self, count: int) -> bytes:
        found = self._pipe.recv(count, socket.MSG_DONTWAIT)
        if not found:
            # In the middle of a message it is none.
            raise Garbage if self._length or self._whole_bytes else EOFError
        return found


def _count_of(body: bytearray) -> int:
    """Return how many bytes the parts have that a message announces; 0: it is no such message."""
    if len(body) != len(_PARTS) + _COUNT.size or not body.startswith(_PARTS):
        return 0
    (count,) = _COUNT.unpack_from(body, len(_PARTS))
    return int(count)
