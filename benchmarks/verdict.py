"""Does `opkit test` fail right kernels, or pass wrong ones? Random and known formulas, every type.

    python benchmarks/verdict.py [--known N] [--random N] [--first N] [--only N,N]
                                 [--only-known N,N] [--seed S] [--dtypes N] [--built N] [--edges]
                                 [--list] [-j N] [--record FILE]

`--first`, `--only` and `--only-known` leave out formulas by their number, whose judgement stays the
same.
`--record` appends a line of JSON for each formula, and does not judge those again that are in it.

`--dtypes 1` tries each operator in one type, drawn, and leaves out the long cases of all but every
eighth: a tenth of the time, for many formulas.

`--edges` tries zeros, extremes, infinities and NaN instead, as `opkit test --edge-values` does. The
bugs planted there: zeros everywhere, NaN for infinity, 0 for NaN, everything twice.

The kernel of a formula is the graph that opkit generates it from, forward and backward, computed in
NumPy with one rounding to float32 an operator; `--built N` also generates, compiles and runs N
of the operators in one project, on the emulator. Judged are the inputs of `opkit test`, by the
default standard and by the vendor's own. Then the same results with a bug planted:

    zeros            every element of every output
    missing tail     the last elements were never written
    swapped block    two blocks of 32 bytes stand in each other's place
    half input       the first input was rounded to float16 on its way (float32 only)
    relative 2e-4    every element off by 2e-4 of itself, either way (float32 only)
    smallest 1e-4    1e-4 added to the smallest results (float32 only)
    unstable         the formula of a function that cancels, computed as it stands (float32 only)

A planted bug that leaves the result within the vendor's standard is none by anyone's rule, the
elements aside that the right result misses too; such bugs are counted apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from verdict_bugs import BUGS, EDGE_BUGS, planned
from verdict_formulas import KNOWN, UNSTABLE, Formula, random_formula

from opkit.errors import OpkitError
from opkit.scaffold import formula as language
from opkit.schema import OpSpec, load
from opkit.testing import Case, default_cases, load_golden, make_inputs, standard_for
from opkit.testing.cases.cases import output_tensors
from opkit.testing.cases.values import EDGES
from opkit.testing.judgement import judge
from opkit.testing.numbers.arrays import narrow, widen
from opkit.testing.numbers.standards import Standard
from opkit.testing.references.reference import Reference, find_reference

DTYPES = ("float16", "float32", "bfloat16")


@dataclass(frozen=True)
class Operator:
    """One operator of a formula, with the folder of its golden."""

    formula: Formula
    spec: OpSpec
    golden: Path


def operators(name: str, formula: Formula, folder: Path) -> Iterator[Operator]:
    """Yield the forward operator of a formula and its gradient, where it has one."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps([formula.prototype(name, DTYPES)]))
    (spec,) = load(path)
    golden = folder / f"{name}_golden.py"
    golden.write_text(language.golden_source(spec) or "")
    yield Operator(formula, spec, golden)
    try:
        gradient = language.backward(spec)
    except OpkitError:
        return
    if gradient is not None:
        yield Operator(formula, gradient, golden)


def cases_of(spec: OpSpec, *, with_long: bool = True) -> list[Case]:
    """Return those default cases that differ by their values: one long one, in float32."""
    chosen = []
    for case in default_cases(spec):
        size = int(np.prod(case.shape))
        is_long = size in (1_000_003, 41 * 4099) and case.dtypes[0].name == "float32"
        is_usual = size in (1, 49, 7919, 97 * 255, 31 * 257) or case.shape[0] == 5
        if is_usual or (is_long and with_long):
            chosen.append(case)
    return chosen


def edge_cases_of(spec: OpSpec) -> list[Case]:
    """Return the cases of each type that `opkit test --edge-values` adds."""
    return [case for case in default_cases(spec, edge_values=True) if case.distribution in EDGES]


