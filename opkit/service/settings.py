"""What a service is told in its configuration, a TOML file: every field, its unit, its default."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from opkit.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

__all__ = [
    "BreakerSettings",
    "CheckSettings",
    "DeploymentSettings",
    "HttpSettings",
    "LimitSettings",
    "OperatorSettings",
    "ServiceSettings",
    "TelemetrySettings",
    "VersionSettings",
    "load_settings",
]

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
MEBIBYTE = 1 << 20


class _Settings(BaseModel):
    """Unknown keys are errors: a misspelt limit is no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class VersionSettings(_Settings):
    """Where one version comes from."""

    source: str
    """A project's folder (built), an artifact folder, a wheel, `package:NAME` of an installed one,
    a tensor program, `FILE.py` or `FILE.py:FUNCTION`, or a model file; relative to the
    configuration."""
    op: str | None = None
    """Which operator of it, by its OpDef or snake_case name; its first by default."""
    golden: str | None = None
    """`FILE.py` or `FILE.py:FUNCTION` with the reference, or for a model file another model file;
    the project's golden.py by default."""


class DeploymentSettings(_Settings):
    """Which version answers which call."""

    default: Name | None = None
    """The version that answers; the first one of `versions` by default."""
    shares: dict[Name, Share] = Field(default_factory=dict)
    """Shares of the calls for other versions, such as a canary's 0.1; the default has the rest."""
    by: Literal["caller", "request"] = "caller"
    """What a share is of: callers, each of whom stays with a version, or single requests."""
    pins: dict[str, Name] = Field(default_factory=dict)
    """Callers that always have a version."""
    shadow: dict[Name, Share] = Field(default_factory=dict)
    """Versions that get a copy of a share of the calls, whose results nobody sees."""
    choice: Literal["off", "modelled", "measured"] = "off"
    """Whether the fastest version of the call's shapes is taken in place of the default."""

    @model_validator(mode="after")
    def _shares_fit(self) -> DeploymentSettings:
        if sum(self.shares.values()) > 1 + 1e-9:
            raise ValueError("the shares come to more than 1")
        return self


class CheckSettings(_Settings):
    """How answers are held against the reference before they go out."""

    sample_rate: Share = 0.02
    """Share of a version's answers that are checked: one of each 1 / sample_rate in a row."""
    first_calls: Annotated[int, Field(ge=0, le=1000)] = 2
    """Calls that are checked for each version and each combination of shapes and data types."""
    standard: str = "conditioned"
    """The precision standard, as in `opkit test --standard`; not for model files."""
    tolerance: Annotated[float, Field(gt=0)] | None = None
    """How far an element may be off, as part of the largest magnitude in its output, in place of
    the standard; 0.05 for model files."""


class BreakerSettings(_Settings):
    """When a version is taken out, and how it comes back."""

    failures: Annotated[int, Field(ge=1)] = 3
    """Failed attempts among the last `window` that open the breaker; one wrong answer does, and one
    crash, hang or process that fills memory."""
    window: Annotated[int, Field(ge=1)] = 20
    open_seconds: Seconds = 5.0
    """How long it stays out at first; twofold when its trial calls fail or it fails soon again."""
    longest_seconds: Seconds = 300.0
    trials: Annotated[int, Field(ge=1)] = 3
    """Trial calls, each checked, that have to be right in a row before it is back."""


class LimitSettings(_Settings):
    """What calls of an operator may take."""

    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Worker processes of each version."""
    attempt_seconds: Seconds = 5.0
    """A version that takes longer for a call hangs: its process is ended."""
    call_seconds: Seconds = 30.0
    """All attempts of a call together."""
    queue: Annotated[int, Field(ge=1)] = 64
    """Calls of this operator at a time, waiting ones included; more are refused."""
    memory_bytes: Annotated[int, Field(ge=64 * MEBIBYTE)] = 1024 * MEBIBYTE
    """What a worker process may use above what it has after loading."""
    tensor_bytes: Annotated[int, Field(ge=1)] = 256 * MEBIBYTE
    """All tensors of a call together."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads of the emulated device in each worker."""


