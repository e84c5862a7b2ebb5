"""`Service`: operators behind their names, in this process or for whoever asks over HTTP."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy.typing as npt

from opkit.errors import OpkitError, UsageError
from opkit.service.binding import bind
from opkit.service.deployment import Deployment
from opkit.service.interface import Interface
from opkit.service.metrics import REFERENCE, Gauges, Metrics
from opkit.service.report import operator_report, service_report
from opkit.service.serving import (
    Answer,
    Background,
    Breaker,
    BreakerEvent,
    BreakerState,
    Modelling,
    Request,
    ServedOperator,
    ServedVersion,
    attributes_of,
)
from opkit.service.settings import (
    NAME,
    LimitSettings,
    OperatorSettings,
    ServiceSettings,
    VersionSettings,
    load_settings,
)
from opkit.service.sources import GOLDEN_MODEL, MODEL, complete, stage
from opkit.service.store import Revision, Store, Version
from opkit.service.telemetry import EventLog, Tracing
from opkit.service.workers import (
    Inputs,
    LocalRunner,
    Modelled,
    Runner,
    Supervisor,
    WorkerPool,
    WorkerProcess,
    load,
    load_reference,
)

__all__ = ["Service"]

ArrayOrList = npt.ArrayLike | Sequence[npt.ArrayLike] | None


class Service:
    """Operators in versions, each call answered by the one that its deployment says.

    with Service.load(Path("service.toml")) as service:
        (y,) = service.call("gelu", [x])
    """

    def __init__(self, settings: ServiceSettings, *, base: Path | None = None) -> None:
        """Open the store, add the configured versions, and begin to load what is deployed.

        What the store has deployed counts; a configured deployment only where there is none yet.

        Args:
            base: what sources that are relative paths start from; the working directory by default.
        Raises:
            UsageError: the configuration asks for something that is not there, or does not load.
            SetupError: the store is in use, damaged, or from a newer opkit.
        """
        self.settings = settings
        self.log = EventLog()
        self.metrics = Metrics(self._gauges)
        self.started_at = time.time()
        self._base = base or Path.cwd()
        self._changing = threading.Lock()
        self._served: dict[str, ServedOperator] = {}
        self.tracing = Tracing(settings.telemetry)
        self._store = Store(settings.store)
        self._background = Background()
        self._supervisor: Supervisor | None = None
        self._modelling: Modelling | None = None
        if settings.isolation == "process":
            self._supervisor = Supervisor()
            self._modelling = Modelling(Background(), self._start_modeller, self._keep_modelled)
        try:
            configured = {operator.name: operator for operator in settings.operators}
            for operator in settings.operators:
                self._add_configured(operator)
            for name in dict.fromkeys((*configured, *self._store.operators())):
                self._start(configured.get(name) or OperatorSettings(name=name))
        except BaseException:
            self.close()
            raise

    @classmethod
    def load(cls, path: Path) -> Service:
        """Return the service of a configuration file.

        Raises:
            UsageError, SetupError: as `__init__` and `load_settings`.
        """
        return cls(load_settings(path), base=path.absolute().parent)

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers and let go of the store; calls that are under way fail."""
        self._background.close()
        if self._modelling is not None:
            self._modelling.background.close()
        if self._supervisor is not None:
            self._supervisor.close()
        self._store.close()
        self.tracing.close()

    # Calls.

    @property
    def operators(self) -> tuple[str, ...]:
        """The names that can be called."""
        return tuple(self._served)

    def operator(self, name: str) -> ServedOperator:
        """Return what serves an operator.

        Raises:
            UsageError: there is no such operator.
        """
        found = self._served.get(name)
        if found is None:
            known = ", ".join(self._served) or "none"
            raise UsageError(f'there is no operator "{name[:64]}"', help=f"there is {known}")
        return found

    def call(
        self,
        operator: str,
        inputs: Sequence[ArrayOrList],
        attributes: Mapping[str, object] | None = None,
        *,
        dtypes: Sequence[str | None] | None = None,
        caller: str | None = None,
        version: str | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """Return the answer to one call.

        Args:
            inputs: arrays in the operator's order; None for one left out, a list for a dynamic one.
            dtypes: names where NumPy's own do not say it: bfloat16 is carried as uint16.
            caller: who calls, for pins and shares by caller.
            version: the label, or the beginning of the digest, of the version to try first.
            seconds: how long all attempts together may take; the operator's limit by default.
        Raises:
            UsageError: no such operator or version, or the inputs do not fit.
            BusyError: there is no room or no time for the call now.
            OperatorError: no version answers, and there is no reference.
        """
        return self.call_bound(
            operator,
            bind(operator, inputs, dtypes),
            attributes_of(attributes),
            caller=caller,
            version=version,
            seconds=seconds,
        )

    def call_bound(
        self,
        operator: str,
        inputs: Inputs,
        attributes: Mapping[str, Any],
        *,
        caller: str | None = None,
        version: str | None = None,
        seconds: float | None = None,
        traceparent: str | None = None,
    ) -> Answer:
        """As `call`, for inputs with their data types."""
        served = self.operator(operator)
        limits = served.settings.limits
        size = sum(
            array.nbytes
            for value in inputs
            if value is not None
            for array, _ in (value if isinstance(value, list) else (value,))
        )
        if size > limits.tensor_bytes:
            raise UsageError(
                f"{operator}: the inputs have {size} bytes, more than {limits.tensor_bytes}"
            )
        most = limits.call_seconds
        request = Request(
            inputs, attributes, most if seconds is None else min(seconds, most), caller, version
        )
        if not self.tracing.is_on:
            return served.call(request)
        named = {"opkit.operator": operator, "opkit.caller": caller or ""}
        with self.tracing.span("opkit.call", named, traceparent) as span:
            answer = served.call(request)
            span.set_attribute("opkit.version", answer.version)
            span.set_attribute("opkit.reason", answer.reason)
            span.set_attribute("opkit.checked", answer.checked)
            for attempt in answer.attempts:
                fields = {"version": attempt.version, "kind": attempt.kind}
                span.add_event("opkit.failed_attempt", {**fields, "message": attempt.message})
            return answer

    # What is deployed.

    def add_version(
        self,
        operator: str,
        label: str,
        source: str,
        *,
        op: str | None = None,
        golden: str | None = None,
        seconds: float = 60.0,
    ) -> Version:
        """Keep a version and load it; it gets no calls but as the last one in line.

        Raises:
            UsageError: the source or the label does not fit, or the version does not load.
        """
        with self._changing:
            return self._add_version(operator, label, source, op, golden, seconds)

    def deploy(
        self,
        operator: str,
        changes: Mapping[str, Any],
        *,
        reason: str = "",
        seconds: float = 60.0,
    ) -> Revision:
        """Change fields of an operator's deployment; on the disk and in force when this returns.

        Args:
            changes: fields of `Deployment`, such as {"default": "v2", "shares": {}}.
            seconds: how long to wait for a version that has not loaded yet.
        Raises:
            UsageError: the change does not fit, or a version that would get calls does not load.
        """
        with self._changing:
            served = self.operator(operator)
            deployment = served.deployment.changed(changes, served.versions)
            self._refuse_unless_loaded(served, deployment, seconds)
            return self._deploy(served, deployment, reason or "changed", None)

    def roll_back(self, operator: str, *, to: int | None = None, reason: str = "") -> Revision:
        """Deploy the state before the one that counts now, or that of a revision.

        Rolling back again goes one further back. Versions stay loaded, so this waits for nothing.

        Raises:
            UsageError: there is no such revision, or none before.
        """
        with self._changing:
            served = self.operator(operator)
            history = {item.revision: item for item in self._store.history(operator)}
            now = history[max(history)]
            target = now
            if to is None:
                at = now.copied_from or now.revision
                while at > 1 and target.deployment == now.deployment:
                    at -= 1
                    target = history[at]
                if target.deployment == now.deployment:
                    raise UsageError(f"{operator}: there is no earlier state to roll back to")
            elif to in history:
                target = history[to]
            else:
                raise UsageError(f"{operator} has no revision {to}")
            text = f"rolled back to revision {target.revision}"
            text = f"{text}: {reason}" if reason else text
            return self._deploy(served, target.deployment, text, target.revision)

    def history(self, operator: str) -> list[Revision]:
        """Return every state that was deployed of an operator, oldest first."""
        self.operator(operator)
        return self._store.history(operator)

    # What it is like.

    @property
    def is_ready(self) -> bool:
        """Whether every operator would answer a call now."""
        return all(served.is_ready for served in self._served.values())

    def wait_until_ready(self, seconds: float = 60.0) -> bool:
        """Wait until every deployed version and reference has loaded, or cannot be."""
        deadline = time.monotonic() + seconds
        for runner in self._runners():
            if isinstance(runner, WorkerPool):
                runner.wait_until_ready(max(0.0, deadline - time.monotonic()))
        return self.is_ready

    def settle(self) -> None:
        """Wait until what nobody waits for is done; for scripts and tests."""
        self._background.settle()
        if self._modelling is not None:
            self._modelling.background.settle()

    def report(self) -> dict[str, Any]:
        """Return what a page shows of the service, as JSON has it."""
        return service_report(
            [self.operator(name) for name in self.operators],
            self.metrics,
            started_at=self.started_at,
            is_ready=self.is_ready,
            isolation=self.settings.isolation,
            events=self.log.kept(),
        )

    def operator_report(self, operator: str) -> dict[str, Any]:
        """Return what a page shows of one operator, as JSON has it."""
        return operator_report(self.operator(operator), self.metrics)

    def _add_configured(self, operator: OperatorSettings) -> None:
        known = {item.label for item in self._store.versions(operator.name)}
        for label, version in operator.versions.items():
            try:
                self._keep(operator.name, label, version, operator.limits)
            except OpkitError as error:
                if label not in known:
                    raise
                # What was kept is served, whatever has become of the place that it came from.
                self.log.tell(
                    "source_changed",
                    level=logging.WARNING,
                    operator=operator.name,
                    version=label,
                    message=error.message,
                )

    def _keep(
        self, operator: str, label: str, version: VersionSettings, limits: LimitSettings
    ) -> Version:
        if label == REFERENCE or re.fullmatch(NAME, label) is None:
            raise UsageError(
                f"{label[:80]!r} is no label for a version",
                help=f'letters, digits, "_", "." and "-", 64 at most, and not "{REFERENCE}"',
            )

        def fill(folder: Path) -> tuple[str, Interface, bool]:
            staged = stage(
                version.source, folder, base=self._base, op=version.op, golden=version.golden
            )
            interface = staged.interface
            if interface is None:
                try:
                    interface = self._describe(folder, limits)
                    if staged.kind == "model":
                        complete(folder, interface)
                        if staged.has_reference:
                            self._describe(folder, limits, reference=True)
                except OpkitError as error:
                    raise self._about_source(error, folder, version) from error
            return staged.kind, interface, staged.has_reference

        return self._store.add_version(operator, label, source=version.source, fill=fill)

    def _describe(
        self, folder: Path, limits: LimitSettings, *, reference: bool = False
    ) -> Interface:
        """Return what a version, or its reference, takes and returns, by loading its files.

        In a process of its own, where versions run in such.
        """
        if self._supervisor is None:
            if reference:
                return load_reference(folder).interface
            return load(folder, threads=limits.threads).interface
        worker = WorkerProcess(folder, limits, reference=reference)
        try:
            while not worker.greeted():
                if worker.problem:
                    message, _, help = worker.problem.partition("\n  help: ")
                    raise UsageError(message, help=help or None)
                time.sleep(0.02)
            assert worker.interface is not None
            return worker.interface
        finally:
            worker.close()

    @staticmethod
    def _about_source(error: OpkitError, folder: Path, version: VersionSettings) -> UsageError:
        """Return an error of a copied file as one of the file that the user has named."""
        text = error.message
        for name, source in ((MODEL, version.source), (GOLDEN_MODEL, version.golden)):
            text = text.replace(str(folder / name), str(source))
        if not text.startswith(version.source):
            text = f"{version.source} does not load: {text}"
        return UsageError(text, help=error.help)

    def _start(self, settings: OperatorSettings) -> None:
        name = settings.name
        versions = self._store.versions(name)
        if not versions:
            raise UsageError(f"{name} has no versions", help="add one under its versions")
        served = ServedOperator(
            settings,
            metrics=self.metrics,
            background=self._background,
            modelling=self._modelling,
        )
        labels = [version.label for version in versions]
        order = [label for label in settings.versions if label in labels]
        by_label = {version.label: version for version in versions}
        for label in dict.fromkeys((*order, *labels)):
            self._load(served, by_label[label])
        history = self._store.history(name)
        if history:
            deployment = history[-1].deployment
        else:
            deployment = Deployment.first(settings.deployment, list(served.versions))
            self._store.deploy(name, deployment, "the configuration")
        served.use(deployment)
        self._served[name] = served

    def _load(self, served: ServedOperator, version: Version) -> ServedVersion:
        settings = served.settings
        runner = self._runner(version.folder, settings.limits, reference=False)

        def changed(event: BreakerEvent) -> None:
            self._tell_breaker(served.name, version.label, event)

        found = ServedVersion(version, runner, Breaker(settings.breaker, changed=changed))
        found.modelled.update(self._store.modelled(version.digest, version.interface.op))
        found.asked.update(found.modelled)
        served.versions[version.label] = found
        if served.reference is None and version.has_reference:
            served.reference = self._runner(version.folder, settings.limits, reference=True)
        return found

    def _runner(self, folder: Path, limits: LimitSettings, *, reference: bool) -> Runner:
        if self._supervisor is None:
            return LocalRunner(folder, limits, reference=reference)
        pool = WorkerPool(folder, limits, reference=reference)
        self._supervisor.add(pool)
        return pool

    def _add_version(
        self,
        operator: str,
        label: str,
        source: str,
        op: str | None,
        golden: str | None,
        seconds: float,
    ) -> Version:
        served = self._served.get(operator)
        settings = served.settings if served else OperatorSettings(name=operator)
        wanted = VersionSettings(source=source, op=op, golden=golden)
        version = self._keep(operator, label, wanted, settings.limits)
        if served is None:
            self._start(settings)
        elif label not in served.versions:
            found = self._load(served, version)
            if isinstance(found.runner, WorkerPool) and not found.runner.wait_until_ready(seconds):
                problem = found.runner.problem or f"it has not loaded in {seconds:g} seconds"
                self.log.tell("version_broken", operator=operator, version=label, message=problem)
            served.use(served.deployment)
        self.log.tell("version_added", operator=operator, version=label, digest=version.digest)
        return version

    def _refuse_unless_loaded(
        self, served: ServedOperator, deployment: Deployment, seconds: float
    ) -> None:
        for label in (deployment.default, *deployment.shares, *deployment.pins.values()):
            runner = served.versions[label].runner
            if isinstance(runner, WorkerPool) and not runner.wait_until_ready(seconds):
                problem = runner.problem or f"it has not loaded in {seconds:g} seconds"
                raise UsageError(f"{served.name} {label} does not load: {problem}")

    def _deploy(
        self, served: ServedOperator, deployment: Deployment, reason: str, copied_from: int | None
    ) -> Revision:
        revision = self._store.deploy(served.name, deployment, reason, copied_from=copied_from)
        served.use(deployment)
        self.log.tell(
            "deployed",
            operator=served.name,
            revision=revision.revision,
            reason=reason,
            default=deployment.default,
            shares=dict(deployment.shares),
        )
        return revision

    def _start_modeller(self, settings: OperatorSettings, version: Version) -> Runner:
        limits = settings.limits.model_copy(update={"workers": 1})
        runner = self._runner(version.folder, limits, reference=False)
        if isinstance(runner, WorkerPool):
            runner.wait_until_ready(60.0)
        return runner

    def _keep_modelled(self, version: Version, signature: str, modelled: Modelled) -> None:
        self._store.keep_modelled(version.digest, version.interface.op, signature, modelled)

    def _tell_breaker(self, operator: str, label: str, event: BreakerEvent) -> None:
        is_bad = event.after is BreakerState.OPEN
        self.metrics.count(f"breaker_{event.after.value}", operator)
        self.log.tell(
            f"breaker_{event.after.value}",
            level=logging.WARNING if is_bad else logging.INFO,
            operator=operator,
            version=label,
            reason=event.reason,
            open_seconds=event.open_seconds if is_bad else 0,
        )

    def _runners(self) -> Iterator[Runner]:
        for served in self._served.values():
            for version in served.versions.values():
                yield version.runner
            if served.reference is not None:
                yield served.reference

    def _gauges(self) -> Iterator[Gauges]:
        for served in self._served.values():
            deployment = served.deployment
            shares = {**deployment.shares}
            shares[deployment.default] = 1 - sum(deployment.shares.values())
            for label, item in served.versions.items():
                runner = item.runner
                yield Gauges(
                    served.name,
                    label,
                    runner.memory_bytes,
                    not item.breaker.is_closed,
                    runner.is_ready,
                    runner.restarts,
                    shares.get(label, 0.0),
                )
