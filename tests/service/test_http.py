"""The service over HTTP: the protocol, what is refused and why, and who may change what."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.service import Client, Service, ServiceSettings, make_app

X = np.arange(4, dtype=np.float32)
JSON_X = {"name": "x", "shape": [4], "datatype": "FP32", "data": [0, 1, 2, 3]}


def ask(
    url: str,
    method: str,
    path: str,
    body: bytes | dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, Any, dict[str, str]]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    connection.request(method, path, content, headers or {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    found = {name.lower(): value for name, value in answer.getheaders()}
    is_json = found.get("content-type") == "application/json"
    return answer.status, json.loads(text) if is_json else text, found


@pytest.fixture(scope="module")
def shared(
    write_version: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
    serve: Callable[[Any], str],
) -> Iterator[str]:
    """The address of a service that no test changes."""
    folder = tmp_path_factory.mktemp("shared")
    versions = {n: {"source": str(write_version(folder, n))} for n in ("v1", "v2")}
    settings = {
        "store": folder / "store",
        "isolation": "none",
        "http": {"body_bytes": 100_000, "body_seconds": 1},
        "operators": [{"name": "twice", "versions": versions}],
    }
    with Service(ServiceSettings.model_validate(settings)) as service:
        yield serve(make_app(service))


@pytest.fixture
def url(open_service: Callable[..., Any], serve: Callable[[Any], str]) -> str:
    service = open_service(
        {"v1": "good", "v2": "good"},
        limits={"tensor_bytes": 1 << 20},
        http={"body_bytes": 100_000, "body_seconds": 1},
    )
    return serve(make_app(service))


def test_json_and_binary_give_the_same_answer(shared: str) -> None:
    request = {"id": "7", "inputs": [JSON_X]}
    status, answer, _ = ask(shared, "POST", "/v2/models/twice/infer", request)
    assert status == 200
    assert (answer["id"], answer["model_name"], answer["model_version"]) == ("7", "twice", "v1")
    (output,) = answer["outputs"]
    assert output == {"name": "y", "shape": [4], "datatype": "FP32", "data": [0, 2, 4, 6]}
    with Client(shared) as client:
        found = client.call("twice", {"x": X}, caller="test")
        assert found.outputs[0].tolist() == [0, 2, 4, 6]
        assert found.version == "v1"
        assert client.call("twice", {"x": X}, version="v2").version == "v2"


def test_the_protocols_pages_say_what_there_is(shared: str) -> None:
    assert ask(shared, "GET", "/v2")[1]["extensions"] == ["binary_tensor_data"]
    assert ask(shared, "GET", "/v2/health/live")[:2] == (200, {"live": True})
    assert ask(shared, "GET", "/v2/health/ready")[:2] == (200, {"ready": True})
    status, model, _ = ask(shared, "GET", "/v2/models/twice")
    assert (status, model["versions"]) == (200, ["v1", "v2"])
    assert model["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1]}]
    assert ask(shared, "GET", "/v2/models/none")[0] == 400
    assert b"opkit_attempts" in ask(shared, "GET", "/metrics")[1]
    paths = ask(shared, "GET", "/openapi.json")[1]["paths"]
    assert "/v2/models/{model}/infer" in paths
    assert "/opkit/v1/operators/{operator}/rollback" in paths


def test_pages_load_nothing_from_elsewhere(shared: str) -> None:
    for path in ("/docs", "/dash"):
        status, page, headers = ask(shared, "GET", path)
        assert status == 200
        assert not re.search(rb"""(src|href)\s*=\s*["']?http|@import|shared\(""", page)
        assert "default-src 'none'" in headers["content-security-policy"]


BAD_INPUTS: list[tuple[dict[str, Any], str]] = [
    ({**JSON_X, "datatype": "FP12"}, "no datatype"),
    ({**JSON_X, "shape": [5]}, "does not have the 5 numbers"),
    ({**JSON_X, "shape": [-4]}, "no shape"),
    ({**JSON_X, "data": [0, 1, 2, "three"]}, "is no number"),
    ({**JSON_X, "data": [0, 1, 2, None]}, "is no number"),
    ({**JSON_X, "data": [[0, 1], [2, [3]]]}, "[3] is no number"),
    ({**JSON_X, "name": "z"}, "x is missing"),
    ({**JSON_X, "datatype": "INT8", "data": [0, 1, 2, 300]}, "300 is no INT8"),
    ({**JSON_X, "data": None, "parameters": {"binary_data_size": 16}}, "0 bytes are left"),
]