class OperatorSettings(_Settings):
    """One operator or model."""

    name: Name
    versions: dict[Name, VersionSettings] = Field(default_factory=dict)
    """By label; the order is that in which calls go on when a version fails."""
    deployment: DeploymentSettings = DeploymentSettings()
    checks: CheckSettings = CheckSettings()
    breaker: BreakerSettings = BreakerSettings()
    limits: LimitSettings = LimitSettings()


class HttpSettings(_Settings):
    """The door."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    tokens: Path | None = None
    """A file of lines `ROLE TOKEN`, ROLE `call` or `admin`; needed on other than loopback."""
    body_bytes: Annotated[int, Field(ge=1024)] = 64 * MEBIBYTE
    """Most bytes of a request; longer ones are refused with 413."""
    body_seconds: Seconds = 10.0
    """How long a request may take to arrive; slower ones are refused with 408."""
    queue: Annotated[int, Field(ge=1)] = 128
    """Requests for inference at a time; more are refused with 429."""
    stop_seconds: Seconds = 10.0
    """How long calls that are under way may still take when the service is told to stop."""


class TelemetrySettings(_Settings):
    """What goes out besides answers; metrics are always at /metrics."""

    traces: str | None = None
    """`otlp` (needs opentelemetry-exporter-otlp), or a file for spans, one JSON object a line."""
    trace_rate: Share = 1.0
    """Share of the calls that are traced, where a caller's `traceparent` does not say."""
    log: Path | None = None
    """A file for the log, one JSON object a line; standard error by default."""


class ServiceSettings(_Settings):
    """A whole configuration."""

    store: Path = Path("store")
    """Folder of the versions and of what is deployed; relative to the configuration."""
    isolation: Literal["process", "none"] = "process"
    """`none`: versions run in the service's own process; faster, and a crash ends it."""
    operators: tuple[OperatorSettings, ...] = ()
    http: HttpSettings = HttpSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @model_validator(mode="after")
    def _names_differ(self) -> ServiceSettings:
        names = [operator.name for operator in self.operators]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two operators are called {twice[0]}")
        return self


def load_settings(path: Path) -> ServiceSettings:
    """Return the configuration in a file, its paths absolute.

    Raises:
        UsageError: it cannot be read, is no TOML, or says something that is no setting.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as err:
        raise UsageError(f"{path}: cannot be read: {err}") from err
    except tomllib.TOMLDecodeError as err:
        raise UsageError(f"{path}: not TOML: {err}") from err
    try:
        settings = ServiceSettings.model_validate(document)
    except ValidationError as err:
        raise UsageError(
            f"{path}: {validation_text(err)}", help="docs/service.md lists the settings"
        ) from err
    folder = path.absolute().parent
    http = settings.http
    if http.tokens is not None:
        http = http.model_copy(update={"tokens": folder / http.tokens})
    telemetry = settings.telemetry
    if telemetry.log is not None:
        telemetry = telemetry.model_copy(update={"log": folder / telemetry.log})
    if telemetry.traces not in (None, "otlp"):
        traces = str(folder / str(telemetry.traces))
        telemetry = telemetry.model_copy(update={"traces": traces})
    changed = {"store": folder / settings.store, "http": http, "telemetry": telemetry}
    return settings.model_copy(update=changed)


def validation_text(error: ValidationError) -> str:
    """Return what pydantic found, one line an error: where, what, with which value."""
    lines = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"])
        given = item.get("input")
        shown = f" (it is {given!r:.60})" if isinstance(given, (str, int, float, bool)) else ""
        lines.append(f"{where}: {item['msg']}{shown}" if where else f"{item['msg']}{shown}")
    return "; ".join(lines)