@dataclass
class Tally:
    """What became of kernels and of bugs; a kernel is an operator in one data type."""

    kernels: int = 0
    failing: int = 0
    vendor_failing: int = 0
    planted: Counter[str] = field(default_factory=Counter)
    passing: Counter[str] = field(default_factory=Counter)
    within: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count what another tally has counted too."""
        self.kernels += other.kernels
        self.failing += other.failing
        self.vendor_failing += other.vendor_failing
        for mine, theirs in (
            (self.planted, other.planted),
            (self.passing, other.passing),
            (self.within, other.within),
        ):
            mine.update(theirs)
        self.texts += other.texts


@dataclass(frozen=True)
class Task:
    """One formula to judge, and how."""

    title: str
    number: int
    formula: Formula
    folder: Path
    dtypes: int
    seed: int
    edges: bool

    @property
    def key(self) -> str:
        """What a record knows it by."""
        return f"{self.title} {self.number} {self.formula.text}"

    def cases(self, spec: OpSpec, stream: np.random.Generator) -> list[list[Case]]:
        """Return the cases of each data type that is tried."""
        by_dtype: dict[int, list[Case]] = {}
        with_long = self.dtypes == len(DTYPES) or self.number % 8 == 0
        for case in edge_cases_of(spec) if self.edges else cases_of(spec, with_long=with_long):
            by_dtype.setdefault(case.variant, []).append(case)
        chosen = stream.permutation(len(by_dtype))[: self.dtypes]
        return [list(by_dtype.values())[number] for number in sorted(chosen)]


def judged(task: Task) -> Tally:
    """Return what became of one formula, forward and backward."""
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    tally = Tally()
    stream = np.random.default_rng([task.seed + 1, task.number])
    folder = task.folder / task.title
    folder.mkdir(exist_ok=True)
    for operator in operators(f"Formula{task.number}", task.formula, folder):
        examine(operator, tally, task.cases(operator.spec, stream), task.edges)
    return tally


def examine(operator: Operator, tally: Tally, chosen: list[list[Case]], edges: bool) -> None:
    """Judge the kernel of one operator and its planted bugs, by the cases of each data type."""
    spec = operator.spec
    golden = load_golden(operator.golden)
    ours = standard_for("conditioned", spec.name)
    for cases in chosen:
        tally.kernels += 1
        fails = vendor_fails = False
        caught: dict[str, list[tuple[bool, bool]]] = {}
        for case in cases:
            inputs = make_inputs(case)
            right = planned(spec, case, inputs)
            reference = find_reference(case, spec, golden, wants_second=False)
            found = judge(reference, inputs, right, ours)
            right_is_vendors = not any(o.comparison.cancelled for o in found)
            bad = [o for o in found if not o.comparison.passed]
            if bad:
                vendor_fails = True
                if not fails:
                    worst = bad[0].comparison
                    tally.texts.append(
                        f"{case.name}\n    {operator.formula.text}\n    {bad[0].name} ="
                        f" {next(t.formula for t in spec.outputs if t.name == bad[0].name)}\n"
                        f"    {worst} ({worst.cancelled} excused); {worst.worst}\n"
                        f"    inputs {inputs_at(inputs, worst.worst)}; {worst.cancellation}"
                    )
                fails = True
                continue
            vendor_fails |= bool(not right_is_vendors)
            for name, bug in (EDGE_BUGS if edges else BUGS).items():
                is_caught = any(not passes for passes, _ in caught.get(name, ()))
                if is_caught or right[-1].size > 1 << 17:
                    continue
                wrong = bug(spec, case, inputs, right)
                if wrong is None or same(wrong, right):
                    continue
                verdicts = [o.comparison for o in judge(reference, inputs, wrong, ours)]
                passes = all(one.passed for one in verdicts)
                strictly = passes and within_vendors(reference, inputs, right, wrong, ours)
                caught.setdefault(name, []).append((passes, strictly))
        tally.failing += int(fails)
        tally.vendor_failing += int(vendor_fails)
        for name, verdicts in caught.items():
            # A bug is caught where any case of the operator fails.
            tally.planted[name] += 1
            if all(passes for passes, _ in verdicts):
                if all(strictly for _, strictly in verdicts):
                    tally.within[name] += 1
                else:
                    tally.passing[name] += 1
                    tally.texts.append(
                        f"{name} passes: {spec.name} {cases[0].dtypes[-1].name}"
                        f" {operator.formula.text}"
                    )


def within_vendors(
    reference: Reference, inputs: list, right: list, wrong: list, ours: Standard
) -> bool:
    """Whether wrong results meet the vendor's limits, but where the right ones do not either.

    Nothing is excused then; the reference is still the one that does not overflow where the
    operator does not.
    """
    golden, _ = reference.whole(inputs)
    dtypes = [dtype for _, dtype in output_tensors(reference.case, reference.spec)]
    mended = []
    for true, good, bad, dtype in zip(golden, right, wrong, dtypes, strict=True):
        off = np.abs(widen(good, dtype) - true) > ours.numbers_for(dtype)["T"] * np.abs(true)
        mended.append(np.where(off, narrow(true, dtype), bad))
    found = [output.comparison for output in judge(reference, inputs, mended, ours)]
    return all(one.passed and not (one.cancelled or one.out_of_range) for one in found)


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    """Whether all outputs are alike: a bug that changes nothing is none."""
    return all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(one, other, strict=True)
    )


def inputs_at(inputs: list, worst: object) -> str:
    """Return the inputs of the worst element, where they have its shape."""
    if worst is None:
        return ""
    found = [
        array[worst.index]
        for array in inputs
        if array.ndim == len(worst.index) and np.all(np.less(worst.index, array.shape))
    ]
    return ", ".join(
        repr(float(value)) if value.dtype != np.uint16 else hex(value) for value in found
    )


def examine_unstable(folder: Path) -> tuple[int, list[str]]:
    """Judge naive float32 forms of functions that have stable ones; return how many, and those
    that pass."""
    passing = []
    for number, (text, naive) in enumerate(UNSTABLE):
        formula = Formula(text, ("x",))
        path = folder / f"unstable_{number}.json"
        path.write_text(json.dumps([formula.prototype(f"Unstable{number}", DTYPES)]))
        (spec,) = load(path)
        golden_path = folder / f"unstable_golden_{number}.py"
        golden_path.write_text(language.golden_source(spec) or "")
        golden = load_golden(golden_path)
        rule = standard_for("conditioned", spec.name)
        verdicts = []
        for case in cases_of(spec):
            if case.dtypes[0].name != "float32":
                continue
            inputs = make_inputs(case)
            with np.errstate(all="ignore"):
                wrong = [np.asarray(naive(inputs[0]), np.float32)]
            reference = find_reference(case, spec, golden, wants_second=False)
            found = judge(reference, inputs, wrong, rule)
            verdicts.append(all(output.comparison.passed for output in found))
        if all(verdicts):
            passing.append(text)
    return len(UNSTABLE), passing


def examine_built(formulas: list[Formula], folder: Path) -> tuple[int, int, list[str]]:
    """Generate, build and test the formulas as one project; return cases, failing, and which."""
    prototypes = [f.prototype(f"Formula{n}", DTYPES) for n, f in enumerate(formulas)]
    path = folder / "verdict.json"
    path.write_text(json.dumps(prototypes))
    project = folder / "verdict"
    subprocess.run(
        ["opkit", "gen", "-q", "-i", str(path), "-o", str(project)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    done = subprocess.run(["opkit", "test", str(project), "--json"], capture_output=True, text=True)
    report = json.loads(done.stdout)
    if "error" in report:
        raise SystemExit(json.dumps(report["error"], indent=2))
    bad = [case["name"] for case in report["cases"] if not case["verdict"].startswith("pass")]
    return len(report["cases"]), len(bad), bad


def usable(formula: Formula, folder: Path) -> bool:
    """Whether the formula is legal and mostly finite on usual inputs."""
    path = folder / "candidate.json"
    path.write_text(json.dumps([formula.prototype("Candidate", DTYPES)]))
    try:
        (spec,) = load(path)
        source = language.golden_source(spec)
        language.parse(spec)
    except OpkitError:
        return False
    (folder / "candidate_golden.py").write_text(source or "")
    golden = load_golden(folder / "candidate_golden.py")
    stream = np.random.default_rng(0)
    inputs = [
        widen(stream.standard_normal((8, 64)).astype(np.float32), spec.inputs[0].dtypes[1])
        for _ in spec.inputs
    ]
    (output,) = golden.reference(spec.name, inputs, attrs={})
    sizes = np.abs(output[np.isfinite(output)])
    return sizes.size > 0.95 * output.size and 0 < sizes.mean() < 1e4


def recorded(path: Path | None) -> dict[str, Tally]:
    """Return the tallies of a record, by the formula's name and text."""
    if path is None or not path.exists():
        return {}
    found = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        counters = {name: Counter(row.pop(name)) for name in ("planted", "passing", "within")}
        formula = row.pop("formula")
        found[formula] = Tally(**row, **counters)
    return found