@pytest.mark.parametrize(("item", "reason"), BAD_INPUTS, ids=[reason for _, reason in BAD_INPUTS])
def test_a_tensor_that_is_none_is_refused_with_the_reason(
    shared: str, item: dict[str, Any], reason: str
) -> None:
    status, answer, _ = ask(shared, "POST", "/v2/models/twice/infer", {"inputs": [item]})
    assert status == 400
    assert reason in answer["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        (b"{", {}, 400, "Invalid JSON"),
        (b"[" * 50_000, {}, 400, "Invalid JSON"),
        (b"\xff\xfe", {}, 400, "none for inference"),
        (b"{}", {}, 400, "inputs: Field required"),
        (b'{"inputs": []}', {}, 400, "x is missing"),
        (b"{}", {"Inference-Header-Content-Length": "9"}, 400, "the body has 2 bytes"),
        (b"{}", {"Inference-Header-Content-Length": "-1"}, 400, "no length"),
        (b"{}", {"Inference-Header-Content-Length": "\u00b2"}, 400, "no length"),
        (
            b'{"inputs": []}abc',
            {"Inference-Header-Content-Length": "14"},
            400,
            "belong to no input",
        ),
        (json.dumps({"inputs": [JSON_X]}).encode(), {"X-Opkit-Seconds": "-1"}, 400, "no time"),
        (b" " * 200_000, {}, 413, "100000 is the limit"),
    ],
)
def test_a_request_that_is_none_is_refused_with_the_reason(
    shared: str, body: bytes, headers: dict[str, str], status: int, reason: str
) -> None:
    found, answer, _ = ask(shared, "POST", "/v2/models/twice/infer", body, headers)
    assert found == status
    assert reason in answer["error"]


def test_a_body_without_a_length_is_cut_at_the_limit(shared: str) -> None:
    parts = urlsplit(shared)
    with socket.create_connection((str(parts.hostname), int(parts.port or 0)), 60) as stream:
        stream.sendall(
            b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: localhost\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        # The server may close as soon as the limit is passed.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(20):
                stream.sendall(b"2710\r\n" + b" " * 10_000 + b"\r\n")
        assert stream.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_come_is_refused(shared: str) -> None:
    parts = urlsplit(shared)
    with socket.create_connection((str(parts.hostname), int(parts.port or 0)), 60) as stream:
        stream.sendall(
            b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        assert stream.recv(100).startswith(b"HTTP/1.1 408")


def test_a_full_house_is_said_with_when_to_come_again(
    open_service: Callable[..., Any], serve: Callable[[Any], str]
) -> None:
    service = open_service({"v1": "good"}, http={"queue": 1})
    url = serve(make_app(service))
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), int(parts.port or 0)), 60) as stream:
        stream.sendall(
            b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
        )
        deadline = time.monotonic() + 30
        status, headers = 0, {}
        while status != 429 and time.monotonic() < deadline:
            status, _, headers = ask(url, "POST", "/v2/models/twice/infer", {"inputs": [JSON_X]})
        assert (status, headers.get("retry-after")) == (429, "1")
    while ask(url, "POST", "/v2/models/twice/infer", {"inputs": [JSON_X]})[0] == 429:
        assert time.monotonic() < deadline


