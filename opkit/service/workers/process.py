"""One worker process, seen from the service."""

from __future__ import annotations

import json
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opkit.service.interface import Interface
from opkit.service.settings import LimitSettings
from opkit.service.workers.arguments import Attributes, Inputs, Rule
from opkit.service.workers.attempts import AttemptFailed
from opkit.service.workers.messages import MessageTooLong, receive, send
from opkit.service.workers.shared_memory import SharedMemory, Tensor

__all__ = ["WorkerProcess"]

_PAGE_BYTES = resource.getpagesize()
_LOAD_SECONDS = 120.0


class WorkerProcess:
    """A process with one version loaded. One call at a time; ended, it is replaced by a new one."""

    def __init__(self, folder: Path, limits: LimitSettings, *, reference: bool) -> None:
        """Start it; it is of use once `greeted` returns true."""
        self._limits = limits
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._memory = SharedMemory()
        settings = {
            "folder": str(folder),
            "reference": reference,
            "threads": limits.threads,
            "memory_bytes": limits.memory_bytes,
            "tensor_bytes": limits.tensor_bytes,
        }
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "opkit.service.workers.worker", str(theirs.fileno())),
                    *(str(self._memory.descriptor), json.dumps(settings)),
                ],
                pass_fds=(theirs.fileno(), self._memory.descriptor),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._statm = Path(f"/proc/{self._process.pid}/statm")
        self.started_at = time.monotonic()
        self.first_bytes = 0
        """What it held when it had loaded."""
        self.why_ended = ""
        """`hang` or `memory`, where the service has ended it."""
        self.problem = ""
        """Why it does not load."""
        self.interface: Interface | None = None
        """What it has loaded, once it has."""

    @property
    def pid(self) -> int:
        """Its process's number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def memory_bytes(self) -> int:
        """What it holds now; 0 once it has ended."""
        try:
            return int(self._statm.read_text().split()[1]) * _PAGE_BYTES
        except (OSError, IndexError):
            return 0

    def greeted(self) -> bool:
        """Whether it has loaded; looks, and does not wait.

        A worker that cannot load says why in `problem`, and has ended.
        """
        if not select.select([self._channel], [], [], 0)[0]:
            if time.monotonic() - self.started_at > _LOAD_SECONDS:
                self.problem = f"it has not loaded in {_LOAD_SECONDS:g} seconds"
                self.end("hang")
            return False
        try:
            greeting = receive(self._channel)
        except ValueError as err:
            greeting = {"message": f"it greets with no message: {err}"}
        if greeting is None:
            self._process.wait()
            self.problem = f"its process ended while it loaded: {self._ending()}"
            return False
        if not greeting.get("ok"):
            self.problem = str(greeting.get("message"))
            self.end()
            return False
        if "interface" in greeting:
            self.interface = Interface.from_json(greeting["interface"])
        self.first_bytes = self.memory_bytes
        return True

    def ask(
        self,
        do: str,
        inputs: Inputs,
        attributes: Attributes,
        *,
        seconds: float,
        outputs: Sequence[Tensor] = (),
        rule: Rule | None = None,
    ) -> dict[str, Any]:
        """Send a call and return the answer.

        Raises:
            AttemptFailed: it failed, hung or ended; after the last two the process is gone.
        """
        described: list[Any] = []
        end = 0
        for value in inputs:
            if value is None:
                described.append(None)
                continue
            places, end = self._memory.put(value if isinstance(value, list) else [value], end)
            described.append(places if isinstance(value, list) else places[0])
        message: dict[str, Any] = {"do": do, "inputs": described, "attributes": attributes}
        if do == "judge":
            message["outputs"], end = self._memory.put(outputs, end)
            message["rule"] = rule
        message["end"] = end
        reply: dict[str, Any] | None = None
        try:
            self._channel.settimeout(max(seconds, 1e-3))
            send(self._channel, message)
            reply = receive(self._channel)
        except TimeoutError as error:
            self.end("hang")
            raise AttemptFailed("hang", f"no answer in {seconds:.3g} seconds") from error
        except MessageTooLong as error:
            raise AttemptFailed("refused", str(error)) from error
        except ValueError as error:
            self.end()
            raise AttemptFailed("error", f"it answered with no message: {error}") from error
        except (ConnectionError, TypeError) as error:
            if isinstance(error, TypeError):
                raise AttemptFailed("refused", f"attributes: {error}") from error
        if reply is None:
            raise self._lost()
        if not reply.get("ok"):
            raise AttemptFailed(str(reply.get("kind")), str(reply.get("message")))
        return reply

    def fetch(self, described: Any) -> list[Tensor]:
        """Return copies of the tensors that an answer describes.

        Raises:
            AttemptFailed: there are no such tensors.
        """
        self._memory.see_growth()
        try:
            found = [self._memory.get(item) for item in described]
        except (ValueError, TypeError) as error:
            self.end()
            raise AttemptFailed("error", f"it answered with no tensors: {error}") from error
        return [(array.copy(), dtype) for array, dtype in found]

    def end(self, why: str = "") -> None:
        """End the process at once."""
        self.why_ended = self.why_ended or why
        self._process.kill()

    def close(self) -> None:
        """End the process and let go of what it shared."""
        self._process.kill()
        self._process.wait()
        self._channel.close()
        self._memory.close()

    def _lost(self) -> AttemptFailed:
        self._process.wait()
        if self.why_ended == "memory":
            limit = self._limits.memory_bytes >> 20
            return AttemptFailed("memory", f"it used more than {limit} MiB above what it loaded")
        return AttemptFailed("crash", f"its process ended: {self._ending()}")

    def _ending(self) -> str:
        code = self._process.returncode
        if code is not None and code < 0:
            names = {int(item): item.name for item in signal.Signals}
            return names.get(-code, f"signal {-code}")
        return f"exit code {code}"