def examine_all(tasks: Sequence[Task], workers: int, record: Path | None, texts: bool) -> Tally:
    """Return what became of all formulas; what is in the record is taken from there."""
    known = recorded(record)
    total = Tally()

    def note(task: Task, tally: Tally) -> None:
        if texts and tally.texts:
            print("\n".join(tally.texts), flush=True)
        total.add(tally)

    open_tasks = []
    for task in tasks:
        if task.key in known:
            note(task, known[task.key])
        else:
            open_tasks.append(task)
    with ProcessPoolExecutor(workers) as pool:
        futures = {pool.submit(judged, task): task for task in open_tasks}
        for future in as_completed(futures):
            task, tally = futures[future], future.result()
            if record is not None:
                with record.open("a") as file:
                    file.write(json.dumps({"formula": task.key, **vars(tally)}) + "\n")
            note(task, tally)
    return total


def draw_formulas(count: int, seed: int, folder: Path) -> list[Formula]:
    """Return random formulas that are usable."""
    stream = np.random.default_rng(seed)
    drawn: list[Formula] = []
    while len(drawn) < count:
        formula = random_formula(stream)
        if usable(formula, folder):
            drawn.append(formula)
    return drawn


def arguments_of() -> argparse.Namespace:
    """Return the command line's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--random", type=int, default=100, metavar="N", help="random formulas")
    add("--first", type=int, default=0, metavar="N", help="without the random ones before")
    add("--only", metavar="N,N", help="only these of the random formulas")
    add("--only-known", metavar="N,N", help="only these of the known formulas")
    add("--seed", type=int, default=0)
    add("--dtypes", type=int, default=len(DTYPES), metavar="N", help="types each")
    add("--known", type=int, default=len(KNOWN), metavar="N", help="known formulas")
    add("--built", type=int, default=0, metavar="N", help="also compile and run N")
    add("--edges", action="store_true", help="the ends of the types' ranges")
    add("--list", action="store_true", help="tell every kernel that fails")
    add("-j", "--jobs", type=int, default=1, metavar="N", help="processes")
    add("--record", type=Path, metavar="FILE", help="go on where another run ended")
    return parser.parse_args()


def _numbers(text: str | None, usual: Sequence[int]) -> Sequence[int]:
    return usual if text is None else [int(number) for number in text.split(",")]


def main() -> None:
    """Print the figures."""
    arguments = arguments_of()
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drawn = draw_formulas(arguments.random, arguments.seed, folder)
        numbers = _numbers(arguments.only, range(arguments.first, arguments.random))
        known = _numbers(arguments.only_known, range(min(arguments.known, len(KNOWN))))
        for title, numbered in (
            ("known", [(number, KNOWN[number]) for number in known]),
            ("random", [(number, drawn[number]) for number in numbers]),
        ):
            tasks = [
                Task(
                    title,
                    number,
                    formula,
                    folder,
                    arguments.dtypes,
                    arguments.seed,
                    arguments.edges,
                )
                for number, formula in numbered
            ]
            tally = examine_all(tasks, arguments.jobs, arguments.record, arguments.list)
            print(f"{title}: {len(tasks)} formulas, {tally.kernels} kernels (operator x type)")
            print(f"  right kernels failing: {tally.failing}; by ecosystem: {tally.vendor_failing}")
            for bug in EDGE_BUGS if arguments.edges else BUGS:
                print(
                    f"  {bug}: {tally.planted[bug]} planted, {tally.passing[bug]} passing,"
                    f" {tally.within[bug]} within the vendor's standard"
                )
        if arguments.known and not arguments.only_known and not arguments.edges:
            count, passing = examine_unstable(folder)
            print(f"unstable lowerings: {count} planted, {len(passing)} passing {passing}")
        if arguments.built:
            chosen = [*KNOWN, *drawn][:: max(1, (len(KNOWN) + len(drawn)) // arguments.built)]
            cases, bad, names = examine_built(chosen, folder)
            print(f"built: {len(chosen)} formulas in one project, {cases} cases, {bad} failing")
            print("\n".join(f"  {name}" for name in names))


if __name__ == "__main__":
    main()
