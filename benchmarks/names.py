"""Builds and runs operators whose names look reserved, and random ones: all of them must work.

Many names go into few operators, and many operators into one project: a thousand take minutes. A
project that does not build is halved until the operators are found that do not.

    python benchmarks/names.py                              1000 random names, all reserved-looking
    python benchmarks/names.py --sets random --random 50    some of the random ones alone
"""

from __future__ import annotations

import argparse
import builtins
import json
import keyword
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

# Words that C, C++, POSIX, Ascend C, the framework, Python, NumPy and torch use, or generated code.
PARAMETERS = """
abs acos alignment all any arange args array asarray assert assert_ atan attr attrs axis batch
begin block blocks body bool_ buffer buffers call call_inputs cast ceil channel check clock close
code column columns complex compute compute_type context copy copy_in copy_out core cores count
counts ctx data data_copy data_type de_que desc detail device dim dims div double_ dtype duplicate
e elements empty en_que end entry environ eof epsilon erf errno exit exp expm1 extra factor
factor0 fake fill filter first flags float16 float32 float_ floor fmax format forward fraction
free frame function gamma ge gert get global_ gm grad gradient graph half hash help i id imag in_x
index index0 info init inputs input isinf isnan item j k kernel kernels key kwargs label lambda_
last launch len length lib library linux list list_length load local local_tensor log long_ lookup
main malloc map mask mask0 mask_bytes masks math max max_value mean memory message min mode module
mul muls n name narrow ndim next nn np npt null null_ num_blocks numpy object offset one ones op
open operators ops opkit order out output outputs pad params path pi pipe platform pow printf
process ptr py pybind11 q queue random range rank read real reduce reduce_work register_ relu
repeat rest result results results_ room round row row0 row_scalar rows run runtime same scalar
scale scratch scratch0 select self set shape shape_ shapes share signal sin size size_t slots
sorted source sqrt start state std stderr stdin stdout step store str string struct_ sub sum super
switch_ sys t tan tanh target tensor tensors test this_ tile tile_length tiling tiling_data time
to torch total training transpose type types uint8_t uint8 unix upper value values var vector view
void_ wait where whole widen width work workspace workspace_size write x x_global x_local x_queue
x_row x_shape x_value xs y0 zeros _ _x _shape _result0 _row _wide _opkit _bridge __x A B DT_FLOAT
DTYPE_X E EOF GM_ADDR I NAN NULL OK T TPipe Tensor U X Y Exp Init Process GlobalTensor LocalTensor
NotImplemented a_b aB xLocal std_ torch_ ComputeType
""".split()  # noqa: SIM905
OPERATORS = """
Abs Acos Add And Any Array Assert Asin Atan Attr Basename Bind Bool Break Case Cast Catch Ceil
Char Class Clock Close Complex Const Copy Cos Data Default Delete Div Do Double Else Empty Enum
Eof Erf Errno Exec Exit Exp Export Extern Fake Fill Float Floor For Free Function Gamma Ge Gert
Getattr Golden Goto Half If Import In Index Input Inputs Int Is Isnan Kernel Lambda Len Link List
Log Long Main Malloc Map Math Matmul Max Memcpy Min Mod Module Mul Name Namespace New Np Not Numpy
Open Operator Operators Opkit Or Output Pass Path Pow Print Printf Private Process Pybind11 Pytest
Raise Random Range Read Register Relu Remove Rename Return Round Runtime Select Self Short Signal
Signed Sin Size Sleep Socket Sqrt Static Std Stdin Str String Struct Sub Sum Super Switch Sys T
Tan Tanh Target Tensor Test Tests Throw Tile Tiling TilingData TilingFunc Time Torch Trunc Try
Type Typedef Uint Uint8T Union Unix Using Value Void Wait Where While With Workspace Write X Xor
Y0 Yield InferShape InferDataType Core Pipe EOF NULL KernelExp DataType
""".split()  # noqa: SIM905

WORDS = """
alpha beta gate grad head key mask mean norm out pad query rate row scale shift size step sum tail
value weight x y z in is of int float for the new copy data len max min log exp abs
""".split()  # noqa: SIM905


