"""What the templates see of an operator: names, signatures and type tables, worked out once."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass

from opkit.dtypes import DType
from opkit.errors import UsageError
from opkit.schema import AttrSpec, AttrValue, OpSpec

__all__ = [
    "AttrView",
    "InputView",
    "OperatorView",
    "OutputView",
    "view_operator",
]


@dataclass(frozen=True)
class AttrType:
    """How one attribute type is spelled in each language."""

    python: str
    torch: str
    """In an operator schema."""
    cpp: str
    test_value: str
    """What the generated tests pass where there is no default; Python source."""

    @property
    def stub(self) -> str:
        """The annotation in a stub, where names of modules begin with `_`."""
        return self.python.replace("Sequence", "_Sequence")

    @property
    def cpp_parameter(self) -> str:
        """The parameter type that copies nothing."""
        return f"const {self.cpp}&" if self.cpp.startswith("std::") else self.cpp


ATTR_TYPES = {
    "int": AttrType("int", "int", "int64_t", "1"),
    "float": AttrType("float", "float", "double", "0.5"),
    "bool": AttrType("bool", "bool", "bool", "True"),
    "string": AttrType("str", "str", "std::string", '"value"'),
    "list_int": AttrType("Sequence[int]", "int[]", "std::vector<int64_t>", "[1]"),
    "list_float": AttrType("Sequence[float]", "float[]", "std::vector<double>", "[0.5]"),
    "list_list_int": AttrType(
        "Sequence[Sequence[int]]", "int[][]", "std::vector<std::vector<int64_t>>", "[[1]]"
    ),
    "list_bool": AttrType("Sequence[bool]", "bool[]", "std::vector<bool>", "[True]"),
}


@dataclass(frozen=True)
class AttrView:
    """One attribute in the bindings."""

    name: str
    type: AttrType
    required: bool
    default: AttrValue | None
    """What Python may leave out, also for a required attribute: the bindings always pass it on."""

    @property
    def python_default(self) -> str:
        """The default as Python source."""
        return repr(self.default)

    @property
    def test_value(self) -> str:
        """What the generated tests pass; Python source."""
        return self.type.test_value if self.default is None else self.python_default

    @property
    def cpp_test_value(self) -> str:
        """The same, as C++ source."""
        return _cpp_value(self.type, ast.literal_eval(self.test_value))

    @property
    def cpp_default(self) -> str:
        """The default as C++ source."""
        return "" if self.default is None else _cpp_value(self.type, self.default)

    @property
    def torch_lacks_default(self) -> bool:
        """Whether torch's schemas cannot spell the default: None stands for it there."""
        return self.default is not None and self.type.torch == "int[][]"

    @property
    def stable_type(self) -> str:
        """Its type in the torch library."""
        return f"std::optional<{self.type.cpp}>" if self.torch_lacks_default else self.type.cpp

    @property
    def torch_parameter(self) -> str:
        """The parameter in a torch operator schema."""
        if self.default is None:
            return f"{self.type.torch} {_torch_name(self.name)}"
        if self.torch_lacks_default:
            return f"{self.type.torch}? {_torch_name(self.name)}=None"
        return f"{self.type.torch} {_torch_name(self.name)}={_torch_literal(self.default)}"


@dataclass(frozen=True)
class InputView:
    """One input in the bindings."""

    name: str
    is_list: bool
    """A list of tensors."""
    optional: bool
    defaults_to_none: bool
    """Optional, and so is every later input: Python can leave it out."""
    uint16_is_bfloat16: bool
    """A uint16 array carries bfloat16 here, because no variant takes uint16 itself."""
    is_narrowed: bool
    """Its kernel computes with int64 as int32: values that this does not hold are refused."""

    @property
    def torch_type(self) -> str:
        """Its type in a torch operator schema."""
        if self.is_list:
            return "Tensor[]"
        return "Tensor?" if self.optional else "Tensor"

    @property
    def stable_type(self) -> str:
        """Its type in the torch library."""
        if self.is_list:
            return "std::vector<Tensor>"
        return "std::optional<Tensor>" if self.optional else "Tensor"

    @property
    def annotation(self) -> str:
        """Its type in the stub of torch modules."""
        if self.is_list:
            return "_Sequence[_torch.Tensor]"
        return "_torch.Tensor | None" if self.optional else "_torch.Tensor"


@dataclass(frozen=True)
class OutputView:
    """One output in the bindings."""

    name: str
    formula: str | None
    is_list: bool
    """A list of tensors: one for each of the first such input."""

    @property
    def stable_type(self) -> str:
        """Its type in the torch library."""
        return "std::vector<Tensor>" if self.is_list else "Tensor"


