"""A service's state as JSON, for the dashboard and for scripts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opkit.service.energy import MODEL
from opkit.service.metrics import REFERENCE, Meter, Metrics, quantile
from opkit.service.serving import ServedOperator

__all__ = ["operator_report", "service_report"]

_CHOICES_SHOWN = 20


def service_report(
    operators: Iterable[ServedOperator],
    metrics: Metrics,
    *,
    started_at: float,
    is_ready: bool,
    isolation: str,
    events: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return operators, versions, experiments, events; times in us, sizes in bytes."""
    return {
        "time": time.time(),
        "started_at": started_at,
        "ready": is_ready,
        "isolation": isolation,
        "energy_model": MODEL,
        "operators": [operator_report(each, metrics) for each in operators],
        "events": events,
        "counters": [
            {"event": name, "operator": operator, "count": count}
            for (name, operator), count in sorted(metrics.counters.items())
        ],
    }


def operator_report(served: ServedOperator, metrics: Metrics) -> dict[str, Any]:
    """Return one operator's part of the report."""
    deployment = served.deployment
    rest = 1 - sum(deployment.shares.values())
    versions = []
    for label, item in served.versions.items():
        version, runner, breaker = item.version, item.runner, item.breaker
        versions.append(
            {
                "version": label,
                "digest": version.digest,
                "source": version.source,
                "op": version.interface.op,
                "share": rest if label == deployment.default else deployment.shares.get(label, 0.0),
                "is_default": label == deployment.default,
                "retired": label in deployment.retired,
                "breaker": breaker.state.value,
                "breaker_reason": breaker.reason,
                "breaker_seconds_left": breaker.seconds_left,
                "breaker_times_opened": breaker.times_opened,
                "ready": runner.is_ready,
                "problem": runner.problem,
                "restarts": runner.restarts,
                "memory_bytes": runner.memory_bytes,
                **_figures(metrics.of(served.name, label)),
            }
        )
    interface = next(iter(served.versions.values())).version.interface
    checks = served.settings.checks
    reference = served.reference
    return {
        "operator": served.name,
        "ready": served.is_ready,
        "inputs": [vars(item) for item in interface.inputs],
        "outputs": [vars(item) for item in interface.outputs],
        "variants": interface.variants,
        "deployment": deployment.to_json(),
        "checks": {"sample_rate": checks.sample_rate, "first_calls": checks.first_calls},
        "versions": versions,
        "reference": {
            "available": reference is not None,
            "ready": reference is not None and reference.is_ready,
            "problem": reference.problem if reference is not None else "no version has brought one",
            **_figures(metrics.of(served.name, REFERENCE)),
        },
        "experiment": served.experiment.to_json() if served.experiment.is_running else None,
        "shadow": {label: report.to_json() for label, report in served.shadows.items()},
        "choice": dict(list(served.last_choice.items())[-_CHOICES_SHOWN:]),
    }


def _figures(meters: Iterable[tuple[str, Meter]]) -> dict[str, Any]:
    rows = sorted(meters)
    failures: dict[str, int] = {}
    for _, meter in rows:
        for kind, count in list(meter.outcomes.items()):
            if kind != "ok":
                failures[kind] = failures.get(kind, 0) + count
    return {
        "answers": sum(meter.answers for _, meter in rows),
        "failures": failures,
        "checked": sum(meter.checked for _, meter in rows),
        "unchecked": sum(meter.unchecked for _, meter in rows),
        **_times([value for _, meter in rows for value in list(meter.recent)]),
        "device_us": sum(meter.device_us for _, meter in rows),
        "energy_uj": sum(meter.energy_uj for _, meter in rows),
        "shapes": [
            {
                "shapes": bucket,
                "answers": meter.answers,
                "failures": sum(meter.outcomes.values()) - meter.answers,
                **_times(list(meter.recent)),
                "device_us": meter.device_us / meter.answers if meter.answers else 0.0,
                "energy_uj": meter.energy_uj / meter.answers if meter.answers else 0.0,
            }
            for bucket, meter in rows
        ],
    }


def _times(recent: list[float]) -> dict[str, float | None]:
    found = {}
    for name, share in (("p50_us", 0.5), ("p99_us", 0.99)):
        value = quantile(recent, share)
        found[name] = None if value is None else 1e6 * value
    return found
