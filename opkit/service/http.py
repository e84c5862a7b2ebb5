"""The service over HTTP: inference, health, metrics, what is deployed, and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

import opkit
from opkit.errors import OpkitError, UsageError
from opkit.service.dash_page import PAGE_HEADERS, dash_page
from opkit.service.inference import Inference, error_reply, read_body
from opkit.service.interface import Parameter
from opkit.service.metrics import CONTENT_TYPE
from opkit.service.security import Guard, read_tokens
from opkit.service.service import Service
from opkit.service.settings import Name, validation_text
from opkit.service.store import Revision
from opkit.service.tensors import DATATYPES, InferRequest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["make_app"]

_ADMIN_BODY_BYTES = 1 << 20
_API_PAGE = Path(__file__).with_name("api.html")
_PROTOCOL = {ours: theirs for theirs, ours in DATATYPES.items()}


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewVersion(_Message):
    """A version to be added; the source is a path on the service's machine."""

    label: Name
    source: str = Field(max_length=4096)
    op: str | None = Field(default=None, max_length=256)
    golden: str | None = Field(default=None, max_length=4096)


class Change(_Message):
    """Fields of a deployment that change; the others stay."""

    default: Name | None = None
    shares: dict[Name, float] | None = None
    by: str | None = None
    pins: dict[str, Name] | None = None
    shadow: dict[Name, float] | None = None
    choice: str | None = None
    retired: list[Name] | None = None
    reason: str = Field(default="", max_length=1000)


class RollBack(_Message):
    """Where to roll back to; the state before by default."""

    revision: int | None = None
    reason: str = Field(default="", max_length=1000)


_Read = TypeVar("_Read", bound=_Message)


def make_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a service; closing it does not close the service.

    Raises:
        UsageError: the file of tokens does not protect.
    """
    http = service.settings.http
    app = _Door(Inference(service), service)
    return Guard(app, tokens=read_tokens(http.tokens), host=http.host)


class _Door:
    """Requests for inference go one way, all others go FastAPI's."""

    def __init__(self, inference: Inference, service: Service) -> None:
        self._inference = inference
        self._others = _fastapi(service, inference)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = self._inference.target(scope) if scope["type"] == "http" else None
        if target is None:
            await self._others(scope, receive, send)
        else:
            await self._inference.answer(scope, receive, send, *target)


def _fastapi(service: Service, inference: Inference) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        inference.close()

    app = FastAPI(
        title="opkit",
        version=opkit.__version__,
        description="Operators in versions, by the Open Inference Protocol (v2).",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    _add_errors(app)
    _document_inference(app)
    _add_protocol(app, service)
    _add_admin(app, service)
    _add_pages(app, service)
    return app


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def _validation(_: Request, error: RequestValidationError) -> JSONResponse:
        lines = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        return JSONResponse({"error": "; ".join(lines)[:4000]}, 400)

    @app.exception_handler(OpkitError)
    async def _opkit(_: Request, error: OpkitError) -> Response:
        reply = error_reply(error)
        headers = {name.decode(): value.decode() for name, value in reply.headers}
        return Response(reply.body, reply.status, headers)

    @app.exception_handler(Exception)
    async def _bug(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"a bug in opkit: {type(error).__name__}"}, 500)


def _document_inference(app: FastAPI) -> None:
    """Put into the OpenAPI document what `_Door` answers before it comes here."""
    documented = _documented(InferRequest)

    @app.post("/v2/models/{model}/infer", tags=["inference"], openapi_extra=documented)
    async def infer(model: str) -> None:
        """Call an operator; JSON, or with Inference-Header-Content-Length JSON and binary."""

    @app.post(
        "/v2/models/{model}/versions/{version}/infer",
        tags=["inference"],
        openapi_extra=documented,
    )
    async def infer_version(model: str, version: str) -> None:
        """Call a version of an operator first; the answer says which version gave it."""


