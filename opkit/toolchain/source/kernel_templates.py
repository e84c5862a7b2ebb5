"""Kernels that are templates: the instances that a project declares, each with its tiling key.

The declarations (ASCENDC_TPL_ARGS_DECL and ASCENDC_TPL_SEL) are read out of the preprocessed
kernel, where macros of the project's own are expanded. The header `template_argument.h` tells the
tiling function the same keys at run time.
Source: Ascend C API, utilities, tiling template programming.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opkit.dtypes import TENSOR_DTYPES
from opkit.errors import BuildError
from opkit.schema import snake_case
from opkit.toolchain.source.launch_rewrite import task_type_of
from opkit.toolchain.source.tokens import (
    Token,
    TokenKind,
    matching_close,
    significant,
    split_at_commas,
    tokenize,
)

__all__ = [
    "LIST_TEMPLATES",
    "Instance",
    "beside_template",
    "is_plain_function",
    "read_instances",
]

LIST_TEMPLATES = "OPKIT_LIST_TEMPLATES"
"""Defined where a kernel is preprocessed for its declarations: they stay as they are written."""

_DECL, _SEL, _ARGS_SEL = "ASCENDC_TPL_ARGS_DECL", "ASCENDC_TPL_SEL", "ASCENDC_TPL_ARGS_SEL"
_DECLARATION = re.compile(r"\bASCENDC_TPL_(?:ARGS_DECL|SEL)\s*\(")
_MACRO = re.compile(r"ASCENDC_TPL_(?P<kind>\w+?)_(?P<role>DECL|SEL)$")
_MODE = re.compile(r"ASCENDC_TPL_UI_(RANGE|LIST|MIX)$")
_TYPE_NAME = re.compile(r"C_DT_(\w+)$")
_OF_TENSOR = ("ASCENDC_TPL_INPUT", "ASCENDC_TPL_OUTPUT")
_WIDTHS = {"DTYPE": 8, "DATATYPE": 8, "FORMAT": 8, "BOOL": 1, "KERNEL_TYPE": 8}
_KEY_BITS = 64
# A compiler takes minutes for as many; the documents name no limit.
_MOST_INSTANCES = 4096
_C_TYPES = {row.ge.removeprefix("DT_"): row for row in TENSOR_DTYPES}
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])[uUlL]+$")
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}


@dataclass(frozen=True)
class Instance:
    """One instance of a kernel template."""

    arguments: tuple[str, ...]
    """The template's arguments, as C++."""
    tiling_key: int
    """What the tiling function sets to choose it."""
    task_type: str | None
    """Which cores it runs on (KERNEL_TYPE_...), where its combination says so."""
    tiling_struct: str | None = None
    """What GET_TILING_DATA reads, where its combination says so."""


@dataclass(frozen=True)
class _Value:
    number: int
    text: str
    """As it is written, for template arguments and messages."""


@dataclass(frozen=True)
class _Call:
    """One macro call, such as ASCENDC_TPL_BOOL_SEL(isSplit, 0, 1)."""

    kind: str
    arguments: tuple[tuple[Token, ...], ...]


@dataclass(frozen=True)
class _Parameter:
    name: str
    kind: str
    width: int
    values: tuple[_Value, ...]
    is_type: bool
    follows: tuple[bool, int] | None
    """The input (True) or output of this number whose type it takes."""

    def field(self, value: _Value) -> int:
        """Return what a value becomes in the tiling key."""
        if self.kind != "UINT":
            return value.number
        return [known.number for known in self.values].index(value.number)


