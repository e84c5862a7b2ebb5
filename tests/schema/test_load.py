"""Reading prototypes: the two accepted forms, and every way in which a file can be wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkit.errors import OpkitError, SpecError, UsageError
from opkit.schema import dump, load, parse

PROTOTYPES = Path(__file__).parents[2] / "examples" / "prototypes"

# The prototype as the article prints it: its quotes and line breaks were lost in print.
ARTICLE_TEXT = (
    "{ op: GELUCustom, input_desc: [ "
    "{ name: x, type: float16, format: ND, dynamic_shape: true } ], "
    "output_desc: [ { name: y, type: float16, format: ND, dynamic_shape: true } ], attr: [], "
    "kernel_name: gelu_custom, need_check_supported: true }"
)


def operator(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "op": "AddCustom",
        "input_desc": [{"name": "x", "type": ["float16", "float"], "format": ["ND", "ND"]}],
        "output_desc": [{"name": "z", "type": ["float16", "float"], "format": ["ND", "ND"]}],
    }
    return {**base, **changes}


def fails(value: Any) -> SpecError:
    text = value if isinstance(value, str) else json.dumps(value, indent=2)
    with pytest.raises(SpecError) as caught:
        parse(text, file=Path("op.json"))
    return caught.value


def line_of(value: Any, needle: str) -> int:
    lines = json.dumps(value, indent=2).splitlines()
    return next(number for number, line in enumerate(lines, 1) if needle in line)


def test_the_article_prototype_is_kept_word_for_word_plus_the_formula() -> None:
    value = json.loads((PROTOTYPES / "gelu_custom.json").read_text())
    del value["output_desc"][0]["formula"]
    printed = json.dumps(value).replace('"', "").replace("{", "{ ").replace("}", " }")
    printed = printed.replace("[{", "[ {").replace("}]", "} ]")
    assert printed == ARTICLE_TEXT


def test_the_article_form_is_one_float16_operator() -> None:
    (spec,) = load(PROTOTYPES / "gelu_custom.json")
    assert (spec.op, spec.name) == ("GELUCustom", "gelu_custom")
    assert [row.name for row in spec.variant_dtypes(0)] == ["float16", "float16"]
    assert spec.variant_count == 1
    assert spec.has_formula


def test_an_operator_without_tensors_has_one_combination() -> None:
    # One that an OpDef describes may only have attributes.
    (spec,) = load(PROTOTYPES / "gelu_custom.json")
    assert replace(spec, inputs=(), outputs=()).variant_count == 1


def test_the_msopgen_form_keeps_its_combinations_vertical() -> None:
    (spec,) = load(PROTOTYPES / "add_custom.json")
    combinations = [[row.name for row in spec.variant_dtypes(i)] for i in range(spec.variant_count)]
    assert combinations == [["float16"] * 3, ["float32"] * 3, ["int32"] * 3]
    assert spec.inputs[0].formats == ("ND", "ND", "ND")


def test_two_outputs_and_attribute_defaults_are_read() -> None:
    (spec,) = load(PROTOTYPES / "reduce_max_custom.json")
    assert [tensor.name for tensor in spec.outputs] == ["y", "idx"]
    assert [(a.name, a.type, a.required, a.default) for a in spec.attrs] == [
        ("reduceDim", "int", True, None),
        ("isKeepDim", "int", False, 1),
    ]
    assert not spec.has_formula


@pytest.mark.parametrize("path", sorted(PROTOTYPES.glob("*.json")), ids=lambda path: path.stem)
def test_what_is_written_back_reads_the_same(path: Path) -> None:
    specs = load(path)
    assert parse(dump(specs), file=path) == specs
    assert parse(dump(specs[0]), file=path) == specs[:1]


def test_aliases_stand_for_one_type() -> None:
    entry = operator(
        input_desc=[{"name": "x", "type": ["fp16", "half", "float16"]}],
        output_desc=[{"name": "z", "type": ["fp32", "float", "float32"]}],
    )
    (spec,) = parse(json.dumps(entry), file=Path("op.json"))
    assert {row.name for row in spec.inputs[0].dtypes} == {"float16"}
    assert {row.name for row in spec.outputs[0].dtypes} == {"float32"}


def test_a_list_of_one_is_repeated() -> None:
    entry = operator(output_desc=[{"name": "z", "type": "int32"}])
    (spec,) = parse(json.dumps(entry), file=Path("op.json"))
    assert [row.name for row in spec.outputs[0].dtypes] == ["int32", "int32"]
    assert spec.outputs[0].formats == ("ND", "ND")


def test_several_operators_come_in_file_order() -> None:
    text = json.dumps([operator(), operator(op="SubCustom")])
    assert [spec.name for spec in parse(text, file=Path("op.json"))] == ["add_custom", "sub_custom"]


@pytest.mark.parametrize(
    ("attr_type", "given_value", "expected"),
    [
        ("int", "1", 1),
        ("int", 7, 7),
        ("float", "1e-6", 1e-6),
        ("float", 2, 2.0),
        ("bool", "false", False),
        ("bool", True, True),
        ("string", "same", "same"),
        ("list_int", "[1,2]", (1, 2)),
        ("list_int", "[]", ()),
        ("list_float", [0.5, "1"], (0.5, 1.0)),
        ("list_bool", "[true, false]", (True, False)),
    ],
)
def test_defaults_are_read_as_values_or_as_msopgen_strings(
    attr_type: str, given_value: Any, expected: Any
) -> None:
    attr = {"name": "a", "param_type": "optional", "type": attr_type, "default_value": given_value}
    (spec,) = parse(json.dumps(operator(attr=[attr])), file=Path("op.json"))
    assert spec.attrs[0].default == expected
    assert type(spec.attrs[0].default) is type(expected)


@pytest.mark.parametrize(
    ("attr_type", "given_value"),
    [
        ("int", "one"),
        ("int", 1.5),
        ("int", 2**63),
        ("float", "nan"),
        ("float", True),
        ("bool", "yes"),
        ("string", 3),
        ("list_int", "1,2"),
        ("list_bool", 1),
    ],
)
def test_a_wrong_default_is_refused_with_its_value(attr_type: str, given_value: Any) -> None:
    attr = {"name": "a", "param_type": "optional", "type": attr_type, "default_value": given_value}
    entry = operator(attr=[attr])
    error = fails(entry)
    assert error.pointer == "/attr/0/default_value"
    assert error.line == line_of(entry, "default_value")
    assert repr(given_value) in error.message


def test_an_optional_attribute_needs_a_default() -> None:
    error = fails(operator(attr=[{"name": "a", "param_type": "optional", "type": "int"}]))
    assert error.pointer == "/attr/0"
    assert "no default_value" in error.message


def test_a_mistyped_data_type_names_the_nearest() -> None:
    entry = operator(input_desc=[{"name": "x", "type": ["flaot16", "float"]}])
    error = fails(entry)
    assert str(error) == (
        f"op.json:{line_of(entry, 'flaot16')}: /input_desc/0/type/0: "
        '"flaot16" is not a data type\n  help: did you mean "float16"?'
    )


def test_a_known_but_unsupported_type_is_called_unsupported() -> None:
    assert (
        "does not support" in fails(operator(input_desc=[{"name": "x", "type": "qint8"}])).message
    )
    attr = {"name": "a", "type": "list_string"}
    assert "not supported" in fails(operator(attr=[attr])).message


def test_a_mistyped_field_names_the_nearest_and_its_line() -> None:
    entry = operator(output_desc=[{"name": "z", "type": "int32", "fromula": "x"}])
    error = fails(entry)
    assert error.pointer == "/output_desc/0/fromula"
    assert error.line == line_of(entry, "fromula")
    assert error.help == 'did you mean "formula"?'


@pytest.mark.parametrize(
    ("changes", "pointer", "text"),
    [
        ({"op": "addCustom"}, "/op", "legal name"),
        ({"op": 3}, "/op", "expected string"),
        ({"kernel_name": "class"}, "/kernel_name", "reserved"),
        ({"output_desc": []}, "/output_desc", "empty"),
        ({"input_desc": [{"name": "2x", "type": "int8"}]}, "/input_desc/0/name", "legal name"),
        ({"input_desc": [{"name": "float", "type": "int8"}]}, "/input_desc/0/name", "reserved"),
        ({"input_desc": [{"name": "lambda", "type": "int8"}]}, "/input_desc/0/name", "reserved"),
        ({"input_desc": [{"name": "z", "type": "int8"}]}, "/output_desc/0/name", "taken"),
        ({"input_desc": [{"type": "int8"}]}, "/input_desc/0", '"name" is missing'),
        ({"input_desc": [{"name": "x", "type": []}]}, "/input_desc/0/type", "empty"),
        ({"input_desc": [{"name": "x", "type": None}]}, "/input_desc/0/type", "null"),
        (
            {"input_desc": [{"name": "x", "type": "int8", "format": "NCWH"}]},
            "/input_desc/0/format",
            "not a format",
        ),
        (
            {"input_desc": [{"name": "x", "type": "int8", "param_type": "requierd"}]},
            "/input_desc/0/param_type",
            "not a param_type",
        ),
        (
            {"input_desc": [{"name": "x", "type": ["int8"] * 3}]},
            "/output_desc/0/type",
            "has 2 entries, but /input_desc/0/type has 3",
        ),
    ],
)
def test_a_wrong_value_is_refused_at_its_pointer(
    changes: dict[str, Any], pointer: str, text: str
) -> None:
    error = fails(operator(**changes))
    assert error.pointer == pointer
    assert text in error.message
    assert error.line is not None


def test_the_same_operator_twice_is_refused() -> None:
    assert fails([operator(), operator()]).pointer == "/1/op"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "{",
        "[",
        '{"op"',
        '{"op":',
        '{"op": "A",}',
        '{"op": "A" "b": 1}',
        '{"op": NaN}',
        '{"op": Infinity}',
        '{"op": 1e999}',
        '{"op": 01}',
        '{"op": 1' + "0" * 5000 + "}",
        '{"op": "A\n"}',
        '{"op": "\\x"}',
        '{"op": 1, "op": 2}',
        "[" * 100000,
        '{"a":' * 5000,
        "{} {}",
        "// comment\n{}",
        "null",
        "[]",
        '"text"',
        "\x00",
    ],
)
def test_text_that_is_no_prototype_is_a_spec_error_with_a_line(text: str) -> None:
    error = fails(text)
    assert error.line is not None
    assert error.file == Path("op.json")


@given(st.text(alphabet='{}[]":,0123456789eE.-+ntrufalsop_x\\ \n', max_size=60))
def test_no_text_escapes_as_another_exception(text: str) -> None:
    with pytest.raises(SpecError):
        parse(text, file=Path("op.json"))


@given(st.integers(min_value=0, max_value=1000))
def test_every_truncation_is_a_spec_error(length: int) -> None:
    text = (PROTOTYPES / "reduce_max_custom.json").read_text().rstrip()
    with pytest.raises(SpecError):
        parse(text[: min(length, len(text) - 1)], file=Path("op.json"))


def test_a_file_in_another_encoding_is_refused_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "op.json"
    path.write_bytes(b'{\n"op": "A\xff"}')
    with pytest.raises(SpecError, match="not UTF-8") as caught:
        load(path)
    assert caught.value.line == 2
    path.write_text(json.dumps(operator()), encoding="utf-16")
    with pytest.raises(SpecError):
        load(path)


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "op.json"
    path.write_text(json.dumps(operator()), encoding="utf-8-sig")
    assert load(path)[0].source == path


@pytest.mark.parametrize("name", [".", "missing.json", "missing/op.json", "bad\0name.json"])
def test_what_is_not_a_readable_file_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path / name)
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, OpkitError)


@pytest.mark.parametrize("formula", ["x +", "x = 1", "lambda", "(" * 300 + "x" + ")" * 300])
def test_a_formula_that_is_no_expression_is_refused_at_its_line(formula: str) -> None:
    # It used to be found out by "opkit test", as a bug of opkit's.
    value = operator()
    value["output_desc"][0]["formula"] = formula
    error = fails(value)
    assert error.pointer == "/output_desc/0/formula"
    assert error.line == line_of(value, '"formula"')
    # What ends in a name is a formula but for its last line.
    assert ("not a formula" in error.message) == (formula != "x = 1")


TENSORS = (
    '"input_desc": [{"name": "x", "type": TYPES}, {"name": "y", "type": ["float16"]}],'
    ' "output_desc": [{"name": "z", "type": ["float16"]}]}'
)


@pytest.mark.parametrize(
    ("text", "error", "remedy"),
    [
        # Comments, quotes and keys in capitals were named without what to do.
        ("[# mine\n]", 'p.json:1: /0: expected a value, found "#", a comment', "take it out"),
        (
            "[{'op': 'A'}]",
            "p.json:1: /0: expected a key in double quotes, found \"'op'\"",
            "between double quotes",
        ),
        ('[{"op": True}]', 'p.json:1: /0/op: expected a value, found "True"', "true or false"),
        ('["op",,]', 'p.json:1: /1: expected a value, found ","', "operators.md"),
        (
            '{"Op": "Add", ' + TENSORS.replace("TYPES", '["float16"]'),
            'p.json:1: "op" is missing',
            'write "op" for "Op"',
        ),
        # The one type was taken for all combinations: float32 + float16 gave float16.
        (
            '{"op": "Add", ' + TENSORS.replace("TYPES", '["float16", "float32"]'),
            "p.json:1: /input_desc/1/type: has 1 entry, but /input_desc/0/type has 2",
            "without brackets",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_what_to_do(
    text: str, error: str, remedy: str
) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, file=Path("p.json"))
    message, _, help = str(caught.value).partition("\n  help: ")
    assert message == error
    assert remedy in help


# Each of them used to be invalid syntax.
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("h = x + 1; h * h", "(x + 1) * (x + 1)"),
        ("h = x + 1\nm = mean(h, axis=-1)\nh - m", "x + 1 - mean(x + 1, axis=-1)"),
        (["h = x*2", "h + exp(h)"], "x * 2 + exp(x * 2)"),
        (["x", "+ 1"], "x + 1"),
        ("x = x*2; x + 1", "x * 2 + 1"),
        (["axis = x", "sum(axis, axis=-1)"], "sum(x, axis=-1)"),
    ],
)
def test_a_formula_may_give_its_parts_names(given: object, expected: str) -> None:
    value = operator()
    value["output_desc"][0]["formula"] = given
    (spec,) = parse(json.dumps(value), file=Path("op.json"))
    assert spec.outputs[0].formula == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("h = x + 1", 'ends in "h = ..."'),
        (["h, m = x", "h"], "gives nothing a name"),
        (["h = x*x", *("h = h*h" for _ in range(20)), "h"], "characters"),
    ],
)
def test_lines_of_a_formula_that_say_no_value_are_refused(given: object, message: str) -> None:
    value = operator()
    value["output_desc"][0]["formula"] = given
    error = fails(value)
    assert error.pointer == "/output_desc/0/formula"
    assert message in error.message


def test_comments_are_taken() -> None:
    text = json.dumps(operator(), indent=2)
    lines = text.replace("{\n", "{ // the operator\n", 1).replace('"op"', '/* its\nname */ "op"')
    assert parse(lines, file=Path("op.json")) == parse(text, file=Path("op.json"))
    error = fails(lines.replace('"float16"', '"flaot16"', 1))
    assert error.line == 1 + next(
        at for at, line in enumerate(lines.split("\n")) if '"float16"' in line
    )
    assert 'expected a value, found "/"' in fails('{"op": /}').message


@pytest.mark.parametrize(
    ("value", "fits"), [(-(2**63), True), (2**63 - 1, True), (-(2**63) - 1, False), (2**63, False)]
)
def test_an_integer_attribute_is_one_of_64_bits(value: int, fits: bool) -> None:
    # No test held either end (benchmarks/source_mutants.py).
    attr = {"name": "n", "type": "int", "param_type": "optional", "default_value": value}
    tensor = {"type": "float32"}
    entry = {
        "op": "Ends",
        "input_desc": [{"name": "x", **tensor}],
        "output_desc": [{"name": "y", **tensor}],
        "attr": [attr],
    }
    if fits:
        (spec,) = parse(json.dumps(entry), file=Path("ends.json"))
        assert spec.attrs[0].default == value
        return
    with pytest.raises(SpecError, match="fits 64 bits"):
        parse(json.dumps(entry), file=Path("ends.json"))
