"""One candidate against one task: built, launched, compared, timed, checked.

    sources ─► sandbox: build ─► artifact ─► sandbox: launches ─► outputs, times, findings
    golden  ─► sandbox (unless opkit wrote it of formulas) ─► references
                                              here: inputs, comparison, verdict, score

Each launch has inputs of its own, drawn from what is in the candidate: results that were kept, or
written down beforehand, are results of other inputs. The largest case and some small ones run again
with other inputs, after all the rest, as a kernel may keep something that only later launches show.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from opkit.chips import Chip, find_chip
from opkit.errors import FAULT_IDS, OperatorError, OpkitError, PrecisionError, SetupError
from opkit.executor import Crew, Folder, LocalExecutor, Lost, Work, bare, read_array
from opkit.judging.candidate import INSIDE, Built, built_candidate
from opkit.judging.entry import MARK_INTERFACE
from opkit.judging.findings import JudgeFinding, JudgeGap, finding
from opkit.judging.judgement import JudgedCase, Judgement
from opkit.judging.sandbox import Sandbox, require_sandbox
from opkit.judging.task import Question, Task, open_task
from opkit.judging.worker import (
    LaunchRequest,
    LaunchSetup,
    OutputShapes,
    RecordRequest,
    begin_launches,
)
from opkit.profiling import ceilings
from opkit.testing import (
    Case,
    OutputResult,
    case_standard,
    find_reference,
    make_inputs,
    output_tensors,
)
from opkit.testing import judge as compare_outputs
from opkit.toolchain import (
    assembly_log,
    foreign_host_names,
    foreign_launcher_names,
    foreign_log,
    is_foreign,
    library_names,
    library_names_behind,
    named_texts,
    scan_kernels,
)

__all__ = ["judge", "judge_candidate"]

_CHECKED_ELEMENTS = 1 << 16
"""Cases up to so many elements run under the checks, which take some times as long; where a task
has none, its smallest does."""
_AGAIN = 3
"""Small cases that run a second time."""
_SHOWN_CASES = 3
_BAD_SYSTEM_CALL = "signal 31"
_SOURCES = (".cpp", ".h", ".hpp", ".cc", ".inc", ".asc")


def judge(candidate: Path | str, question: Question) -> Judgement:
    """Return the judgement of a candidate, the folder of an operator project.

    Raises: as `judge_candidate`, and:
        SetupError: there is no sandbox on this machine, and the question does not do without.
    """
    if question.sandboxed:
        require_sandbox()
    with open_task(question) as task:
        return judge_candidate(Path(candidate), task, question)


def judge_candidate(candidate: Path, task: Task, question: Question) -> Judgement:
    """Return the judgement of a candidate by a task that is open.

    Raises:
        UsageError: there is no such candidate.
        SetupError: something is missing on this machine.
        OperatorError: the task's golden fails.
    """
    begin = time.perf_counter()
    target, limits, sandboxed = find_chip(question.chip), question.limits, question.sandboxed
    shapes = _Shapes(task)

    def calls() -> list[RecordRequest]:
        return [RecordRequest(case, shapes.of(case)) for case in task.cases]

    built = built_candidate(
        *(candidate, task.spec, calls), chip=target, limits=limits, sandboxed=sandboxed
    )
    seconds = {"build": time.perf_counter() - begin}
    against = against_build(built, task)
    if against:
        return _judgement(task, built, target, (), against, seconds)
    begin = time.perf_counter()
    run = _Run(task, built, target, shapes)
    folders = {
        name: Folder(Path(INSIDE[name]) if sandboxed else path)
        for name, path in (("artifact", built.artifact), ("candidate", built.sources))
    }
    seen = {INSIDE["artifact"]: built.artifact, INSIDE["candidate"]: built.sources}
    cage = Sandbox(seen) if sandboxed else bare
    setup = LaunchSetup(task.spec, target.name, limits, built.op, built.kind)
    # Its memory holds its outputs, and the message that has them.
    most = limits.memory_mib << 19
    work = Work(begin_launches, setup, folders, seconds=limits.seconds + 10, most_bytes=most)
    with LocalExecutor(1, cage=cage).open(work) as crew:
        run.all(crew)
    if run.suspected is not None:
        with LocalExecutor(1, cage=cage).open(work) as crew:
            run.alone(crew)
    seconds["judge"] = time.perf_counter() - begin
    return _judgement(
        *(task, built, target, tuple(run.judged), run.findings(), seconds), gaps=run.gaps()
    )


def _judgement(
    task: Task,
    built: Built,
    chip: Chip,
    cases: tuple[JudgedCase, ...],
    findings: Sequence[JudgeFinding],
    seconds: dict[str, float],
    gaps: Sequence[JudgeGap] = (),
) -> Judgement:
    left_out = len(task.left_out)
    return Judgement(
        *(task.name, task.spec.op, chip.name, task.standard.name, not built.failure, cases),
        *(tuple(findings), left_out, tuple(gaps), seconds, built.kind),
    )


def against_build(built: Built, task: Task) -> list[JudgeFinding]:
    """Return what the build, and what lies in the artifact, say against a candidate.

    Raises:
        SetupError: it is this machine that lacks something.
        OpkitError: the build ended by an error of opkit's own.
    """
    if built.failure:
        _raise_ours(built.failure)
        kind = str(built.failure.get("kind"))
        message = str(built.failure.get("error") or "it says nothing")
        if kind == OpkitError.__name__:
            raise OpkitError(f"the build ended with an error of opkit's own: {message}")
        if built.failure.get("code") == OpkitError.exit_code:
            # What foreign host code leaves of its description is no error of opkit's.
            message = f"the build ended by {kind}: {message}"
        file, line = str(built.failure.get("file") or ""), int(built.failure.get("line") or 0)
        if MARK_INTERFACE in message:
            return [finding("INTERFACE", message, file=file, line=line)]
        foreign = any(is_foreign(text) for text in message.splitlines())
        return [finding("FOREIGN-KERNEL" if foreign else "BUILD", message, file=file, line=line)]
    found = []
    spec = task.spec
    if (built.inputs, built.outputs) != (len(spec.inputs), len(spec.outputs)):
        detail = (
            f"{built.inputs} inputs and {built.outputs} outputs, where the task has"
            f" {len(spec.inputs)} and {len(spec.outputs)}"
        )
        found.append(finding("INTERFACE", detail))
    return found + foreign_findings(built)


def foreign_findings(built: Built) -> list[JudgeFinding]:
    """Return what a candidate's libraries ask of this machine.

    Outside of its sandbox, and again: what was built there is not taken at its word.
    """
    files = [path for path in built.sources.rglob("*") if path.suffix in _SOURCES]
    texts = named_texts(None, [path.relative_to(built.sources) for path in files], built.sources)
    for each in built.recorded.values():
        texts += [(f"{kernel.name}.cpp", kernel.source) for kernel in each.kernels.values()]
    found = []
    for library in sorted((*built.artifact.glob("*.so"), *built.artifact.glob("*.o"))):
        image = library.read_bytes()
        try:
            if built.kind == "direct-launch":
                found += _foreign_of_launcher(library.suffix, image, texts)
            elif library.name.startswith("lib"):
                names = foreign_host_names(image)
                found += [finding("FOREIGN-HOST", ", ".join(names))] if names else []
            else:
                log = foreign_log(image, texts)
                found += [finding("FOREIGN-KERNEL", log.strip())] if log else []
                names = library_names(image)
                found += [finding("LIBRARY-KERNEL", ", ".join(names))] if names else []
        except (struct.error, IndexError, ValueError) as error:
            found.append(finding("FOREIGN-KERNEL", f"{library.name} is no library: {error}"))
    return found


def _foreign_of_launcher(
    suffix: str, image: bytes, texts: Sequence[tuple[str, str]]
) -> list[JudgeFinding]:
    """Return what host code and kernels in one library, or one of its objects, ask for."""
    if suffix == ".so":
        log = assembly_log(texts)
        names = foreign_launcher_names(image)
        found = [finding("FOREIGN-KERNEL", log.strip())] if log else []
        return found + ([finding("FOREIGN-HOST", ", ".join(names))] if names else [])
    kernels = {kernel.name for _, text in texts for kernel in scan_kernels(text)}
    names = library_names_behind(image, sorted(kernels))
    return [finding("LIBRARY-KERNEL", ", ".join(names))] if names else []


def _raise_ours(answer: Mapping[str, Any]) -> None:
    """Raise what a process of the candidate's says that no candidate is to blame for.

    Raises:
        SetupError: something is missing on this machine, or was made for another opkit.
    """
    if answer.get("code") == SetupError.exit_code:
        raise SetupError(str(answer.get("error")))


@dataclass
class _Shapes:
    """What a golden says of outputs, for candidates that do not say it themselves."""

    task: Task
    _known: dict[str, OutputShapes] = field(default_factory=dict)

    def of(self, case: Case) -> OutputShapes:
        """Return shape and data type of each output of a case."""
        if case.name not in self._known:
            reference = find_reference(case, self.task.spec, self.task.golden, wants_second=False)
            assert reference is not None
            outputs, _ = reference.whole(make_inputs(case))
            types = [dtype.name for _, dtype in output_tensors(case, self.task.spec)]
            shapes = (tuple(output.shape) for output in outputs)
            self._known[case.name] = tuple(zip(shapes, types, strict=True))
        return self._known[case.name]


@dataclass
class _Run:
    """The launches of one candidate so far."""

    task: Task
    built: Built
    chip: Chip
    shapes: _Shapes
    judged: list[JudgedCase] = field(default_factory=list)
    suspected: Case | None = None
    """A case that is wrong after others, to be run alone."""
    _found: dict[tuple[str, str, str, int], list[str]] = field(default_factory=dict)
    _gaps: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By category and message: the cases of launches that opkit could not finish."""
    _outputs: dict[str, str] = field(default_factory=dict)
    """By a hash of an output's bytes: the launch that gave it first."""
    _ran: int = 0

    def all(self, crew: Crew) -> None:
        """Launch every case, then some again, then under the checks."""
        cases = [self._fresh(case, "") for case in self.task.cases]
        for case in cases:
            self._launch(crew, case, keep=True)
        if self._found:
            return
        filled = sorted((case for case in cases if _elements(case)), key=_elements)
        again = (*filled[:_AGAIN], *filled[-1:])
        for case in {case.name: case for case in again}.values():
            self._launch(crew, self._fresh(case, "again"), keep=False)
        small = [case for case in filled if _elements(case) <= _CHECKED_ELEMENTS]
        for case in small or filled[:1]:
            if not self._found:
                self._check(crew, case)

    def alone(self, crew: Crew) -> None:
        """Launch the suspected case in a process of its own."""
        case, self.suspected = self.suspected, None
        assert case is not None
        answer = self._answer(crew, case)
        outputs = _outputs(answer)
        if outputs is None:
            return
        try:
            if all(each.comparison.passed for each in self._compared(case, outputs)):
                self._note("STATE", "", case.name)
        except (PrecisionError, ValueError):
            return

    def findings(self) -> list[JudgeFinding]:
        """Return what speaks against the candidate."""
        return [
            JudgeFinding(id, message, file, line, tuple(cases[:_SHOWN_CASES]))
            for (id, message, file, line), cases in self._found.items()
        ]

    def gaps(self) -> list[JudgeGap]:
        """Return the launches that opkit could not finish."""
        return [
            JudgeGap(category, message, tuple(cases[:_SHOWN_CASES]))
            for (category, message), cases in self._gaps.items()
        ]

    def _note_gap(self, category: str, message: str, case: str) -> str:
        cases = self._gaps.setdefault((category, message), [])
        if case not in cases:
            cases.append(case)
        return "not judged"

    def _note(self, id: str, detail: str, case: str, file: str = "", line: int = 0) -> None:
        text = finding(id, detail).message
        cases = self._found.setdefault((id, text, file, line), [])
        if case not in cases:
            cases.append(case)

    def _fresh(self, case: Case, salt: str) -> Case:
        """Return a case with values that belong to this candidate."""
        text = f"{self.built.digest}\0{case.seed}\0{salt}"
        drawn = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        return replace(case, seed=drawn, label=case.name)

    def _answer(self, crew: Crew, case: Case, *, checked: bool = False) -> dict[str, Any]:
        request = LaunchRequest(case, checked)
        if self.built.kind == "program":
            recorded = self.built.recorded[case.name]
            if recorded.recording is None:
                return dict(recorded.failure)
            request = replace(request, recording=recorded.recording)
        elif self.built.kind == "direct-launch":
            request = replace(request, outputs=self.shapes.of(case))
        try:
            (found,) = crew.run([request])
        except OperatorError as error:
            # Its processes end as soon as it is loaded, or in between.
            found = Lost(error.message, 1)
        self._ran += 1
        if isinstance(found, Lost):
            return {"error": str(found), "kind": "Lost", "reason": found.reason}
        if not isinstance(found, dict):
            return {"error": "", "kind": "Garbled"}
        return found

    def _launch(self, crew: Crew, case: Case, *, keep: bool) -> None:
        """Launch a case, judge it, and note what speaks against the candidate."""
        position = self._ran
        answer = self._answer(crew, case)
        outputs = _outputs(answer)
        if outputs is None:
            why = self._note_failure(answer, case)
            if keep:
                self.judged.append(self._case(case, False, why, (), None))
            return
        try:
            compared = self._compared(case, outputs)
        except PrecisionError as error:
            self._note("SHAPE", error.message, case.name)
            if keep:
                self.judged.append(self._case(case, False, "wrong", (), None))
            return
        is_right = all(each.comparison.passed for each in compared)
        earlier = self._seen_before(case, outputs)
        if not is_right:
            if earlier:
                self._note("CACHED", f"those of {earlier}", case.name)
            elif position and self.suspected is None:
                self.suspected = case
            self._note("WRONG", "", case.name)
            recorded = self.built.recorded.get(case.name)
            if recorded is not None and recorded.depends:
                self._note("HOST-COMPUTED", recorded.depends, case.name)
        else:
            self._note_means(case, outputs, answer)
        for name in answer.get("changed_inputs") or ():
            self._note("INPUT-WRITTEN", str(name), case.name)
        if keep:
            verdict = "right" if is_right else "wrong"
            self.judged.append(self._case(case, is_right, verdict, compared, answer))

    def _note_failure(self, answer: dict[str, Any], case: Case) -> str:
        """Note a launch without a result; return its kind in words.

        Raises:
            SetupError: something is missing on this machine.
        """
        _raise_ours(answer)
        kind, text = str(answer.get("kind")), str(answer.get("error"))
        first = text.splitlines()[0] if text else ""
        file, line = str(answer.get("file") or ""), int(answer.get("line") or 0)
        if kind == "Lost":
            reason = str(answer.get("reason"))
            id = "SYSTEM-CALL" if reason == _BAD_SYSTEM_CALL else "ENDED"
            id = "TIME-LIMIT" if reason.startswith("the limit") else id
            id = "GARBLED" if reason.startswith("writing") else id
            self._note(id, reason, case.name)
            return id
        if kind == "KernelFault":
            category, id = str(answer.get("category")), str(answer.get("id"))
            if category == "Interrupted":
                self._note("TIME-LIMIT", "", case.name, file, line)
                return "TIME-LIMIT"
            if category not in FAULT_IDS:
                return self._note_gap(category, first, case.name)
            cases = self._found.setdefault((id, first, file, line), [])
            cases.append(case.name)
            return id
        if kind == "MemoryError":
            self._note("MEMORY-LIMIT", first, case.name)
            return "MEMORY-LIMIT"
        if answer.get("code") == OpkitError.exit_code:
            return self._note_gap(kind, first, case.name)
        ids = {"Garbled": "GARBLED", "HostComputed": "HOST-COMPUTED", "Raised": "RAISED"}
        id = "INTERFACE" if MARK_INTERFACE in text else ids.get(kind, "REFUSED")
        self._note(id, first, case.name, file, line)
        return id

    def _compared(self, case: Case, outputs: Sequence[Any]) -> tuple[OutputResult, ...]:
        rule = case_standard(case, self.task.standard)
        reference = find_reference(
            case, self.task.spec, self.task.golden, wants_second=rule.needs_second
        )
        assert reference is not None
        return compare_outputs(reference, make_inputs(case), outputs, rule)

    def _seen_before(self, case: Case, outputs: Sequence[Any]) -> str:
        """Return the earlier launch that gave the very same outputs; empty where none has."""
        if all(output.size < 2 or (output == output.flat[0]).all() for output in outputs):
            # One number all over, or nothing that was written: no kept result.
            return ""
        digest = hashlib.sha256(b"".join(output.tobytes() for output in outputs)).hexdigest()
        earlier = self._outputs.get(digest, "")
        self._outputs.setdefault(digest, f"{case.name} with other inputs")
        return earlier

    def _note_means(self, case: Case, outputs: Sequence[Any], answer: dict[str, Any]) -> None:
        """Note right results that no instruction has written."""
        names = [name for name, _ in output_tensors(case, self.task.spec)]
        size = sum(
            output.nbytes
            for name, output in zip(names, outputs, strict=True)
            if name not in case.input_names
        )
        launches = answer.get("launches") or []
        if size and not launches:
            self._note("NO-LAUNCH", "", case.name)
        elif sum(int(each["written_bytes"]) for each in launches) < size:
            self._note("NOT-BY-INSTRUCTIONS", "", case.name)

    def _check(self, crew: Crew, case: Case) -> None:
        import json

        answer = self._answer(crew, case, checked=True)
        if "findings" not in answer:
            self._note_failure(answer, case)
            return
        for text in answer.get("gaps") or ():
            category, _, message = str(text).partition(": ")
            self._note_gap(category, message, case.name)
        for text in answer["findings"]:
            try:
                found = json.loads(text)
                place = found["location"] or {}
                file = str(place.get("file") or "")
                key = (str(found["id"]), str(found["message"]), file, int(place.get("line") or 0))
            except (ValueError, TypeError, KeyError):
                self._note("GARBLED", "", case.name)
                continue
            cases = self._found.setdefault(key, [])
            if case.name not in cases:
                cases.append(case.name)

    def _case(
        self,
        case: Case,
        is_right: bool,
        verdict: str,
        compared: Iterable[OutputResult],
        answer: dict[str, Any] | None,
    ) -> JudgedCase:
        results = tuple(compared)
        figures = [figure for each in results for figure in each.comparison.figures]
        nearest = max(figures, key=_share, default=None)
        launches = (answer or {}).get("launches") or []
        longest = max(launches, key=lambda each: each["time_us"], default=None)
        bands = longest["band_percent"] if longest is not None else None
        return JudgedCase(
            name=case.name,
            elements=sum(each.comparison.elements for each in results),
            is_right=is_right,
            verdict=verdict,
            figure=nearest.name if nearest is not None else "",
            value=nearest.value if nearest is not None else 0.0,
            limit=nearest.limit if nearest is not None else 0.0,
            time_us=sum(float(each["time_us"]) for each in launches) if launches else None,
            band_percent=bands,
            bound_us=self._bound(case, results),
            base_us=self.task.base_us.get(case.name),
        )

    def _bound(self, case: Case, results: Iterable[OutputResult]) -> float | None:
        """Return the task's bound, else the time to move every tensor once at memory's rate."""
        if case.name in self.task.bound_us:
            return self.task.bound_us[case.name]
        rate = next(each.bytes_per_second for each in ceilings(self.chip) if each.name == "HBM")
        if rate is None:
            return None
        dtypes = case.dtypes[: len(case.shapes)]
        size = sum(
            prod(shape) * dtype.size_bytes
            for shape, dtype in zip(case.shapes, dtypes, strict=True)
            if shape is not None
        )
        types = case.dtypes[len(case.shapes) :]
        size += sum(
            each.comparison.elements * dtype.size_bytes
            for each, dtype in zip(results, types, strict=False)
        )
        return size / rate * 1e6


def _elements(case: Case) -> int:
    return max((prod(shape) for shape in case.shapes if shape is not None), default=0)


def _share(figure: Any) -> float:
    if figure.limit > 0:
        return float(figure.value / figure.limit)
    return float("inf") if figure.value > 0 else 0.0


def _outputs(answer: dict[str, Any]) -> list[np.ndarray[Any, Any]] | None:
    """Return the outputs of a launch, as its process sends them; None where there are none."""
    if "outputs" not in answer:
        return None
    try:
        return [read_array(each) for each in answer["outputs"]]
    except (TypeError, ValueError, OpkitError):
        return None
