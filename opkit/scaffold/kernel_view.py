"""What the kernel and host templates see of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from opkit.chips import DEFAULT_CHIP, Chip, find_chip
from opkit.errors import SpecError, UsageError
from opkit.scaffold.formula import EVENTS, ParsedFormulas, check_formulas, parse
from opkit.scaffold.gap import Layout, blank_layout
from opkit.scaffold.identifiers import camel, upper
from opkit.scaffold.shapes import (
    default_rule,
    infer_shape_source,
    rule_attributes,
    shape_helpers,
)
from opkit.schema import ATTR_SETTERS, AttrSpec, OpSpec, TensorSpec, snake_case

__all__ = ["AttrView", "KernelView", "ScalarView", "TensorView", "check_chips", "kernel_views"]

_OPDEF_MEMBERS = frozenset(
    {"AICore", "Attr", "Input", "Output", "SetInferDataType", "SetInferShape"}
)
_ATTR_TYPES = {"int": "int64_t", "float": "float", "bool": "bool"}
# Bytes per element of the largest data types that DataCopyPad takes on every chip that has it.
_LARGEST_COPIED_BYTES = 4
_PARAM_TYPES = {"required": "REQUIRED", "optional": "OPTIONAL", "dynamic": "DYNAMIC"}


@dataclass(frozen=True)
class TensorView:
    """One input or output."""

    index: int
    name: str
    stem: str
    """lowerCamelCase: what C++ variables start with."""
    type: str
    """The template parameter."""
    macro: str
    """The macro that holds its type in a kernel build."""
    param_type: str
    ge_dtypes: tuple[str, ...]
    formats: tuple[str, ...]
    per_row: bool
    """It has one value per row."""
    may_broadcast: bool
    """Its shape may be the last axis alone."""
    formula: str
    getter: str
    """Which of a context's functions finds it: `Input`, `RequiredInput`, ..."""
    getter_arguments: str

    @property
    def is_list(self) -> bool:
        """A list of tensors."""
        return self.param_type == "DYNAMIC"

    @property
    def is_optional(self) -> bool:
        """It may not be given."""
        return self.param_type == "OPTIONAL"

    @property
    def flag(self) -> str:
        """The C++ variable that says whether an optional input is given."""
        return f"has{upper(self.stem)}"

    @property
    def given_if(self) -> tuple[str, ...]:
        """The C++ conditions under which there is anything to copy."""
        return (self.flag,) if self.is_optional else ()

    @property
    def walked_if(self) -> tuple[str, ...]:
        """Those under which a kernel of rows copies it with each tile, not once."""
        return (*self.given_if, *((f"!{self.stem}Broadcast",) if self.may_broadcast else ()))


@dataclass(frozen=True)
class AttrView:
    """One attribute in the host code."""

    index: int
    name: str
    stem: str
    required: bool
    setter: str
    default: str
    """C++ source of the default; empty without one."""
    type: str
    """What GetAttrPointer reads; empty for types that do not reach the kernel."""


@dataclass(frozen=True)
class ScalarView:
    """One field of the tiling data that the kernel computes with."""

    name: str
    type: str
    value: str
    """C++ source that gives it in TilingFunc, over attributes and `columns`."""
    note: str