def _add_protocol(app: FastAPI, service: Service) -> None:
    @app.get("/v2", tags=["protocol"])
    async def server() -> dict[str, Any]:
        """What this server is."""
        return {
            "name": "opkit",
            "version": opkit.__version__,
            "extensions": ["binary_tensor_data"],
        }

    @app.get("/v2/health/live", tags=["health"])
    async def live() -> dict[str, bool]:
        """Whether the service runs."""
        return {"live": True}

    @app.get("/v2/health/ready", tags=["health"])
    async def ready() -> JSONResponse:
        """Whether every operator would answer; 503 where one would not."""
        is_ready = service.is_ready
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    @app.get("/v2/models/{model}", tags=["protocol"])
    async def model_metadata(model: str) -> dict[str, Any]:
        """An operator's inputs and outputs; sizes are known before a call of model files only."""
        served = service.operator(model)
        interface = served.versions[served.deployment.default].version.interface
        row = interface.variants[0] if interface.variants else ("float32",) * 99
        dtypes = [_PROTOCOL.get(dtype, dtype) for dtype in row]

        def tensors(parameters: Sequence[Parameter], start: int) -> list[dict[str, Any]]:
            return [
                {"name": each.name, "datatype": dtype, "shape": interface.shape_of(start + at)}
                for at, (each, dtype) in enumerate(zip(parameters, dtypes[start:], strict=False))
            ]

        return {
            "name": model,
            "versions": list(served.versions),
            "platform": "opkit",
            "inputs": tensors(interface.inputs, 0),
            "outputs": tensors(interface.outputs, len(interface.inputs)),
        }

    @app.get("/v2/models/{model}/ready", tags=["health"])
    async def model_ready(model: str) -> JSONResponse:
        """Whether an operator would answer; 503 where it would not."""
        is_ready = service.operator(model).is_ready
        return JSONResponse({"name": model, "ready": is_ready}, 200 if is_ready else 503)

    @app.get("/metrics", tags=["health"])
    def metrics() -> Response:
        """Everything that is counted, in Prometheus' text format."""
        return PlainTextResponse(service.metrics.text(), media_type=CONTENT_TYPE)


def _add_admin(app: FastAPI, service: Service) -> None:
    async def read(request: Request, kind: type[_Read]) -> _Read:
        headers = dict(request.scope["headers"])
        seconds = service.settings.http.body_seconds
        body = await read_body(request.receive, headers, _ADMIN_BODY_BYTES, seconds)
        try:
            return kind.model_validate_json(body)
        except ValidationError as err:
            raise UsageError(validation_text(err)) from err

    @app.get("/opkit/v1/report", tags=["deployment"])
    def report() -> dict[str, Any]:
        """Operators, versions, experiments and events, as the dashboard shows them."""
        return service.report()

    @app.get("/opkit/v1/operators/{operator}", tags=["deployment"])
    def operator_report(operator: str) -> dict[str, Any]:
        """One operator's part of the report."""
        return service.operator_report(operator)

    @app.get("/opkit/v1/operators/{operator}/history", tags=["deployment"])
    def history(operator: str) -> list[dict[str, Any]]:
        """Every state that was deployed, oldest first."""
        return [_revision(item) for item in service.history(operator)]

    path = "/opkit/v1/operators/{operator}"

    @app.post(f"{path}/versions", tags=["deployment"], openapi_extra=_documented(NewVersion))
    async def add_version(request: Request, operator: str) -> dict[str, Any]:
        """Add a version; it gets no calls but as the last one in line."""
        new = await read(request, NewVersion)
        version = await run_in_threadpool(
            service.add_version, operator, new.label, new.source, op=new.op, golden=new.golden
        )
        return {"version": version.label, "digest": version.digest}

    @app.post(f"{path}/deployment", tags=["deployment"], openapi_extra=_documented(Change))
    async def deploy(request: Request, operator: str) -> dict[str, Any]:
        """Change what is deployed; on the disk and in force when this is answered."""
        change = await read(request, Change)
        changes = change.model_dump(exclude_none=True, exclude={"reason"})
        if not changes:
            raise UsageError("the change changes nothing")
        return _revision(
            await run_in_threadpool(service.deploy, operator, changes, reason=change.reason)
        )

    @app.post(f"{path}/rollback", tags=["deployment"], openapi_extra=_documented(RollBack))
    async def roll_back(request: Request, operator: str) -> dict[str, Any]:
        """Deploy the state before, or that of a revision."""
        change = await read(request, RollBack)
        return _revision(
            await run_in_threadpool(
                service.roll_back, operator, to=change.revision, reason=change.reason
            )
        )


def _documented(kind: type[BaseModel]) -> dict[str, Any]:
    """Return what the OpenAPI document says of a body that the endpoint reads itself."""
    schema = kind.model_json_schema()
    for name, part in schema.pop("$defs", {}).items():
        schema = _inlined(schema, f"#/$defs/{name}", part)
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


def _inlined(value: Any, reference: str, part: Any) -> Any:
    if isinstance(value, dict):
        if value.get("$ref") == reference:
            return part
        return {key: _inlined(item, reference, part) for key, item in value.items()}
    if isinstance(value, list):
        return [_inlined(item, reference, part) for item in value]
    return value


def _add_pages(app: FastAPI, service: Service) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(_API_PAGE.read_text("utf-8"), headers=PAGE_HEADERS)

    @app.get("/dash", include_in_schema=False)
    async def dash() -> HTMLResponse:
        return HTMLResponse(dash_page(), headers=PAGE_HEADERS)

    @app.get("/api/state", include_in_schema=False)
    def state() -> dict[str, Any]:
        return {"service": service.report(), "files": [], "problem": ""}


def _revision(item: Revision) -> dict[str, Any]:
    return {
        "revision": item.revision,
        "deployment": item.deployment.to_json(),
        "reason": item.reason,
        "changed_at": item.changed_at,
        "copied_from": item.copied_from,
    }
