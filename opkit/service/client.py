"""A client of the service: NumPy arrays to answers, as binary tensors on one open connection."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from opkit.errors import BusyError, OperatorError, OpkitError, SetupError, UsageError
from opkit.service.binding import bind
from opkit.service.tensors import DATATYPES, HEADER_LENGTH, encode_tensors, storage_of
from opkit.service.workers import Tensor

__all__ = ["Client", "ServiceAnswer"]


@dataclass(frozen=True)
class ServiceAnswer:
    """An answer of the service."""

    outputs: list[npt.NDArray[Any]]
    version: str
    """The label of the version that answered, or `reference`."""
    parameters: Mapping[str, Any]
    """Why that version, whether the answer was checked, which versions failed before."""


class Client:
    """One connection; not for several threads at a time.

    with Client("http://127.0.0.1:8000") as client:
        y = client.call("gelu", {"x": x}).outputs[0]
    """

    def __init__(self, url: str, *, token: str | None = None, seconds: float = 30.0) -> None:
        """Prepare; the connection opens with the first call.

        Raises:
            UsageError: it is no http address.
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise UsageError(f"{url} is no http address", help="such as http://127.0.0.1:8000")
        self._connection = http.client.HTTPConnection(
            parts.hostname, parts.port or 80, timeout=seconds
        )
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def call(
        self,
        operator: str,
        inputs: Mapping[str, npt.ArrayLike],
        attributes: Mapping[str, Any] | None = None,
        *,
        dtypes: Mapping[str, str] | None = None,
        caller: str | None = None,
        version: str | None = None,
        seconds: float | None = None,
    ) -> ServiceAnswer:
        """Return the answer to one call; arguments as `Service.call`, inputs by name.

        Raises:
            UsageError: the service refuses the call.
            BusyError: it has no room or no time now.
            OperatorError: no version answers.
        """
        names = list(inputs)
        tensors = bind(
            operator, list(inputs.values()), [(dtypes or {}).get(name) for name in names]
        )
        flat: list[tuple[str, Tensor, bool]] = []
        for name, value in zip(names, tensors, strict=True):
            for tensor in value if isinstance(value, list) else [value]:
                if tensor is not None:
                    flat.append((name, tensor, True))
        described, chunks = encode_tensors(flat)
        parameters = {**(attributes or {}), "binary_data_output": True}
        header = json.dumps({"inputs": described, "parameters": parameters}).encode()
        headers = {HEADER_LENGTH: str(len(header)), "Content-Type": "application/octet-stream"}
        if caller is not None:
            headers["X-Opkit-Caller"] = caller
        if seconds is not None:
            headers["X-Opkit-Seconds"] = str(seconds)
        path = f"/v2/models/{operator}"
        path += f"/versions/{version}/infer" if version is not None else "/infer"
        body, length = self._send("POST", path, b"".join((header, *chunks)), headers)
        return _read(body, length)

    def get(self, path: str) -> Any:
        """Return what a path answers, from JSON."""
        return json.loads(self._send("GET", path, b"", {})[0])

    def post(self, path: str, value: object) -> Any:
        """Send JSON to a path and return what it answers, from JSON."""
        headers = {"Content-Type": "application/json"}
        return json.loads(self._send("POST", path, json.dumps(value).encode(), headers)[0])

    def _send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[bytes, int | None]:
        try:
            self._connection.request(method, path, body or None, {**self._headers, **headers})
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as err:
            # The next call opens another connection.
            self._connection.close()
            host, port = self._connection.host, self._connection.port
            raise SetupError(
                f"http://{host}:{port} does not answer: {err}", help="is opkit serve running there?"
            ) from err
        if response.status != 200:
            raise _error(response.status, content)
        length = response.getheader(HEADER_LENGTH)
        return content, None if length is None else int(length)


def _error(status: int, content: bytes) -> OpkitError:
    try:
        text = str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        text = content[:200].decode("utf-8", "replace")
    message = f"the service answered {status}: {text}"
    if status in (429, 503):
        return BusyError(message)
    return UsageError(message) if status < 500 else OperatorError(message)


def _read(body: bytes, header_length: int | None) -> ServiceAnswer:
    at = len(body) if header_length is None else header_length
    header = json.loads(body[:at])
    outputs = []
    for item in header["outputs"]:
        storage = storage_of(DATATYPES[item["datatype"]])
        if "data" in item:
            array = np.array(_numbers(item["data"]), storage)
        else:
            size = int(item["parameters"]["binary_data_size"])
            array = np.frombuffer(body[at : at + size], storage.newbyteorder("<")).astype(storage)
            at += size
        outputs.append(array.reshape(item["shape"]))
    return ServiceAnswer(outputs, header["model_version"], header.get("parameters", {}))


def _numbers(data: Sequence[Any]) -> list[Any]:
    return [float(value) if isinstance(value, str) else value for value in data]
