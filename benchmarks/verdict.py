"""Does `opkit test` fail right kernels, or pass wrong ones? Random and known formulas, every type.

    python benchmarks/verdict.py [--random N] [--seed S] [--dtypes N] [--built N] [--edges] [--list]

`--dtypes 1` tries each operator in one type, drawn, and leaves out the long cases of all but every
eighth: a tenth of the time, for many formulas.

`--edges` tries zeros, extremes, infinities and NaN instead, as `opkit test --edge-values` does, and
plants no bugs.

The kernel of a formula is the plan that opkit generates it from, forward and backward, computed in
NumPy with one rounding to float32 an instruction; `--built N` also generates, compiles and runs N
of the operators in one project, on the emulator. Judged are the inputs of `opkit test`, by the
default standard and by the vendor's own. Then the same results with a bug planted:

    missing tail     the last elements were never written
    swapped block    two blocks of 32 bytes stand in each other's place
    half input       the first input was rounded to float16 on its way (float32 only)
    relative 2e-4    every element off by 2e-4 of itself, either way (float32 only)
    smallest 1e-4    1e-4 added to the smallest results (float32 only)
    unstable         the formula of a function that cancels, computed as it stands (float32 only)

A planted bug that leaves the result within the vendor's standard is none by anyone's rule; such
bugs are counted apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from verdict_formulas import KNOWN, UNSTABLE, Formula, random_formula

from opkit.errors import OpkitError
from opkit.scaffold import formula as language
from opkit.scaffold import formula_in_single_precision
from opkit.schema import OpSpec, load
from opkit.testing import Case, default_cases, load_golden, make_inputs, standard_for
from opkit.testing.arrays import is_float, narrow, tensors_of, widen, widen_input
from opkit.testing.cases import output_tensors, plain_attr
from opkit.testing.judgement import judge
from opkit.testing.references import find_reference

DTYPES = ("float16", "float32", "bfloat16")
_BLOCK_BYTES = 32


@dataclass(frozen=True)
class Operator:
    """One operator of a formula, with the folder of its golden."""

    formula: Formula
    spec: OpSpec
    golden: Path


def operators(formulas: list[Formula], folder: Path) -> Iterator[Operator]:
    """Yield the forward operator of each formula and its gradient, where it has one."""
    for number, formula in enumerate(formulas):
        path = folder / f"formula_{number}.json"
        path.write_text(json.dumps([formula.prototype(f"Formula{number}", DTYPES)]))
        (spec,) = load(path)
        golden = folder / f"golden_{number}.py"
        golden.write_text(language.golden_source(spec) or "")
        yield Operator(formula, spec, golden)
        try:
            gradient = language.backward(spec)
        except OpkitError:
            continue
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
    """Return the case of each type that `opkit test --edge-values` adds."""
    return [case for case in default_cases(spec, edge_values=True) if case.distribution == "edge"]


def planned(spec: OpSpec, case: Case, inputs: list) -> list[np.ndarray]:
    """Return what the generated plan gives, in the case's data types."""
    single = []
    for value, dtype in zip(tensors_of(inputs), case.dtypes, strict=False):
        wide = widen_input(value, dtype)
        single.append(wide.astype(np.float32) if is_float(dtype) else wide)
    attrs = {attr.name: plain_attr(attr) for attr in spec.attrs}
    found = formula_in_single_precision(spec, single, attrs)
    dtypes = [dtype for _, dtype in output_tensors(case, spec)]
    return [
        narrow(np.array(output, np.float64), dtype)
        for output, dtype in zip(found, dtypes, strict=True)
    ]


Bug = Callable[[OpSpec, Case, list, list[np.ndarray]], list[np.ndarray] | None]