def test_deployments_change_and_roll_back(url: str) -> None:
    path = "/opkit/v1/operators/twice"
    status, revision, _ = ask(url, "POST", f"{path}/deployment", {"default": "v2"})
    assert (status, revision["revision"], revision["deployment"]["default"]) == (200, 2, "v2")
    assert (
        ask(url, "POST", "/v2/models/twice/infer", {"inputs": [JSON_X]})[1]["model_version"] == "v2"
    )
    assert ask(url, "POST", f"{path}/rollback", {})[1]["copied_from"] == 1
    assert [item["revision"] for item in ask(url, "GET", f"{path}/history")[1]] == [1, 2, 3]
    report = ask(url, "GET", "/opkit/v1/report")[1]
    assert report["operators"][0]["versions"][0]["is_default"] is True
    assert ask(url, "GET", "/api/state")[1]["service"]["ready"] is True


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "changes nothing"),
        ({"default": "v9"}, "no version"),
        ({"colour": "red"}, "colour: Extra inputs"),
        ({"default": 7}, "default: Input should be a valid string"),
        ({"shares": {"v2": "much"}}, "shares.v2"),
        (b"[]", "should be an object"),
    ],
)
def test_a_change_that_does_not_fit_is_refused(shared: str, body: Any, reason: str) -> None:
    status, answer, _ = ask(shared, "POST", "/opkit/v1/operators/twice/deployment", body)
    assert status == 400
    assert reason in answer["error"]


def test_versions_are_added_while_calls_go_on(url: str, make_version: Any) -> None:
    body = {"label": "v3", "source": str(make_version("v3"))}
    status, added, _ = ask(url, "POST", "/opkit/v1/operators/twice/versions", body)
    assert (status, added["version"], len(added["digest"])) == (200, "v3", 64)
    with Client(url) as client:
        assert client.call("twice", {"x": X}, version="v3").version == "v3"
        with pytest.raises(UsageError, match="no project, artifact folder"):
            client.post("/opkit/v1/operators/twice/versions", {"label": "v4", "source": "nowhere"})


def test_another_hosts_name_is_refused(shared: str) -> None:
    status, answer, _ = ask(shared, "GET", "/v2", None, {"Host": "evil.example"})
    assert status == 421
    assert "evil.example" in answer["error"]


def test_tokens_say_who_may_call_and_who_may_change(
    open_service: Callable[..., Any], serve: Callable[[Any], str], tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("# of the test\ncall callcallcallcall\nadmin adminadminadmin1\n")
    tokens.chmod(0o600)
    url = serve(make_app(open_service({"v1": "good"}, http={"tokens": str(tokens)})))
    change = {"default": "v1"}
    path = "/opkit/v1/operators/twice/deployment"
    call, admin = (
        {"Authorization": f"Bearer {t}"} for t in ("callcallcallcall", "adminadminadmin1")
    )
    assert ask(url, "GET", "/v2/health/ready")[0] == 200
    assert ask(url, "GET", "/metrics")[0] == 401
    assert ask(url, "POST", path, change, {"Authorization": "Bearer wrong"})[0] == 401
    assert ask(url, "POST", path, change, call)[0] == 403
    # The last of several used to count.
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.putrequest("GET", "/metrics")
    for token in ("wrong", "adminadminadmin1"):
        connection.putheader("Authorization", f"Bearer {token}")
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()
    assert ask(url, "POST", path, change, admin)[0] == 200
    assert ask(url, "GET", "/opkit/v1/report", None, call)[0] == 200
    with Client(url, token="callcallcallcall") as client:
        assert client.call("twice", {"x": X}).version == "v1"


def test_a_request_whose_headers_never_end_is_closed(
    open_service: Callable[..., Any],
    serve: Callable[[Any], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 60 of them used to stay open for as long as they liked.
    monkeypatch.setattr("opkit.service.server._HEADER_SECONDS", 0.2)
    url = serve(make_app(open_service({"v1": "good"})))
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as half:
        half.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n")
        assert half.recv(1) == b""
    with socket.create_connection((host, int(port)), timeout=30) as kept:
        request = b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        kept.sendall(request)
        assert kept.recv(12) == b"HTTP/1.1 200"
        kept.sendall(b"GET /v2 HTTP/1.1\r\nHost:")
        while kept.recv(4096):
            pass


def test_unknown_paths_and_methods_are_json_too(shared: str) -> None:
    assert ask(shared, "GET", "/nowhere")[:2] == (404, {"error": "Not Found"})
    assert ask(shared, "DELETE", "/v2")[:2] == (405, {"error": "Method Not Allowed"})