@dataclass(frozen=True)
class KernelView:
    """One operator."""

    op: str
    name: str
    kind: str
    """`elementwise`, `rowwise`, `program` where the compiler makes the kernel, or `blank` where no
    tiling follows from the prototype."""
    walks: str
    """How the compiler's kernel of formulas over inputs of one shape walks them: `elementwise` or
    `rowwise`; else empty."""
    infers_by_rule: bool
    """InferShape follows the prototype's `shape` rules; else outputs have the largest input's."""
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    attrs: tuple[AttrView, ...]
    scalars: tuple[ScalarView, ...]
    keepdims: tuple[bool, ...]
    inferred_dtypes: tuple[str, ...]
    """C++ source of each output's dtype; empty where it takes a table."""
    dtype_rows: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """For the table: inputs' and outputs' dtypes of each variant."""
    copies_bytes: bool
    """A tensor has a data type that DataCopyPad takes as bytes alone."""
    soc_configs: tuple[str, ...]
    shape_inputs: tuple[TensorView, ...]
    """Whose shapes InferShape reads, where no formula says the rule."""
    shape_attrs: tuple[tuple[AttrView, str], ...]
    """The attributes that it reads, with their types."""
    shape_statements: tuple[tuple[str, ...], ...]
    """What it does for each output."""
    shape_helpers: frozenset[str]
    op_file: str
    """The kernel's file where the framework would not find it by the operator's type."""
    symbol: str
    """The kernel function."""

    @property
    def base(self) -> str:
        """How the OpDef class names its base's members, where it has the name of one itself."""
        return "this->OpDef::" if self.op in _OPDEF_MEMBERS else "this->"

    @property
    def is_macro_like(self) -> bool:
        """Whether the operator's type may be a macro of a header: `EOF`."""
        return len(self.op) > 1 and self.op.isupper()

    @property
    def class_name(self) -> str:
        """The kernel class."""
        return "Kernel" + upper(camel(self.name))

    @property
    def struct(self) -> str:
        """The tiling structure."""
        return upper(camel(self.name)) + "TilingData"

    @property
    def prefix(self) -> str:
        """What the operator's constants start with."""
        return "k" + upper(camel(self.name))

    @property
    def tensors(self) -> tuple[TensorView, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def tile_inputs(self) -> tuple[TensorView, ...]:
        """Inputs with one value per element."""
        return tuple(tensor for tensor in self.inputs if not tensor.per_row)

    @property
    def has_lists(self) -> bool:
        """Whether an input is a list of tensors."""
        return any(tensor.is_list for tensor in self.inputs)

    @property
    def has_optional(self) -> bool:
        """Whether an input may not be given."""
        return any(tensor.is_optional for tensor in self.inputs)

    @property
    def buffer_count(self) -> int:
        """Buffers a queue, at most: each takes one of the events between its two pipes."""
        longest = max(len(self.inputs), len(self.outputs))
        return max(1, min(2, EVENTS // max(longest, 1)))

    @property
    def most_buffers(self) -> int:
        """Buffers a queue that a tuned size may ask for; a row's kernel copies one tile ahead."""
        longest = max(len(self.inputs), len(self.outputs), 1)
        return max(1, min(2 if self.kind == "rowwise" else 4, EVENTS // longest))

    @property
    def is_tuned(self) -> bool:
        """Whether TilingFunc reads the sizes that `opkit tune` found."""
        return bool(self.walks or self.kind in ("elementwise", "rowwise")) and bool(self.inputs)

    @property
    def has_buffers(self) -> bool:
        """Whether a tuned size says how many buffers a queue has."""
        return not self.walks

    @property
    def has_parts(self) -> bool:
        """Whether a tuned size says in how many parts a row comes."""
        return self.walks == "rowwise"

    @property
    def counts_outputs(self) -> bool:
        """Whether the number of output tensors is known at run time only."""
        return any(tensor.param_type != "REQUIRED" for tensor in self.outputs)


def kernel_views(
    spec: OpSpec, *, compute_units: tuple[str, ...]
) -> Callable[[Mapping[str, str]], KernelView]:
    """Return what gives the templates' view of an operator, for a choice of C++ stems by name.

    Raises:
        SpecError: a formula is wrong, or does not fit the operator's data types.
        UsageError: an unknown compute unit, or one that the generated kernel cannot run on.
    """
    chips = [find_chip(unit) for unit in compute_units]
    soc_configs = tuple(dict.fromkeys(chip.soc_config for chip in chips))
    parsed = parse(spec) if spec.has_formula else None
    if parsed is None:
        layout = blank_layout(spec, chips=chips)
        return lambda stems: _view(spec, stems, soc_configs, None, layout=layout)
    check_chips(chips)
    check_formulas(parsed)
    return lambda stems: _view(spec, stems, soc_configs, parsed)


def check_chips(chips: Sequence[Chip]) -> None:
    """Refuse chips that lack what a formula's kernel is made of.

    Raises:
        UsageError: a chip has no DataCopyPad.
    """
    for chip in chips:
        if not chip.has_data_copy_pad:
            raise UsageError(
                f"the kernel that a formula gives does not run on {chip.name}",
                help=f"it uses DataCopyPad, which {DEFAULT_CHIP} has: -c ai_core-{DEFAULT_CHIP}",
            )


def _view(
    spec: OpSpec,
    stems: Mapping[str, str],
    soc_configs: tuple[str, ...],
    parsed: ParsedFormulas | None,
    *,
    layout: Layout | None = None,
) -> KernelView:
    per_row = set(parsed.row_inputs) if parsed else set()
    per_row |= {output.name for output in parsed.outputs if output.per_row} if parsed else set()
    per_row |= set(layout.per_row) if layout else set()
    tile_inputs = [t.name for t in spec.inputs if t.name not in per_row]
    kind = parsed.kind if parsed else layout.kind if layout else "blank"
    rowwise = kind == "rowwise"
    first = tile_inputs[0] if tile_inputs else ""

    def tensor(index: int, one: TensorSpec, is_input: bool) -> TensorView:
        may_broadcast = kind != "blank" and is_input and one.name in tile_inputs
        may_broadcast = may_broadcast and len(tile_inputs) > 1
        if rowwise and one.name == first:
            may_broadcast = False
        return TensorView(
            index=index,
            name=one.name,
            stem=stems[one.name],
            type=upper(stems[one.name]),
            macro=f"DTYPE_{one.name.upper()}",
            param_type=_PARAM_TYPES[one.param_type],
            ge_dtypes=tuple(f"ge::{dtype.ge}" for dtype in one.dtypes),
            formats=tuple(f"ge::FORMAT_{name}" for name in one.formats),
            per_row=one.name in per_row,
            may_broadcast=may_broadcast,
            formula=one.formula or "",
            getter=_getter(spec, index) if is_input else "Output",
            getter_arguments=f"{index}, 0" if one.param_type == "dynamic" else f"{index}",
        )

    attrs = tuple(_attr(index, attr, stems[attr.name]) for index, attr in enumerate(spec.attrs))
    kept = [(attr.name, attr.type) for attr in spec.attrs if attr.type in _ATTR_TYPES]
    scalars = tuple(
        ScalarView(stems[name], _ATTR_TYPES[kind], stems[name], f"attribute {name}")
        for name, kind in kept
    )
    inputs = tuple(tensor(i, t, True) for i, t in enumerate(spec.inputs))
    rules = () if parsed else tuple(default_rule(spec, output) for output in spec.outputs)
    read = {name for rule in rules if rule is not None for name in rule.tensors}
    rule_attrs = rule_attributes(spec)
    return KernelView(
        op=spec.op,
        name=spec.name,
        kind=kind,
        walks="",
        infers_by_rule=parsed is None and not (layout and layout.infers_largest),
        inputs=inputs,
        outputs=tuple(tensor(i, t, False) for i, t in enumerate(spec.outputs)),
        attrs=attrs,
        scalars=scalars,
        keepdims=tuple(output.keepdims for output in parsed.outputs) if parsed else (),
        inferred_dtypes=tuple(_inferred_dtype(spec, output) for output in spec.outputs),
        dtype_rows=tuple(
            (
                tuple(f"ge::{t.dtypes[v].ge}" for t in spec.inputs),
                tuple(f"ge::{t.dtypes[v].ge}" for t in spec.outputs),
            )
            for v in range(spec.variant_count)
        ),
        copies_bytes=any(
            dtype.name == "bool" or dtype.size_bytes > _LARGEST_COPIED_BYTES
            for one in (*spec.inputs, *spec.outputs)
            for dtype in one.dtypes
        ),
        soc_configs=soc_configs,
        shape_inputs=tuple(one for one in inputs if one.name in read),
        shape_attrs=tuple(
            (attr, given.type)
            for attr, given in zip(attrs, spec.attrs, strict=True)
            if attr.name in rule_attrs
        ),
        shape_statements=tuple(
            () if parsed else infer_shape_source(spec, output, stems) for output in spec.outputs
        ),
        shape_helpers=shape_helpers(spec),
        op_file="" if spec.symbol == snake_case(spec.op) else spec.name,
        symbol=spec.symbol,
    )


def _getter(spec: OpSpec, index: int) -> str:
    """Return how a context finds an input; plain numbers count tensors, not the OpDef's entries."""
    kind = spec.inputs[index].param_type
    if all(tensor.param_type == "required" for tensor in spec.inputs[: index + 1]):
        return "Input"
    return {"required": "RequiredInput", "optional": "OptionalInput"}.get(kind, "DynamicInput")


def _attr(index: int, attr: AttrSpec, stem: str) -> AttrView:
    setter = ATTR_SETTERS.get(attr.type)
    if setter is None:
        raise SpecError(
            f'attribute "{attr.name}" has type {attr.type}, which a generated host cannot declare',
            pointer="/attr",
            help=f"use one of {', '.join(ATTR_SETTERS)}",
        )
    default = "" if attr.default is None or attr.required else _cpp_value(attr.type, attr.default)
    return AttrView(
        index, attr.name, stem, attr.required, setter, default, _ATTR_TYPES.get(attr.type, "")
    )


def _cpp_value(kind: str, value: object) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(_cpp_value(kind.removeprefix("list_"), item) for item in value) + "}"
    if kind == "bool":
        return "true" if value else "false"
    if kind == "int":
        # The most negative number has no literal of its own in C++.
        return "INT64_MIN" if value == -(2**63) else str(value)
    if kind == "float" and isinstance(value, float) and not abs(value) < 3.4028236e38:
        # As the cast to float that every caller's double goes through.
        return "__builtin_inff()" if value > 0 else "-__builtin_inff()"
    if kind == "float":
        return float_literal(float(str(value)))
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def float_literal(value: float) -> str:
    """Return a number as the shortest float literal that rounds to it."""
    # Imported here: numpy prints the shortest decimal of a float32.
    import numpy as np

    text = str(np.float32(value))
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}f" if exponent else f"{mantissa}f"


def _inferred_dtype(spec: OpSpec, output: TensorSpec) -> str:
    for index, one in enumerate(spec.inputs):
        if one.dtypes == output.dtypes and one.param_type != "optional":
            arguments = f"{index}, 0" if one.param_type == "dynamic" else f"{index}"
            return f"context->Get{_getter(spec, index)}DataType({arguments})"
    if len(set(output.dtypes)) == 1:
        return f"ge::{output.dtypes[0].ge}"
    return ""