def is_legal(prototype: dict[str, object]) -> bool:
    """Whether `opkit gen` accepts a prototype."""
    from opkit.errors import SpecError
    from opkit.schema import parse

    try:
        parse(json.dumps(prototype), file=Path("names.json"))
    except SpecError:
        return False
    return True


def random_names(count: int, seed: int = 0) -> list[str]:
    """Return identifiers as people and generators make them."""
    stream = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        if stream.random() < 0.5:
            name = "_".join(stream.choice(WORDS) for _ in range(stream.randint(1, 3)))
        else:
            letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789_"
            name = "".join(stream.choice(letters) for _ in range(stream.randint(1, 7)))
        if name.isidentifier() and not keyword.iskeyword(name):
            found.setdefault(name)
    return list(found)


def prototypes(names: Sequence[str], *, prefix: str = "Named") -> list[dict[str, object]]:
    """Return operators that use each name once as an input, output or attribute.

    Kinds take turns: element by element, row by row, without a formula.
    """
    legal = [
        name
        for name in dict.fromkeys(names)
        if is_legal(_prototype("Probe", [name], ["probe_out"], [], "blank"))
    ]
    made: list[dict[str, object]] = []
    per_operator = 30
    while legal:
        taken: list[str] = []
        macros: set[str] = set()
        rest: list[str] = []
        for name in legal:
            # Two tensors of one operator must differ in more than case.
            if len(taken) < per_operator and name.upper() not in macros:
                taken.append(name)
                macros.add(name.upper())
            else:
                rest.append(name)
        legal = rest
        while len(taken) < 4:
            taken.append(f"filler_{len(taken)}")
        kind = ("elementwise", "rowwise", "blank")[len(made) % 3]
        made.append(_prototype(f"{prefix}{len(made)}", taken[:4], taken[4:6], taken[6:], kind))
    return made


def operators(ops: Sequence[str]) -> list[dict[str, object]]:
    """Return an operator of each name that is legal; every eighth with the gradient of its name."""
    # One project has one operator of each name in files: not both of Eof and EOF.
    by_name = {op.lower(): op for op in ops}
    made = [_prototype(op, ["x", "y"], ["z"], ["alpha"], "elementwise") for op in by_name.values()]
    legal = [entry for entry in made if is_legal(entry)]
    return [e if n % 8 == 0 else {**e, "gradient": False} for n, e in enumerate(legal)]


def _prototype(
    op: str, inputs: Sequence[str], outputs: Sequence[str], attrs: Sequence[str], kind: str
) -> dict[str, object]:
    whole = " + ".join(inputs)
    scaled = " + ".join([whole, *(f"{attr}*{inputs[0]}" for attr in attrs)])
    formula = f"{scaled} + mean({inputs[0]}, axis=-1)" if kind == "rowwise" else scaled
    result: list[dict[str, object]] = [{"name": name, "type": "float16"} for name in outputs]
    if kind != "blank":
        for index, entry in enumerate(result):
            entry["formula"] = formula if index == 0 else f"{inputs[0]} - {inputs[-1]}"
    return {
        "op": op,
        "input_desc": [{"name": name, "type": "float16"} for name in inputs],
        "output_desc": result or [{"name": "result", "type": "float16"}],
        "attr": [
            {"name": name, "type": "float", "param_type": "optional", "default_value": 0.25}
            for name in attrs
        ],
    }


