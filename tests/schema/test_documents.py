"""Prototypes in TOML and YAML, by the ending of their file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opkit.errors import SpecError
from opkit.schema import OpSpec, load, parse, prototype_entries, prototype_text

JSON = """{
    "op": "Scaled", // a comment
    "input_desc": [{"name": "x", "type": ["float16", "float32"]},],
    "output_desc": [{"name": "y", "type": ["float16", "float32"], "formula": "x * s"}],
    "attr": [{"name": "s", "type": "float", "param_type": "optional", "default_value": 1e-5}],
}
"""
TOML = """# a comment
op = "Scaled"

[[input_desc]]
name = "x"
type = ["float16", "float32"]

[[output_desc]]
name = "y"
type = ["float16", "float32"]
formula = '''
# lines
x * s
'''

[[attr]]
name = "s"
type = "float"
param_type = "optional"
default_value = 1e-5
"""
YAML = """# a comment
op: Scaled
input_desc:
  - {name: x, type: [float16, float32]}
output_desc:
  - name: y
    type: [float16, float32]
    formula: |
      x * s
attr:
  - {name: s, type: float, param_type: optional, default_value: 1e-5}
"""


def read(name: str, text: str) -> OpSpec:
    (spec,) = parse(text, file=Path(name))
    return spec


def shown(spec: OpSpec) -> list[object]:
    formulas = [(tensor.formula or "").strip() for tensor in spec.outputs]
    return [spec.op, [t.name for t in spec.inputs], spec.inputs[0].dtypes, formulas, spec.attrs]


@pytest.mark.parametrize(("name", "text"), [("s.toml", TOML), ("s.yaml", YAML), ("s.yml", YAML)])
def test_what_a_prototype_says_is_the_same_in_each_form(name: str, text: str) -> None:
    assert shown(read(name, text)) == shown(read("s.json", JSON))


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("s.toml", TOML.replace('"float16"', '"flaot16"', 1), 6),
        ("s.toml", TOML.replace("[[attr]]", "[[attr]"), 16),
        ("s.yaml", YAML.replace("float16", "flaot16", 1), 4),
        ("s.yaml", YAML.replace("op: Scaled", "op: [Scaled"), 3),
        ("s.yaml", YAML.replace("    formula", "    name: z\n    formula"), 8),
    ],
)
def test_what_is_wrong_is_named_with_its_line(name: str, text: str, line: int) -> None:
    with pytest.raises(SpecError) as caught:
        read(name, text)
    assert caught.value.line == line, caught.value


def test_words_that_yaml_once_read_as_truth_are_text() -> None:
    spec = read("s.yaml", YAML.replace("name: x", "name: no").replace("x * s", "no * s"))
    assert spec.inputs[0].name == "no"


def test_a_project_keeps_json(tmp_path: Path) -> None:
    for name, text in (("s.toml", TOML), ("s.yaml", YAML)):
        (tmp_path / name).write_text(text)
        kept = prototype_text(tmp_path / name)
        assert shown(read("s.json", kept)) == shown(load(tmp_path / name)[0])
    (tmp_path / "s.json").write_text(JSON)
    assert prototype_text(tmp_path / "s.json") == JSON
    # Comments made `opkit gen -m 1` fail.
    assert prototype_entries(tmp_path / "s.json")[0]["op"] == "Scaled"
    assert json.loads(prototype_text(tmp_path / "s.toml"))["op"] == "Scaled"