@dataclass(frozen=True)
class OperatorView:
    """One operator as the templates see it."""

    spec: OpSpec
    op: str
    name: str
    inputs: tuple[InputView, ...]
    outputs: tuple[OutputView, ...]
    attrs: tuple[AttrView, ...]
    """Those without a default first, as parameter lists need them."""
    variants: tuple[tuple[DType, ...], ...]
    """dtypes of inputs then outputs, one entry for each supported combination, each once."""

    @property
    def python_parameters(self) -> str:
        """The parameter list of the Python function, without annotations."""
        inputs = [f"{i.name}=None" if i.defaults_to_none else i.name for i in self.inputs]
        attrs = [
            attr.name if attr.default is None else f"{attr.name}={attr.python_default}"
            for attr in self.attrs
        ]
        return ", ".join([*inputs, *(["*", *attrs] if attrs else [])])

    @property
    def has_shape_rule(self) -> bool:
        """Whether an output's shape follows by a rule of the prototype."""
        return any(tensor.shape is not None for tensor in self.spec.outputs)

    def test_shape(self, name: str, usual: str) -> str:
        """Return the shape, in C++, that the C++ test gives an input."""
        if not self.spec.is_program:
            return usual
        from opkit.compiler import shapes_at

        axes = {tensor.name: tensor.axes or () for tensor in self.spec.inputs}
        return "{" + ", ".join(map(str, shapes_at(axes, (5, 33))[name])) + "}"

    @property
    def first_list(self) -> InputView | None:
        """The input whose length says how long lists of outputs are."""
        return next((tensor for tensor in self.inputs if tensor.is_list), None)

    def _is_last(self, tensor: InputView) -> bool:
        """Whether torch lets it be left out: attributes stand behind it, also by position."""
        return tensor.defaults_to_none and all(attr.default is not None for attr in self.attrs)

    @property
    def torch_schema_cpp(self) -> str:
        """The operator's schema as a C++ string."""
        return json.dumps(self.torch_schema)

    @property
    def torch_schema(self) -> str:
        """The operator's schema as torch writes it."""
        inputs = [
            f"{i.torch_type} {_torch_name(i.name)}{'=None' if self._is_last(i) else ''}"
            for i in self.inputs
        ]
        parameters = ", ".join([*inputs, *(attr.torch_parameter for attr in self.attrs)])
        returns = ", ".join("Tensor[]" if output.is_list else "Tensor" for output in self.outputs)
        returns = returns if len(self.outputs) == 1 else f"({returns})"
        return f"{self.name}({parameters}) -> {returns}"

    @property
    def torch_variants(self) -> tuple[tuple[DType, ...], ...]:
        """The combinations whose every data type torch has."""
        return tuple(v for v in self.variants if all(row.torch is not None for row in v))


def view_operator(spec: OpSpec, *, torch: bool) -> OperatorView:
    """Return what the templates need to know of one operator.

    Raises:
        UsageError: the bindings cannot carry it; the message names what.
    """
    variants = tuple(dict.fromkeys(spec.variant_dtypes(i) for i in range(spec.variant_count)))
    usable = tuple(v for v in variants if all(row.torch is not None for row in v))
    if torch and not usable:
        raise UsageError(
            f"{spec.source}: torch has none of the data type combinations of {spec.op}",
            help="generate without a PyTorch binding: -f aclnn",
        )
    return OperatorView(
        spec=spec,
        op=spec.op,
        name=spec.name,
        inputs=tuple(_view_input(spec, index) for index in range(len(spec.inputs))),
        outputs=tuple(
            OutputView(tensor.name, tensor.formula, tensor.param_type == "dynamic")
            for tensor in spec.outputs
        ),
        attrs=tuple(sorted(map(_view_attr, spec.attrs), key=lambda attr: attr.default is not None)),
        variants=variants,
    )


def _view_attr(attr: AttrSpec) -> AttrView:
    return AttrView(attr.name, ATTR_TYPES[attr.type], attr.required, attr.default)


def _view_input(spec: OpSpec, index: int) -> InputView:
    inputs = spec.inputs
    tensor = inputs[index]
    names = {row.name for row in tensor.dtypes}
    return InputView(
        name=tensor.name,
        is_list=tensor.param_type == "dynamic",
        optional=tensor.param_type == "optional",
        defaults_to_none=all(later.param_type == "optional" for later in inputs[index:]),
        uint16_is_bfloat16="bfloat16" in names and "uint16" not in names,
        is_narrowed=spec.is_program and "int64" in names,
    )


def _cpp_value(attr_type: AttrType, value: AttrValue | list[object]) -> str:
    if isinstance(value, (tuple, list)):
        return f"{attr_type.cpp}{_cpp_list(value)}"
    return _cpp_literal(value)


def _cpp_list(items: Iterable[object]) -> str:
    texts = [
        _cpp_list(item) if isinstance(item, (tuple, list)) else _cpp_literal(item)  # type: ignore[arg-type]
        for item in items
    ]
    return f"{{{', '.join(texts)}}}"


def _cpp_literal(value: int | float | bool | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # The most negative number has no literal of its own in C++.
        return f"INT64_C({value})" if value > -(2**63) else "INT64_MIN"
    if isinstance(value, float):
        return repr(value)
    # JSON's escapes are C++'s for everything below U+0080; the rest stays UTF-8.
    return json.dumps(value, ensure_ascii=False)


def _torch_name(name: str) -> str:
    """Return the name of an argument in a torch schema, where one more word is a keyword."""
    return "Ellipsis_" if name == "Ellipsis" else name


def _torch_literal(value: AttrValue | tuple[object, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_torch_literal(item) for item in value)}]"  # type: ignore[arg-type]
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value)
