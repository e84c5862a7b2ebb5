"""What has been measured, on disk: a line a candidate, so that whatever ends a run loses none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType

from opkit.errors import UsageError, cannot_write
from opkit.tuning.measurement import Measurement
from opkit.tuning.space import Candidate

__all__ = ["Journal"]

_FORMAT = 1


class Journal:
    """A file that is only added to. A line that was cut off by the end of a run does not count."""

    def __init__(self, path: Path, subject: str) -> None:
        """Read what is there, and make it ready for more.

        Args:
            subject: what is measured; another subject's file is refused.
        Raises:
            UsageError: the file is another subject's, or damaged.
            SetupError: the disk is full or cannot be written.
        """
        self.path = path
        self.known: dict[tuple[str, Candidate], Measurement] = {}
        """By `time` or `check`, and the candidate."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_bytes() if path.exists() else b""
            whole = text[: text.rfind(b"\n") + 1]
            self._read(whole, subject)
            self._file = path.open("ab")
            self._file.truncate(len(whole))
            if not whole:
                self._append({"opkit": "tune", "format": _FORMAT, "subject": subject})
        except OSError as err:
            raise cannot_write(path, err, help="name another place with --state") from err

    def add(self, kind: str, candidate: Candidate, measurement: Measurement) -> None:
        """Keep a measurement.

        Raises:
            SetupError: the disk is full.
        """
        self.known[kind, candidate] = measurement
        try:
            self._append({"kind": kind, "values": list(candidate), **measurement.to_json()})
        except OSError as err:
            raise cannot_write(self.path, err, help="name another place with --state") from err

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _append(self, value: dict[str, object]) -> None:
        # One write: a line is there whole, or cut off at its end.
        line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        written = os.write(self._file.fileno(), line)
        if written < len(line):
            os.write(self._file.fileno(), line[written:])

    def _read(self, text: bytes, subject: str) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            try:
                value = json.loads(line)
                if number == 1:
                    is_ours = value["opkit"] == "tune" and value["format"] == _FORMAT
                    known = str(value["subject"])
                else:
                    key = (str(value["kind"]), tuple(value["values"]))
                    self.known[key] = Measurement.from_json(value)
                    continue
            except (ValueError, KeyError, TypeError) as err:
                raise UsageError(
                    f"{self.path}:{number}: is damaged: {line[:60]!r}",
                    help="delete the file to begin again",
                ) from err
            if not is_ours or known != subject:
                raise UsageError(
                    f"{self.path}: holds the state of another tuning: {known}",
                    help="name another file with --state, or delete this one",
                )