def missing_tail(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Leave the last elements poisoned, at most 17 of them."""
    if right[0].size < 2:
        return None
    wrong = [array.copy() for array in right]
    flat = wrong[-1].reshape(-1)
    # What the tail holds instead: what stood in the buffer before, the row or tile above.
    count = min(17, flat.size // 2)
    flat[-count:] = flat[:count]
    return wrong


def swapped_block(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Exchange the first two blocks of the last output."""
    block = _BLOCK_BYTES // right[-1].itemsize
    if right[-1].size < 2 * block:
        return None
    wrong = [array.copy() for array in right]
    flat = wrong[-1].reshape(-1)
    flat[:block], flat[block : 2 * block] = flat[block : 2 * block].copy(), flat[:block].copy()
    return wrong


def half_input(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Round the first input to float16."""
    if case.dtypes[0].name != "float32":
        return None
    moved = [inputs[0].astype(np.float16).astype(np.float32), *inputs[1:]]
    return planned(spec, case, moved)


def relative(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Multiply every element by 1 + 2e-4 or 1 - 2e-4."""
    if case.dtypes[-1].name != "float32":
        return None
    stream = np.random.default_rng(7)
    return [(a * (1 + 2e-4 * stream.choice([-1, 1], a.shape))).astype(a.dtype) for a in right]


def smallest(spec: OpSpec, case: Case, inputs: list, right: list) -> list | None:
    """Add 1e-4 to the smallest hundredth of the results, at least one."""
    if case.dtypes[-1].name != "float32":
        return None
    wrong = []
    for array in right:
        flat = array.copy().reshape(-1)
        order = np.argsort(np.abs(flat), kind="stable")[: max(1, flat.size // 100)]
        flat[order] += np.float32(1e-4)
        wrong.append(flat.reshape(array.shape))
    return wrong


BUGS: dict[str, Bug] = {
    "missing tail": missing_tail,
    "swapped block": swapped_block,
    "half input": half_input,
    "relative 2e-4": relative,
    "smallest 1e-4": smallest,
}


@dataclass
class Tally:
    """What became of kernels and of bugs; a kernel is an operator in one data type."""

    kernels: int = 0
    failing: int = 0
    vendor_failing: int = 0
    planted: Counter[str] = None  # type: ignore[assignment]
    passing: Counter[str] = None  # type: ignore[assignment]
    within: Counter[str] = None  # type: ignore[assignment]
    texts: list[str] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Start empty."""
        self.planted, self.passing, self.within = Counter(), Counter(), Counter()
        self.texts = []


@dataclass
class Draw:
    """Which types of an operator are tried, and which ones' long cases."""

    dtypes: int
    stream: np.random.Generator
    edges: bool = False
    drawn: int = 0

    def cases(self, spec: OpSpec) -> list[list[Case]]:
        """Return the cases of each type that is tried."""
        by_dtype: dict[int, list[Case]] = {}
        with_long = self.dtypes == len(DTYPES) or self.drawn % 8 == 0
        for case in edge_cases_of(spec) if self.edges else cases_of(spec, with_long=with_long):
            by_dtype.setdefault(case.variant, []).append(case)
        self.drawn += 1
        chosen = self.stream.permutation(len(by_dtype))[: self.dtypes]
        return [list(by_dtype.values())[number] for number in sorted(chosen)]


def examine(operator: Operator, tally: Tally, draw: Draw) -> None:
    """Judge the plan of one operator and its planted bugs, in the data types drawn."""
    spec = operator.spec
    golden = load_golden(operator.golden)
    ours, vendor = standard_for("conditioned", spec.name), standard_for("ecosystem", spec.name)
    for cases in draw.cases(spec):
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
            vendor_fails |= not right_is_vendors
            for name, bug in () if draw.edges else BUGS.items():
                is_caught = any(not passes for passes, _ in caught.get(name, ()))
                if is_caught or right[-1].size > 1 << 17:
                    continue
                wrong = bug(spec, case, inputs, right)
                if wrong is None or same(wrong, right):
                    continue
                passes = all(o.comparison.passed for o in judge(reference, inputs, wrong, ours))
                strictly = all(o.comparison.passed for o in judge(reference, inputs, wrong, vendor))
                caught.setdefault(name, []).append((passes, strictly))
        tally.failing += fails
        tally.vendor_failing += vendor_fails
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


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    """Whether all outputs are alike: a bug that changes nothing is none."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


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
        language.lower(language.parse(spec))
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


def main() -> None:
    """Print the figures."""
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--random", type=int, default=100, metavar="N", help="random formulas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtypes", type=int, default=len(DTYPES), metavar="N", help="types each")
    parser.add_argument("--known", type=int, default=len(KNOWN), metavar="N", help="known formulas")
    parser.add_argument("--built", type=int, default=0, metavar="N", help="also compile and run N")
    parser.add_argument("--edges", action="store_true", help="the ends of the types' ranges")
    parser.add_argument("--list", action="store_true", help="tell every kernel that fails")
    arguments = parser.parse_args()
    stream = np.random.default_rng(arguments.seed)
    draw = Draw(arguments.dtypes, np.random.default_rng(arguments.seed + 1), arguments.edges)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drawn: list[Formula] = []
        while len(drawn) < arguments.random:
            formula = random_formula(stream)
            if usable(formula, folder):
                drawn.append(formula)
        for title, formulas in (("known", KNOWN[: arguments.known]), ("random", drawn)):
            tally = Tally()
            for operator in operators(list(formulas), folder):
                examine(operator, tally, draw)
                if arguments.list:
                    print("\n".join(tally.texts), end="\n" if tally.texts else "", flush=True)
                    tally.texts.clear()
            print(f"{title}: {len(formulas)} formulas, {tally.kernels} kernels (operator x type)")
            print(f"  right kernels failing: {tally.failing}; by ecosystem: {tally.vendor_failing}")
            for bug in () if arguments.edges else BUGS:
                print(
                    f"  {bug}: {tally.planted[bug]} planted, {tally.passing[bug]} passing,"
                    f" {tally.within[bug]} within the vendor's standard"
                )
        if not arguments.edges:
            count, passing = examine_unstable(folder)
            print(f"unstable lowerings: {count} planted, {len(passing)} passing {passing}")
        if arguments.built:
            chosen = [*KNOWN, *drawn][:: max(1, (len(KNOWN) + len(drawn)) // arguments.built)]
            cases, bad, names = examine_built(chosen, folder)
            print(f"built: {len(chosen)} formulas in one project, {cases} cases, {bad} failing")
            print("\n".join(f"  {name}" for name in names))


if __name__ == "__main__":
    main()
