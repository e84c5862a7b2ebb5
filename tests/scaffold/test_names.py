"""Names of a prototype and names of the generated text never meet."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import types
from pathlib import Path

import pytest

from opkit import emulator
from opkit.dtypes import DTYPES
from opkit.errors import SpecError
from opkit.scaffold import render
from opkit.scaffold.identifiers import choose_stems
from opkit.schema import OpSpec, is_reserved, kernel_symbol, operator_name, package_name, parse

_FILE = Path(__file__).parents[2] / "benchmarks" / "names.py"


def load_names():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("names_benchmark", _FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


names = load_names()


def specs(entries: object) -> tuple[OpSpec, ...]:
    return parse(json.dumps(entries), file=Path("names.json"))


@pytest.mark.parametrize(
    ("op", "name", "symbol", "package"),
    [
        ("GeluCustom", "gelu_custom", "gelu_custom", "gelu_custom"),
        ("Exp", "exp", "exp_kernel", "exp"),
        ("Expf", "expf", "expf_kernel", "expf"),
        ("Select", "select", "select_kernel", "select_ops"),
        ("And", "and_op", "and_op", "and_op"),
        ("Main", "main", "main_kernel", "main"),
        ("Std", "std", "std_kernel", "std"),
        ("Tiling", "tiling", "tiling_kernel", "tiling"),
        ("Min", "min", "min_kernel", "min"),
        ("OpkitRun", "opkit_run", "opkit_run_kernel", "opkit_run"),
        ("Opkit", "opkit", "opkit_kernel", "opkit_ops"),
        ("Torch", "torch", "torch", "torch_ops"),
        ("Golden", "golden_op", "golden_op", "golden_op"),
    ],
)
def test_an_operator_gets_names_that_are_free(
    op: str, name: str, symbol: str, package: str
) -> None:
    assert operator_name(op) == name
    assert kernel_symbol(name) == symbol
    assert package_name(name) == package


@pytest.mark.parametrize("op", ["OpDef", "REQUIRED", "None"])
def test_a_class_of_the_framework_is_no_operator(op: str) -> None:
    with pytest.raises(SpecError, match="cannot name an operator"):
        specs(names._prototype(op, ["x", "y"], ["z"], [], "elementwise"))


def test_the_classes_that_are_refused_are_those_of_the_header() -> None:
    from opkit.schema.names import FRAMEWORK_CLASSES

    text = (emulator.include_dir() / "register" / "op_def.h").read_text(encoding="utf-8")
    found = set(re.findall(r"^(?:class|enum class|enum|struct) (\w+)", text, re.MULTILINE))
    found |= set(re.findall(r"\w+", re.findall(r"enum Option \{([^}]*)\}", text)[0])) - set("01234")
    assert found - {"DescriptionBuilder"} == set(FRAMEWORK_CLASSES)


def test_tensors_whose_names_differ_in_case_only_are_refused() -> None:
    with pytest.raises(SpecError, match="differ in case only"):
        specs(names._prototype("Twice", ["x", "X"], ["z"], [], "elementwise"))


def test_a_stem_avoids_words_and_what_they_are_joined_to() -> None:
    def text(stems: dict[str, str]) -> list[str]:
        lines = [f"int {stem}Global; // tile" for stem in stems.values()]
        return [*lines, 'float tile = exp(rest); log("half")']

    found = choose_stems(["tile", "x", "x_global", "half", "errno"], text)  # type: ignore[arg-type]
    assert found == {
        "tile": "tileValue",
        "x": "x",
        "x_global": "xGlobalValue",
        "half": "half",  # in a string only
        "errno": "errnoValue",  # a macro
    }


@pytest.mark.parametrize("kind", ["elementwise", "rowwise", "blank"])
def test_python_text_with_hostile_parameters_parses(kind: str) -> None:
    hostile = ["np", "self", "torch", "_bridge", "math", "_shape", "_opkit", "operators", "abs"]
    (spec,) = specs(names._prototype("Plain", hostile[:3], hostile[3:5], hostile[5:], kind))
    for path, text in render(spec).items():
        if path.suffix == ".py":
            ast.parse(text, filename=str(path))
    package = render(spec)[Path("plain/__init__.py")]  # type: ignore[index]
    assert "_opkit_ = OperatorPackage(" in package


def test_a_module_takes_attributes_that_python_would_make_private_in_a_class() -> None:
    # `__x` was asked for as `_Plain__x`.
    entry = names._prototype("Plain", ["x", "__y"], ["z"], ["alpha", "__x", "_x"], "elementwise")
    tree = {str(path): text for path, text in render(specs(entry)).items()}
    # `_x` and `__x` were both called `value_x` in the formula of the gradient.
    compile(tree["plain/_torch.py"], "_torch.py", "exec")
    classes = tree["plain/_torch.py"].partition("class Plain(")
    made: list[object] = []

    class Module:
        def __init__(self, attributes: dict[str, object]) -> None:
            made.append(attributes)

        def _run(self, *inputs: object) -> tuple[object, ...]:
            return inputs

    bridge = types.SimpleNamespace(OperatorModule=Module)
    scope = {"_bridge": bridge, "operators": types.SimpleNamespace(plain=None)}
    exec("".join(classes[1:]), scope)
    module = scope["Plain"](alpha=1.0, __x=2.0, _x=3.0)
    assert made == [{"alpha": 1.0, "__x": 2.0, "_x": 3.0}]
    assert module.forward(3, __y=4) == (3, 4)


def test_golden_takes_the_old_keyword_where_it_had_to_rename_it() -> None:
    entry = names._prototype("Plain", ["x", "y"], ["z"], ["np", "_x", "__x"], "elementwise")
    tree = {str(path): text for path, text in render(specs(entry)).items()}
    import numpy

    result = golden_of(tree["plain/golden.py"])["plain"](
        numpy.array([2.0]), numpy.array([1.0]), np=3.0, _x=0.0, __x=1.0
    )  # type: ignore[operator]
    assert float(result[0]) == 2 + 1 + 3 * 2 + 1 * 2


def golden_of(text: str) -> dict[str, object]:
    """Return what a generated reference's module has."""
    scope: dict[str, object] = {}
    exec(text.replace("from __future__ import annotations", ""), scope)
    return scope


