"""The cases of `opkit check`, in a process of their own: a kernel may end the one it runs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opkit.errors import HostRefusal, OpkitError
from opkit.executor import NOT_OURS, LocalExecutor, Lost, Work, folder_of
from opkit.sanitizer import (
    CheckedCase,
    CheckReport,
    CheckSettings,
    Finding,
    check_case,
    check_report,
    lost_case,
    retold_case,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opkit.cli.parts.cases import OpenProject
    from opkit.schema import OpSpec
    from opkit.testing import Case

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


@dataclass(frozen=True)
class _Refused:
    """What the process gives of a case that the operator's host code does not take."""

    message: str
    help: str | None


def run_checks(
    opened: OpenProject,
    cases: Sequence[Case],
    settings: CheckSettings,
    timeout_seconds: float,
    progress: Callable[[str], None],
    *,
    others: bool,
) -> tuple[CheckReport, Mapping[str, OpkitError]]:
    """Launch cases under the checks; return what they found, and the cases that were refused.

    Those are cases that an OpDef gives and the operator's host code does not take.

    Args:
        timeout_seconds: how long a launch may go on without progress; 0: for ever.
        progress: called with a case's name after it.
        others: run other cases in place of those that are refused.
    Raises:
        UsageError: there are no cases, or the host code takes none.
        KernelFault: a launch ended for a reason that is opkit's and not the kernel's.
    """
    from opkit.testing import hidden_files

    artifact, project = opened.build(), opened.project
    operators = tuple((spec, project.kernel_source(spec)) for spec in project.operators)
    setup = _Setup(operators, project.root, artifact.chip.name, settings, timeout_seconds)
    # What never ends, and cannot be ended from inside.
    limit = 120.0 + 10 * timeout_seconds if timeout_seconds else 0.0
    folders = {"artifact": folder_of(artifact.folder)}
    hidden = hidden_files(project.root, project.package_dir, cases)
    work = Work(
        *(_begin, setup, folders), seconds=limit, answers=CheckedCase | _Refused, hidden=hidden
    )
    refused: dict[str, OpkitError] = {}
    checked: list[CheckedCase] = []
    with LocalExecutor(1).open(work) as crew:
        for some in opened.rounds(cases, refused) if others else (tuple(cases),):
            found: dict[int, CheckedCase] = {}
            for index, result in crew.stream(some):
                name = some[index].name
                if isinstance(result, _Refused):
                    refused[name] = HostRefusal(result.message, help=result.help)
                elif isinstance(result, Lost):
                    found[index] = lost_case(name, str(result))
                else:
                    # Kernels run where this comes from, and may have written it themselves.
                    told = retold_case(result, name)
                    found[index] = told or lost_case(name, str(Lost(NOT_OURS, 1)))
                progress(name)
            checked += [found[index] for index in sorted(found)]
    if refused and not checked:
        raise opened.all_refused(refused)
    return check_report(project.name, project.root, checked, settings=settings), refused


def _begin(setup: _Setup, folders: Mapping[str, Path]) -> Callable[[Case], CheckedCase | _Refused]:
    from opkit import runtime
    from opkit.sanitizer import allocations, unwritten_outputs, written_inputs
    from opkit.testing import is_refusal, launch_of
    from opkit.toolchain import allocating_names, operator_images

    runtime.configure(setup.chip, allow_raw_writes=setup.settings.allow_raw_writes)
    library = runtime.open(folders["artifact"])
    operators = {spec.op: (spec, source) for spec, source in setup.operators}
    refusals: list[OpkitError] = []

    taken = {
        (one.op, one.dtypes): allocating_names(one.image.library.read_bytes())
        for one in operator_images(folders["artifact"])
    }

    def allocated(case: Case, spec: OpSpec, source: Path) -> tuple[Finding, ...]:
        names = taken.get((case.op, tuple(dtype.name for dtype in case.dtypes)), ())
        return allocations(names, kernel=spec.name, source=source)

    def launch(case: Case) -> Sequence[Finding]:
        spec, source = operators[case.op]
        ready = launch_of(case, spec)

        def run() -> Sequence[NDArray[Any]]:
            return ready(library)

        def run_poisoned() -> Sequence[NDArray[Any]]:
            runtime.configure(setup.chip, poison=True)
            try:
                return run()
            finally:
                runtime.configure(setup.chip, poison=False)

        try:
            outputs = run()
        except OpkitError as error:
            if not is_refusal(case, spec, error):
                raise
            refusals.append(error)
            return ()
        found = allocated(case, spec, source) if "apicheck" in setup.settings.tools else ()
        changed = runtime.changed_inputs() if "memcheck" in setup.settings.tools else []
        found += written_inputs(changed, kernel=spec.name, source=source)
        if "initcheck" not in setup.settings.tools:
            return found
        names = [tensor.name for tensor in spec.outputs]
        if len(names) != len(outputs):
            names = [f"output {index}" for index in range(len(outputs))]
        unwritten = unwritten_outputs(names, outputs, run_poisoned, kernel=spec.name, source=source)
        return (*found, *unwritten)

    def check(case: Case) -> CheckedCase | _Refused:
        refusals.clear()
        with runtime.time_limit(setup.timeout_seconds):
            checked = check_case(case, setup.root, launch, settings=setup.settings)
        return _Refused(refusals[0].message, refusals[0].help) if refusals else checked

    return check