CHECK = """
import importlib, json, sys, traceback
import numpy as np
prototype, has_torch = sys.argv[1], sys.argv[2] == "torch"
if has_torch:
    import torch
from opkit.schema import load
from pathlib import Path
# Of one operator, the package has its name.
name = next(Path().glob("*/golden.py")).parent.name
package = importlib.import_module(name)
golden = importlib.import_module(name + ".golden")

def check(spec):
    stream = np.random.default_rng(0)
    inputs = [stream.uniform(0, 1, (3, 20)).astype("float16") for _ in spec.inputs]
    attrs = {attr.name: 0.5 for attr in spec.attrs}
    found = getattr(package, spec.name)(*inputs, **attrs)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(spec.outputs), "another number of outputs"
    if spec.has_formula:
        wanted = getattr(golden, spec.name)(*inputs, **attrs)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a.astype("float64"), b, rtol=2e-2)
    if has_torch:
        has_gradient = spec.has_formula and spec.gradient is not False
        tensors = [torch.from_numpy(array).requires_grad_(has_gradient) for array in inputs]
        module = getattr(package, spec.op)(**attrs)
        result = module(*tensors)
        results = result if isinstance(result, tuple) else (result,)
        if spec.has_formula:
            for a, b in zip(results, found):
                np.testing.assert_array_equal(a.detach().numpy(), b)
        if has_gradient:
            sum(each.sum() for each in results).backward()
            assert all(tensor.grad is not None for tensor in tensors), "an input has no gradient"
            torch.compile(module, backend="eager", fullgraph=True)(*tensors)

for spec in load(Path(prototype)):
    failure = None
    try:
        check(spec)
    except BaseException:
        failure = traceback.format_exc()[-2000:]
    print("result: " + json.dumps([spec.op, failure]), flush=True)
"""


def run(
    entries: Sequence[dict[str, object]], folder: Path, *, name: str, with_torch: bool
) -> dict[str, str]:
    """Generate, build and call a project of these operators.

    Return:
        what failed, by operator: the step and what it printed, or what calling it raised.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prototype = folder / f"{name}.json"
    prototype.write_text(json.dumps(entries))
    framework = "pytorch" if with_torch else "aclnn"
    project = folder / "project"
    opkit = [sys.executable, "-P", "-m", "opkit"] if sys.version_info >= (3, 11) else ["opkit"]
    printed = told = ""
    for command, place in (
        ([*opkit, "gen", "-q", "-i", str(prototype), "-o", str(project), "-f", framework], folder),
        ([*opkit, "build", "-q", str(project)], folder),
        (
            [sys.executable, "-c", CHECK, str(prototype), "torch" if with_torch else "numpy"],
            project,
        ),
    ):
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, check=False, env=os.environ
        )
        printed = done.stdout
        if done.returncode != 0:
            step = " ".join(command[:4])[:80]
            told = f"{step}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
            break
    results = dict(map(json.loads, re.findall(r"^result: (.*)$", printed, re.MULTILINE)))
    failed = {op: failure for op, failure in results.items() if failure is not None}
    rest = [entry for entry in entries if entry["op"] not in results]
    if not rest:
        return failed
    if len(rest) == 1:
        return {**failed, str(rest[0]["op"]): told}
    for number, half in enumerate(_halves(rest)):
        failed |= run(half, folder / str(number), name=name, with_torch=with_torch)
    return failed


def _halves(
    entries: Sequence[dict[str, object]],
) -> Iterator[Sequence[dict[str, object]]]:
    middle = len(entries) // 2
    yield entries[:middle]
    yield entries[middle:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--sets", nargs="*", default=["parameters", "operators", "random"])
    parser.add_argument("--without-torch", action="store_true")
    options = parser.parse_args()
    sets = {
        "parameters": lambda: prototypes([*PARAMETERS, *dir(builtins)]),
        "operators": lambda: operators(OPERATORS),
        "random": lambda: prototypes(random_names(options.random), prefix="Random"),
    }
    any_failed = False
    for title in options.sets:
        entries = sets[title]()
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            failed = run(
                entries, Path(folder), name=f"{title}_set", with_torch=not options.without_torch
            )
        seconds = time.monotonic() - begin
        names = sum(len(e["input_desc"]) + len(e["output_desc"]) + len(e["attr"]) for e in entries)  # type: ignore[arg-type]
        by_op = {str(entry["op"]): entry for entry in entries}
        for op, told in failed.items():
            any_failed = True
            print(f"{title}: {op} failed\n{json.dumps(by_op[op])}\n{told}\n")
        print(
            f"{title}: {len(entries) - len(failed)} of {len(entries)} operators,"
            f" {names} names of parameters, {seconds:.0f} s",
            flush=True,
        )
    sys.exit(1 if any_failed else 0)


if __name__ == "__main__":
    main()