def read_instances(
    text: str, *, op: str, inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[Instance, ...]:
    """Return the instances that a preprocessed kernel declares, each tiling key once.

    Args:
        text: the kernel, preprocessed with LIST_TEMPLATES defined.
        op: the operator, for messages and where a source declares several.
        inputs: types of the variant's inputs as `DT_...` names; a parameter that follows an input
            (ASCENDC_TPL_INPUT) gets instances for this type only.
        outputs: types of its outputs.
    Raises:
        BuildError: there is no declaration, or one that cannot be read.
    """
    reader = _Reader(op, text)
    declared, combinations = reader.declarations()
    parameters = tuple(reader.parameter(call) for call in declared)
    if sum(parameter.width for parameter in parameters) > _KEY_BITS:
        raise reader.error(f"its template parameters need more than {_KEY_BITS} bits")
    instances: dict[int, Instance] = {}
    total = 0
    for combination in combinations:
        of_all = reader.task_type(combination)
        struct = _tiling_struct(combination)
        choices = [
            _of_variant(parameter, reader.choice(parameter, combination), inputs, outputs)
            for parameter in parameters
        ]
        total += math.prod(map(len, choices))
        if total > _MOST_INSTANCES:
            raise reader.error(f"it declares more than {_MOST_INSTANCES} instances of its kernel")
        for values in itertools.product(*choices):
            key = shift = 0
            for parameter, value in zip(parameters, values, strict=True):
                key |= parameter.field(value) << shift
                shift += parameter.width
            arguments = tuple(
                reader.argument(parameter, value)
                for parameter, value in zip(parameters, values, strict=True)
            )
            own = [
                reader.known_task_type(value.text)
                for parameter, value in zip(parameters, values, strict=True)
                if parameter.kind == "KERNEL_TYPE"
            ]
            task_type = own[0] if own else of_all
            instances.setdefault(key, Instance(arguments, key, task_type, struct))
    if not instances:
        types = ", ".join((*inputs, *outputs))
        raise reader.error(f"no ASCENDC_TPL_ARGS_SEL is for the types {types}")
    return tuple(instances.values())


def is_plain_function(text: str, name: str) -> bool:
    """Whether a preprocessed kernel is no template, though another branch of its source has one.

    Args:
        text: as `read_instances`.
        name: the kernel's.
    """
    return _DECLARATION.search(text) is None and _plain_function(text, name) is not None


def beside_template(text: str, name: str) -> tuple[str, str]:
    """Return how a plain function is named beside a template of its name, and what declares that.

    Args:
        text: of a kernel that `is_plain_function`.
        name: the kernel's.
    """
    found = _plain_function(text, name)
    template = re.compile(rf"\btemplate\s*<[^;{{}}]*>[^;{{}}]*\bvoid\s+{re.escape(name)}\s*\(")
    if found is None or template.search(text) is None:
        return name, ""
    alias = f"opkit_plain_{name}"
    return alias, f'extern "C" void {alias}({found[1]}) __attribute__((alias("{name}")));\n'


def _plain_function(text: str, name: str) -> re.Match[str] | None:
    # No template has C's linkage.
    return re.search(rf'\bextern\s+"C"[^;{{}}]*\b{re.escape(name)}\s*\(([^)]*)\)', text)


def _tiling_struct(combination: Sequence[_Call]) -> str | None:
    for call in combination:
        if call.kind == "TILING_STRUCT" and call.arguments:
            return _written(call.arguments[0])
    return None


def _of_variant(
    parameter: _Parameter, values: Sequence[_Value], inputs: Sequence[str], outputs: Sequence[str]
) -> list[_Value]:
    if parameter.follows is None:
        return list(values)
    is_input, index = parameter.follows
    types = inputs if is_input else outputs
    if index >= len(types):
        return list(values)
    wanted = "C_" + types[index]
    return [value for value in values if value.text == wanted]


@dataclass
class _Reader:
    """Reads the declarations of one preprocessed kernel."""

    op: str
    text: str
    tokens: list[Token] = field(init=False)

    def __post_init__(self) -> None:
        # The declarations alone: the rest of a preprocessed kernel is long.
        places = [match.start() for match in _DECLARATION.finditer(self.text)]
        if not places:
            self.tokens = []
            return
        end = self.text.find(";", self.text.rfind("ASCENDC_TPL_"))
        declared = self.text[places[0] : end if end >= 0 else None]
        self.tokens = significant(tokenize(declared))

    def error(self, message: str) -> BuildError:
        return BuildError(
            f"{self.op}: {message}",
            help="see ASCENDC_TPL_ARGS_DECL and ASCENDC_TPL_SEL in its tiling key header",
        )

    def declarations(self) -> tuple[list[_Call], list[list[_Call]]]:
        """Return the declared parameters and the combinations, of this operator."""
        found = list(_calls(self.tokens))
        parameters, selections = (
            [arguments for name, arguments in found if name == wanted] for wanted in (_DECL, _SEL)
        )
        # Either may come first.
        pairs = list(zip(parameters, selections, strict=False))
        if not pairs or len(parameters) != len(selections):
            raise self.error(
                "its kernel is a template, and no pair of ASCENDC_TPL_ARGS_DECL and ASCENDC_TPL_SEL"
                " says which instances to build"
            )
        own = (self.op.lower(), snake_case(self.op))
        chosen = [pair for pair in pairs if pair[0] and _written(pair[0][0]).lower() in own]
        if not chosen and len(pairs) > 1:
            names = ", ".join(_written(declared[0]) for declared, _ in pairs if declared)
            raise self.error(f"its source declares template parameters of {names}, not of it")
        declared, selected = (chosen or pairs)[-1]
        combinations = []
        for part in selected:
            inner = next(_calls(part), None)
            if inner is None or inner[0] != _ARGS_SEL:
                raise self.error(f"ASCENDC_TPL_SEL has {_written(part)} for a combination")
            combinations.append([self._call(item) for item in inner[1]])
        return [self._call(part) for part in declared[1:]], combinations

    def _call(self, part: Sequence[Token]) -> _Call:
        found = next(_calls(part), None)
        match = _MACRO.match(found[0]) if found else None
        if found is None or match is None:
            raise self.error(f"{_written(part)} is no template parameter")
        return _Call(match["kind"].removeprefix("SHARED_"), tuple(map(tuple, found[1])))

    def parameter(self, call: _Call) -> _Parameter:
        """Return a parameter as ASCENDC_TPL_..._DECL has it."""
        name, *rest = call.arguments
        width = _WIDTHS.get(call.kind)
        if call.kind == "UINT" and rest:
            width = self._number(rest.pop(0))
        if width is None:
            raise self.error(f"{_written(name)}: opkit has no ASCENDC_TPL_{call.kind}_DECL")
        of_tensor = next((part for part in rest if part and part[0].text in _OF_TENSOR), None)
        values = self._values(call.kind, [part for part in rest if part is not of_tensor])
        native = [bool(_TYPE_NAME.match(value.text)) for value in values]
        is_type = call.kind == "DATATYPE" or (call.kind == "DTYPE" and bool(native) and all(native))
        follows = None
        if of_tensor is not None:
            index = self._number(of_tensor[2:-1])
            follows = (of_tensor[0].text == _OF_TENSOR[0], index)
        parameter = _Parameter(_written(name), call.kind, width, values, is_type, follows)
        for value in values:
            if parameter.field(value) >> width:
                raise self.error(f"{parameter.name}: {value.text} does not fit into {width} bits")
        return parameter

    def choice(self, parameter: _Parameter, combination: Sequence[_Call]) -> tuple[_Value, ...]:
        """Return the values that a combination allows a parameter."""
        call = next(
            (call for call in combination if _written(call.arguments[0]) == parameter.name), None
        )
        if call is None:
            raise self.error(f"an ASCENDC_TPL_ARGS_SEL has no value for {parameter.name}")
        values = self._values(parameter.kind, call.arguments[1:])
        known = {value.number for value in parameter.values}
        for value in values:
            if known and value.number not in known:
                raise self.error(f"{parameter.name} is declared without {value.text}")
        return values

    def task_type(self, combination: Sequence[_Call]) -> str | None:
        """Return which cores a combination runs on, where that is no template argument."""
        for call in combination:
            if call.kind == "KERNEL_TYPE" and len(call.arguments) == 1:
                return self.known_task_type(_written(call.arguments[0]))
        return None

    def known_task_type(self, name: str) -> str:
        """Return the KERNEL_TYPE_ name of an ASCENDC_TPL_ one."""
        task_type = task_type_of(name)
        if task_type is None:
            raise self.error(f"opkit has no kernels of the type {name}")
        return task_type

    def argument(self, parameter: _Parameter, value: _Value) -> str:
        """Return a value as a template argument."""
        if not parameter.is_type:
            return str(value.number)
        name = _TYPE_NAME.match(value.text)
        row = _C_TYPES.get(name[1]) if name else None
        if row is None:
            raise self.error(f"{parameter.name}: opkit has no type for {value.text}")
        return row.kernel

    def _values(self, kind: str, parts: Sequence[Sequence[Token]]) -> tuple[_Value, ...]:
        given = list(parts)
        if kind != "UINT":
            return tuple(_Value(self._number(part), _written(part)) for part in given)
        mode = _MODE.match(_written(given[0])) if given else None
        if mode is None:
            raise self.error("an unsigned parameter says no ASCENDC_TPL_UI_ mode")
        numbers = [self._number(part) for part in given[1:]]
        values: list[int] = []
        if mode[1] != "LIST":
            count, *numbers = numbers or [0]
            if len(numbers) < 2 * count:
                raise self.error(f"{count} ranges need {2 * count} limits, not {len(numbers)}")
            for low, high in zip(numbers[: 2 * count : 2], numbers[1 : 2 * count : 2], strict=True):
                values += range(low, high + 1)
            numbers = numbers[2 * count :]
        if mode[1] != "RANGE":
            values += numbers
        return tuple(_Value(number, str(number)) for number in values)

    def _number(self, part: Sequence[Token]) -> int:
        """Return the value of a constant expression."""
        words = [self._word(token) for token in part]
        try:
            tree = ast.parse(" ".join(words), mode="eval")
            return _evaluated(tree.body)
        except (SyntaxError, ValueError, ZeroDivisionError) as err:
            raise self.error(f"{_written(part)} is no constant that opkit can read") from err

    def _word(self, token: Token) -> str:
        if token.kind is TokenKind.NUMBER:
            return _SUFFIX.sub("", token.text.replace("'", ""))
        if token.kind is not TokenKind.IDENTIFIER:
            return token.text
        if token.text in ("true", "false"):
            return str(int(token.text == "true"))
        # Constants of the source: enumerators and constexpr variables.
        defined = re.search(rf"\b{token.text}\s*=\s*([^,;{{}}]+)[,;}}]", self.text)
        if defined is None:
            raise self.error(f"{token.text} is no constant with a value that opkit can read")
        return f"({self._number(significant(tokenize(defined[1])))})"


def _evaluated(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    raise ValueError(ast.dump(node))


def _calls(tokens: Sequence[Token]) -> Iterator[tuple[str, list[list[Token]]]]:
    """Yield name and arguments of the outermost ASCENDC_TPL_ calls."""
    position = 0
    while position + 1 < len(tokens):
        token = tokens[position]
        is_call = token.text.startswith("ASCENDC_TPL_") and tokens[position + 1].text == "("
        close = matching_close(tokens, position + 1) if is_call else None
        if close is not None:
            yield token.text, split_at_commas(tokens[position + 2 : close])
            position = close
        position += 1


def _written(part: Sequence[Token]) -> str:
    return "".join(token.text for token in part)
