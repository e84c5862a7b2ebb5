"""Rendered projects: complete, consistent with the prototype, and valid in each language."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from opkit.errors import SpecError, UsageError
from opkit.scaffold import render
from opkit.schema import OpSpec, load, parse

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROTOTYPES = Path(__file__).parents[2] / "examples" / "prototypes"

# Every attribute type, an optional input, two outputs, one per row: what the bindings find hardest.
MIXED = json.dumps(
    [
        {
            "op": "RmsNorm",
            "input_desc": [
                {"name": "x", "type": ["fp16", "bf16", "float"]},
                {"name": "gamma", "type": ["fp16", "bf16", "float"]},
            ],
            "output_desc": [
                {
                    "name": "y",
                    "type": ["fp16", "bf16", "float"],
                    "formula": "x*rsqrt(mean(x**2, axis=-1) + epsilon)*gamma",
                },
                {
                    "name": "scale",
                    "type": "float",
                    "formula": "rsqrt(mean(x**2, axis=-1) + epsilon)",
                },
            ],
            "attr": [
                {
                    "name": "epsilon",
                    "param_type": "optional",
                    "type": "float",
                    "default_value": 1e-6,
                }
            ],
        },
        {
            "op": "PlainCustom",
            "input_desc": [
                {"name": "x", "type": "float16"},
                {"name": "bias", "type": "float16", "param_type": "optional"},
            ],
            "output_desc": [{"name": "y", "type": "float16"}],
            "attr": [
                {
                    "name": "mode",
                    "param_type": "optional",
                    "type": "string",
                    "default_value": 'a"b\\',
                },
                {"name": "dims", "type": "list_int"},
                {
                    "name": "flags",
                    "param_type": "optional",
                    "type": "list_bool",
                    "default_value": "[true,false]",
                },
                {
                    "name": "scales",
                    "param_type": "optional",
                    "type": "list_float",
                    "default_value": [0.5],
                },
                {"name": "on", "param_type": "optional", "type": "bool", "default_value": True},
            ],
        },
    ]
)


def specs_of(name: str) -> tuple[OpSpec, ...]:
    if name == "mixed":
        return parse(MIXED, file=Path("mixed.json"))
    return load(PROTOTYPES / f"{name}.json")


def rendered(name: str, framework: str = "pytorch") -> dict[str, str]:
    specs = specs_of(name)
    project = specs[0].name if len(specs) == 1 else name
    tree = render(specs, name=project, framework=framework)
    return {str(path): text for path, text in tree.items()}


NAMES = ["gelu_custom", "add_custom", "reduce_max_custom", "mixed"]


def test_the_tree_is_the_documented_one() -> None:
    documented = """
        .clangd .gitignore .github/workflows/ci.yml CMakeLists.txt CMakePresets.json README.md
        benchmarks/benchmark_gelu_custom.py build.sh gelu_custom.json
        gelu_custom/__init__.py gelu_custom/__init__.pyi gelu_custom/_torch.py
        gelu_custom/golden.py gelu_custom/py.typed
        gelu_custom_grad.json numpy_ext/gelu_custom_module.cpp op_host/CMakeLists.txt
        op_host/gelu_custom.cpp op_host/gelu_custom_grad.cpp op_host/gelu_custom_grad_tuning.inc
        op_host/gelu_custom_tuning.inc op_kernel/CMakeLists.txt
        op_kernel/gelu_custom.cpp op_kernel/gelu_custom_grad.cpp
        op_kernel/gelu_custom_grad_tiling.h op_kernel/gelu_custom_tiling.h pyproject.toml
        scripts/build.sh scripts/profile.sh tests/test_gelu_custom.py tests/test_kernel.cpp
        torch_ext/gelu_custom_torch.cpp"""
    assert sorted(rendered("gelu_custom")) == sorted(documented.split())


def test_the_prototype_is_kept_as_it_was_given() -> None:
    text = (PROTOTYPES / "gelu_custom.json").read_text()
    tree = render(specs_of("gelu_custom"), prototype=text)
    assert tree[PurePosixPath("gelu_custom.json")] == text


def test_without_pytorch_nothing_mentions_it() -> None:
    tree = rendered("gelu_custom", "aclnn")
    assert not [path for path in tree if "torch" in path]
    assert not [path for path, text in tree.items() if "torch" in text.lower()]


@pytest.mark.parametrize("name", NAMES)
def test_every_python_file_parses_and_has_no_unused_or_unknown_names(
    name: str, tmp_path: Path
) -> None:
    for path, text in rendered(name).items():
        if path.endswith(".py"):
            ast.parse(text, filename=path)
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=E9,F", "."],
        cwd=tmp_path,
        check=True,
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_data_file_parses(name: str) -> None:
    tree = rendered(name)
    settings = tomllib.loads(tree["pyproject.toml"])
    for file in settings["tool"]["opkit"]["operators"]:
        assert parse(tree[file], file=Path(file))
    json.loads(tree["CMakePresets.json"])


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_has_its_kernel_host_and_bindings(name: str) -> None:
    tree = rendered(name)
    settings = tomllib.loads(tree["pyproject.toml"])
    project = settings["project"]["name"]
    for file in settings["tool"]["opkit"]["operators"]:
        for spec in parse(tree[file], file=Path(file)):
            assert f"op_kernel/{spec.name}.cpp" in tree
            assert f"op_host/{spec.name}.cpp" in tree
            assert f'"{spec.op}"' in tree[f"numpy_ext/{project}_module.cpp"]
            assert f'"{spec.op}"' in tree[f"torch_ext/{project}_torch.cpp"]
            assert f"def {spec.name}(" in tree[f"{project}/__init__.py"]


@pytest.mark.parametrize("name", NAMES)
def test_shell_scripts_parse(name: str) -> None:
    for path, text in rendered(name).items():
        if path.endswith(".sh"):
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_two_runs_give_the_same_text() -> None:
    assert rendered("mixed") == rendered("mixed")


def test_an_operator_without_a_formula_says_so() -> None:
    tree = rendered("reduce_max_custom")
    assert "no reference given" in tree["tests/test_reduce_max_custom.py"]
    assert "does not compute yet" in tree["README.md"]
    assert "def reduce_max_custom(" not in "".join(
        line for line in tree["reduce_max_custom/golden.py"].splitlines(True) if line[0] != " "
    )


def test_a_backward_operator_of_the_users_own_is_not_replaced() -> None:
    own = json.loads((PROTOTYPES / "gelu_custom.json").read_text())
    backward = {**own, "op": "GELUCustomGrad", "kernel_name": "gelu_custom_grad"}
    specs = parse(json.dumps([own, backward]), file=Path("gelu.json"))
    tree = {str(path): text for path, text in render(specs, name="gelu").items()}
    assert tomllib.loads(tree["pyproject.toml"])["tool"]["opkit"]["operators"] == [
        "gelu.json",
        "gelu_custom_grad_grad.json",
    ]


@pytest.mark.parametrize(
    ("framework", "unit", "text"),
    [("tf", "ai_core-Ascend910B2", '"tf"'), ("pytorch", "ai_core-Ascend999", "Ascend999")],
)
def test_an_unknown_framework_or_chip_is_refused_by_name(
    framework: str, unit: str, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        render(specs_of("gelu_custom"), framework=framework, compute_units=(unit,))


def test_a_formula_over_a_list_of_tensors_is_refused_by_name() -> None:
    entry = json.loads((PROTOTYPES / "gelu_custom.json").read_text())
    entry["input_desc"][0]["param_type"] = "dynamic"
    with pytest.raises(SpecError, match="a formula takes required ones only"):
        render(parse(json.dumps(entry), file=Path("op.json")))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_cpp_test_and_the_numpy_binding_compile(name: str, tmp_path: Path) -> None:
    pybind11 = pytest.importorskip("pybind11")
    import sysconfig

    include = Path(__file__).parents[2] / "opkit" / "emulator" / "include"
    folders = [include, pybind11.get_include(), sysconfig.get_paths()["include"]]
    for path, text in rendered(name).items():
        if not path.startswith(("numpy_ext/", "tests/test_kernel")):
            continue
        source = tmp_path / Path(path).name
        source.write_text(text)
        system = [part for folder in folders for part in ("-isystem", str(folder))]
        subprocess.run(
            ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *system, source],
            check=True,
        )


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_the_torch_binding_compiles(name: str, tmp_path: Path) -> None:
    import torch

    headers = [
        Path(__file__).parents[2] / "opkit" / "emulator" / "include",
        Path(torch.__file__).parent / "include",
    ]
    text = next(text for path, text in rendered(name).items() if path.startswith("torch_ext/"))
    source = tmp_path / "torch.cpp"
    source.write_text(text)
    system = [part for folder in headers for part in ("-isystem", str(folder))]
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    version = "-DTORCH_TARGET_VERSION=0x020a000000000000"
    subprocess.run(["c++", *flags, version, *system, source], check=True)


def test_generated_tests_judge_by_the_rule_of_opkit_test() -> None:
    # They used to have a second rule, of the mixed standard, so that the two could disagree.
    (spec,) = load(PROTOTYPES / "gelu_custom.json")
    text = render(spec)[PurePosixPath("tests/test_gelu_custom.py")]
    assert "from opkit.testing import assert_outputs" in text
    assert "standard" not in text.replace("precision_standard", "")
    assert "rtol" not in text.split("def torch(")[0]
    assert "runtime.configure(poison=True)" in text


def test_an_operator_that_hides_a_built_in_type_leaves_annotations_what_they_are() -> None:
    tensor = {"name": "x", "type": "float16"}
    text = {
        "op": "Float",
        "input_desc": [tensor],
        "output_desc": [{"name": "y", "type": "float16"}, {"name": "z", "type": "float16"}],
        "attr": [{"name": "a", "type": "float", "default_value": 1.0}],
    }
    tuples = {**text, "op": "Tuple"}
    specs = parse(json.dumps([text, tuples]), file=Path("hidden.json"))
    tree = render(specs, name="hidden")
    stub = next(text for path, text in tree.items() if path.suffix == ".pyi")
    functions = [line for line in stub.splitlines() if line.startswith("def ")]
    assert any(line.startswith("def tuple(") for line in functions)
    assert all("_builtins.tuple[" in line for line in functions)
    assert "import builtins as _builtins" in stub


def test_a_formula_of_700_terms_has_room_and_does_not_fill_the_readme() -> None:
    # All terms came before their sum: kernels of 191 tiles, which left the unified buffer.
    prototype = json.loads((PROTOTYPES / "gelu_custom.json").read_text(encoding="utf-8"))
    long = " + ".join(f"{number}*x" for number in range(700))
    prototype["output_desc"][0]["formula"] = long
    specs = parse(json.dumps(prototype), file=Path("op.json"))
    tree = {str(path): text for path, text in render(specs, name="long").items()}
    assert long[:150] in tree["README.md"]
    assert max(map(len, tree["README.md"].splitlines())) < 500