@pytest.mark.parametrize("kernel_name", ["np", "_wide", "_sigmoid", "np_"])
def test_a_reference_reads_what_it_needs_beside_operators_of_that_name(kernel_name: str) -> None:
    entry = names._prototype("Hiding", ["x", "y"], ["z"], ["alpha"], "elementwise")
    entry["kernel_name"] = kernel_name
    entry["output_desc"][0]["formula"] = "sigmoid(x) + y*alpha"  # type: ignore[index]
    other = names._prototype("Np" if kernel_name != "np" else "Beside", ["x"], ["z"], [], "rowwise")
    tree = {str(path): text for path, text in render(specs([entry, other])).items()}
    (text,) = [text for path, text in tree.items() if path.endswith("golden.py")]
    scope = golden_of(text)
    import numpy

    zero, one = numpy.zeros(3), numpy.ones(3)
    assert scope[kernel_name](zero, one, alpha=2.0).tolist() == [2.5] * 3  # type: ignore[operator]
    assert len(scope[f"{kernel_name}_grad"](one, zero, one, alpha=2.0)) == 2  # type: ignore[operator,arg-type]
    beside = scope["np" if kernel_name != "np" else "beside"](numpy.arange(3.0))  # type: ignore[operator]
    assert beside.tolist() == [1.0, 2.0, 3.0]


def test_a_reference_of_an_operator_called_wide_takes_keywords_that_it_renamed() -> None:
    # The function inside was called `_wide` too.
    entry = names._prototype("Wide", ["x", "y"], ["z"], ["np"], "elementwise")
    tree = {str(path): text for path, text in render(specs(entry)).items()}
    import numpy

    result = golden_of(tree["wide/golden.py"])["wide"](numpy.ones(1), numpy.ones(1), np=3.0)  # type: ignore[operator]
    assert result.tolist() == [5.0]


def test_the_tables_of_data_types_in_the_binding_headers_are_ours() -> None:
    folder = emulator.include_dir() / "opkit" / "extension"
    numpy_rows = re.findall(r"\{(\d+), '(.)', (\d+), \"(\w+)\"\}", (folder / "numpy.h").read_text())
    kinds = {"float": "f", "uint": "u", "int": "i", "bool": "b"}
    assert numpy_rows == [
        (str(d.ge_value), kinds[d.name.rstrip("0123456789")], str(d.size_bytes), d.name)
        for d in DTYPES
        if d.numpy == d.name
    ]
    torch_rows = re.findall(r"\{(\d+), ScalarType::\w+\}", (folder / "torch.h").read_text())
    assert torch_rows == [str(d.ge_value) for d in DTYPES if d.torch is not None]
    test = (folder / "kernel_test.h").read_text()
    for dtype in DTYPES:
        assert f"  {dtype.ge} = {dtype.ge_value},\n" in test
        assert re.search(rf"case {dtype.ge}:\s+return {dtype.size_bytes};", test)


@pytest.mark.slow
def test_no_kernel_has_a_name_that_its_headers_give_to_something_else(tmp_path: Path) -> None:
    """Every lower-case word of ours that is in sight where a kernel is, which uses AscendC."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    source = tmp_path / "words.cpp"
    head = '#include "opkit/kernel_constants.h"\n#include "kernel_operator.h"\n'
    flags = ["-std=c++17", f"-I{emulator.include_dir()}", str(source)]
    texts = [path.read_text() for path in emulator.include_dir().rglob("*.h")]
    words = sorted(
        word
        for word in set(re.findall(r"\b[a-z][a-z0-9_]*\b", " ".join(texts)))
        if word == kernel_symbol(word) and not is_reserved(word)
    )
    assert len(words) > 300
    # Qualified look-up goes through `using namespace` as the kernel's own name does.
    declared = "".join(f"using ::{word};\n" for word in words)
    source.write_text(f"{head}using namespace AscendC;\nnamespace probe {{\n{declared}}}\n")
    limits = ["-fsyntax-only", "-fmax-errors=0", "-fdiagnostics-color=never"]
    told = subprocess.run([compiler, *limits, *flags], capture_output=True, text=True).stderr
    first_line = source.read_text().splitlines().index(f"using ::{words[0]};") + 1
    missing = {int(line) - first_line for line in re.findall(r"words\.cpp:(\d+):\d+: error", told)}
    in_sight = [word for number, word in enumerate(words) if number not in missing]
    assert in_sight == []


# A few that used to pass gen and fail to compile or to run, of each kind.
SAMPLE_PARAMETERS = """
t T target load store_ init process compute add narrow widen copy_in compute_type local_tensor ctx
torch np alignment float_ x_value forward self errno std x x_global tile columns next_ EOF
""".split()  # noqa: SIM905


@pytest.mark.slow
@pytest.mark.torch
def test_a_sample_of_hostile_names_builds_and_runs(tmp_path: Path) -> None:
    """All of them, and a thousand random ones: benchmarks/names.py."""
    entries = [
        *names.prototypes(SAMPLE_PARAMETERS)[:1],
        *names.operators(["Exp", "Printf", "Min", "EOF", "Input", "Np"]),
    ]
    assert len(entries) == 7
    assert names.run(entries, tmp_path, name="select_ops", with_torch=True) == {}
