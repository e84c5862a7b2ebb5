"""What a service tells besides its answers: a structured log, and spans for OpenTelemetry."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from opkit import log
from opkit.errors import SetupError, UsageError, cannot_write
from opkit.service.settings import TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

__all__ = ["EventLog", "Tracing", "log_to"]

LOGGER = logging.getLogger("opkit.service")
_KEPT_EVENTS = 200
_LONGEST_TEXT = 500


class EventLog:
    """Things that happen seldom: deployments, breakers, workers; the last ones are kept."""

    def __init__(self) -> None:
        self._kept: deque[dict[str, Any]] = deque(maxlen=_KEPT_EVENTS)

    def tell(self, event: str, *, level: int = logging.INFO, **fields: Any) -> None:
        """Log an event with its fields."""
        short = {
            name: value[:_LONGEST_TEXT] if isinstance(value, str) else value
            for name, value in fields.items()
        }
        record = {
            "time": time.time(),
            "level": logging.getLevelName(level).lower(),
            "event": event,
            **short,
        }
        self._kept.append(record)
        LOGGER.log(level, event, extra={"opkit_record": record})
        # Python's levels are tens from debug on, those of the common log ones from 0 on.
        common = min(max(level // 10 - 1, 0), 3)
        log.write(common, "SERVICE", event, fields=short)

    def kept(self) -> list[dict[str, Any]]:
        """Return the last events, oldest first."""
        return list(self._kept)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        found = getattr(record, "opkit_record", None)
        if found is None:
            found = {
                "time": record.created,
                "level": record.levelname.lower(),
                "event": record.name,
                "message": record.getMessage(),
            }
            if record.exc_info:
                found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False, default=str)


def log_to(file: Path | None, *, level: int = logging.INFO) -> logging.Handler:
    """Send the log to a file, or to standard error, one JSON object a line.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        handler = logging.FileHandler(file) if file is not None else logging.StreamHandler()
    except OSError as err:
        raise cannot_write(str(file), err) from err
    handler.setFormatter(_JsonLines())
    for logger in (LOGGER, logging.getLogger("uvicorn.error")):
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
    return handler


class Tracing:
    """Spans of calls and their attempts; costs nothing where no traces are asked for."""

    def __init__(self, settings: TelemetrySettings) -> None:
        """Prepare.

        Raises:
            SetupError: OpenTelemetry, or its exporter, is not installed.
            UsageError: the file cannot be written.
        """
        self._provider: TracerProvider | None = None
        self._file: IO[str] | None = None
        if settings.traces is None:
            return
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
        except ImportError as err:
            raise SetupError(
                "telemetry.traces needs OpenTelemetry", help="pip install opentelemetry-sdk"
            ) from err
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "opkit"}),
            sampler=ParentBased(TraceIdRatioBased(settings.trace_rate)),
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter(settings.traces)))
        self._tracer = self._provider.get_tracer("opkit.service")

    @property
    def is_on(self) -> bool:
        """Whether spans go anywhere."""
        return self._provider is not None

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, Any], traceparent: str | None = None
    ) -> Iterator[Any]:
        """A span around the body; gives the span, to set more attributes on."""
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        context = None
        if traceparent is not None:
            context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
        with self._tracer.start_as_current_span(name, context, attributes=dict(attributes)) as span:
            yield span

    def close(self) -> None:
        """Send what waits."""
        if self._provider is not None:
            self._provider.shutdown()
        if self._file is not None:
            self._file.close()

    def _exporter(self, target: str) -> Any:
        if target != "otlp":
            from opentelemetry.sdk.trace.export import ConsoleSpanExporter

            try:
                self._file = Path(target).open("a", encoding="utf-8")  # noqa: SIM115
            except OSError as err:
                raise cannot_write(target, err) from err
            return ConsoleSpanExporter(out=self._file, formatter=_span_line)
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ImportError as err:
            raise SetupError(
                'telemetry.traces = "otlp" needs the exporter',
                help="pip install opentelemetry-exporter-otlp-proto-http",
            ) from err
        return OTLPSpanExporter()


def _span_line(span: ReadableSpan) -> str:
    text = span.to_json(indent=None)
    if text is None:
        raise UsageError("a span without text")
    return f"{text}\n"
