"""The cases of `opkit check`, in a process of their own: a kernel may end the one it runs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opkit.executor import LocalExecutor, Lost, Work, folder_of
from opkit.sanitizer import (
    CheckedCase,
    CheckReport,
    CheckSettings,
    Finding,
    check_case,
    check_report,
    lost_case,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opkit.schema import OpSpec
    from opkit.testing import Case
    from opkit.toolchain import Artifact

__all__ = ["run_checks"]


@dataclass(frozen=True)
class _Setup:
    """What the process needs before it can check cases."""

    operators: tuple[tuple[OpSpec, Path], ...]
    """Each with its kernel's source."""
    root: Path
    chip: str
    settings: CheckSettings
    timeout_seconds: float


def run_checks(
    artifact: Artifact,
    cases: Sequence[Case],
    settings: CheckSettings,
    timeout_seconds: float,
    progress: Callable[[str], None],
) -> CheckReport:
    """Launch cases under the checks and return what they found.

    Args:
        timeout_seconds: how long a launch may go on without progress; 0: for ever.
        progress: called with a case's name after it.
    Raises:
        UsageError: there are no cases.
        KernelFault: a launch ended for a reason that is opkit's and not the kernel's.
    """
    project = artifact.project
    operators = tuple((spec, project.kernel_source(spec)) for spec in project.operators)
    setup = _Setup(operators, project.root, artifact.chip.name, settings, timeout_seconds)
    # What never ends, and cannot be ended from inside.
    limit = 120.0 + 10 * timeout_seconds if timeout_seconds else 0.0
    work = Work(_begin, setup, {"artifact": folder_of(artifact.folder)}, seconds=limit)
    checked: dict[int, CheckedCase] = {}
    with LocalExecutor(1).open(work) as crew:
        for index, result in crew.stream(cases):
            name = cases[index].name
            checked[index] = lost_case(name, str(result)) if isinstance(result, Lost) else result
            progress(name)
    ordered = [checked[index] for index in range(len(cases))]
    return check_report(project.name, project.root, ordered, settings=settings)


def _begin(setup: _Setup, folders: Mapping[str, Path]) -> Callable[[Case], CheckedCase]:
    from opkit import runtime
    from opkit.sanitizer import unwritten_outputs
    from opkit.testing import make_inputs

    runtime.configure(setup.chip)
    library = runtime.open(folders["artifact"])
    operators = {spec.op: (spec, source) for spec, source in setup.operators}

    def launch(case: Case) -> Sequence[Finding]:
        inputs = make_inputs(case)
        dtypes = [row.name for row in case.dtypes[: len(inputs)]]

        def run() -> Sequence[NDArray[Any]]:
            return library.run(case.op, inputs, dict(case.attrs), dtypes=dtypes)

        def run_poisoned() -> Sequence[NDArray[Any]]:
            runtime.configure(setup.chip, poison=True)
            try:
                return run()
            finally:
                runtime.configure(setup.chip, poison=False)

        spec, source = operators[case.op]
        outputs = run()
        if "initcheck" not in setup.settings.tools:
            return ()
        names = [tensor.name for tensor in spec.outputs]
        if len(names) != len(outputs):
            names = [f"output {index}" for index in range(len(outputs))]
        return unwritten_outputs(names, outputs, run_poisoned, kernel=spec.name, source=source)

    def check(case: Case) -> CheckedCase:
        with runtime.time_limit(setup.timeout_seconds):
            return check_case(case, setup.root, launch, settings=setup.settings)

    return check
