"""Formulas as C++ loops: compiled, run, and compared with NumPy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit.algebra import FUNCTIONS, FunctionRow
from opkit.scaffold.reference import reference
from opkit.schema import OpSpec, parse

PRELUDE = """#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
struct Values { double at(int64_t r, int64_t c) const { return 0.25 + 0.5 * r + 0.125 * c; }
                double at(int64_t r) const { return 1.5 + r; } };
template <typename V> double reduce_sum(int64_t n, V v) {
  double t = 0; for (int64_t j = 0; j < n; ++j) t += v(j); return t; }
template <typename V> double reduce_mean(int64_t n, V v) { return reduce_sum(n, v) / double(n); }
template <typename V> double reduce_max(int64_t n, V v) {
  double b = v(0); for (int64_t j = 1; j < n; ++j) b = std::max(b, v(j)); return b; }
"""


def spec_of(formula: str) -> OpSpec:
    entry = {
        "op": "Sample",
        "input_desc": [{"name": "x", "type": "float"}, {"name": "g", "type": "float"}],
        "output_desc": [{"name": "y", "type": "float", "formula": formula}],
        "attr": [{"name": "a", "param_type": "optional", "type": "float", "default_value": 0.25}],
    }
    (spec,) = parse(json.dumps(entry), file=Path("op.json"))
    return spec


X = 0.25 + 0.5 * np.arange(3)[:, None] + 0.125 * np.arange(5)
G = 1.5 + np.arange(3)[:, None]

FORMULAS = {
    "0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))": (
        0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
    ),
    "x*rsqrt(mean(x**2, axis=-1) + a)": X / np.sqrt(np.mean(X**2, -1, keepdims=True) + 0.25),
    "where(x > 1, -x, log(x))": np.where(X > 1, -X, np.log(X)),
    "exp(x - max(x, axis=-1))/columns": np.exp(X - X.max(-1, keepdims=True)) / 5,
    "maximum(x, 1)*row(g)": np.maximum(X, 1) * G,
    "sigmoid(x) + softplus(x)": 1 / (1 + np.exp(-X)) + np.log1p(np.exp(X)),
}


@pytest.mark.slow
def test_the_loops_compute_what_numpy_does(tmp_path: Path) -> None:
    functions, calls = "", ""
    for index, formula in enumerate(FORMULAS):
        found = reference(spec_of(formula))
        assert found is not None
        (output,) = found.outputs
        assert not output.per_row
        body = "\n".join(output.rows)
        functions += f"""void f{index}() {{
          Values in_x, in_g; (void)in_x; (void)in_g; const double attr_a = 0.25;
          (void)attr_a; const int64_t columns = 5;
          for (int64_t row = 0; row < 3; ++row) {{ {body}
            for (int64_t column = 0; column < 5; ++column)
              std::printf("%.17g ", {output.value}); }} std::printf("\\n"); }}\n"""
        calls += f"f{index}();"
    source = tmp_path / "loops.cpp"
    source.write_text(f"{PRELUDE}{functions}int main() {{ {calls} }}\n")
    program = tmp_path / "loops"
    subprocess.run(["c++", "-std=c++17", str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    for line, expected in zip(printed.splitlines(), FORMULAS.values(), strict=True):
        found_values = np.array([float(word) for word in line.split()]).reshape(3, 5)
        np.testing.assert_allclose(found_values, expected, rtol=1e-12)


def test_a_reduction_alone_is_one_value_per_row() -> None:
    found = reference(spec_of("sum(x, axis=-1)"))
    assert found is not None
    assert found.outputs[0].per_row


def test_a_row_input_is_named() -> None:
    found = reference(spec_of("x*row(g)"))
    assert found is not None
    assert found.row_inputs == {"g"}


@pytest.mark.parametrize("row", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_function_of_the_language_has_a_loop(row: FunctionRow) -> None:
    arguments = ("x > 1", "x", "g")[-row.arity :]
    assert reference(spec_of(f"x + {row.name}({', '.join(arguments)})")) is not None
