"""The statements of TilingFunc that read the named sizes off the inputs' shapes, and check them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opkit import compiler
from opkit.scaffold.formula import leading_size
from opkit.schema import OpSpec, TensorSpec, multiple_of

from .lists import input_places, tensor_axes
from .variants import Variant

__all__ = ["limit_statements", "size_statements"]


def size_statements(spec: OpSpec, stems: Mapping[str, str]) -> tuple[str, ...]:
    """Return what gives each named size its value, and refuses shapes that do not fit.

    Args:
        stems: what the C++ variables of a tensor start with, by its name.
    """
    named = {axis for tensor in spec.inputs for axis in tensor.axes or ()}
    sizes = _Sizes(leading_size(spec), named)
    places = input_places(spec)
    for index, tensor in enumerate(spec.inputs):
        stem = stems[tensor.name]
        if tensor.is_list:
            sizes.read_list(index, tensor, stem)
        else:
            shape = f"context->GetInputShape({places[index]})->GetStorageShape()"
            sizes.read_shape(shape, tensor.name, tensor.axes or (), stem)
    sizes.check_computed()
    return tuple(sizes.lines)


def limit_statements(variant: Variant) -> tuple[str, ...]:
    """Return the checks of what the formulas ask of sizes."""
    lines: list[str] = []
    names = {n: compiler.size_parameter(n) for n in compiler.sizes_of(variant.stages.fused)}
    for limit in compiler.size_limits(variant.stages.graph):
        if limit.total != 0:
            total, part = (compiler.extent_cpp(e, names) for e in (limit.total, limit.divisor))
            text = f'"{limit.total} is %ld, expected {limit.wanted}", static_cast<long>({total})'
            known = (
                ""
                if isinstance(limit.divisor, int) or limit.divisor.is_Integer
                else (f"({part}) == 0 || ")
            )
            lines += _refused(f"{known}({total}) % ({part}) != 0", text)
        elif limit.is_exact:
            value, least = names[limit.size], limit.least
            text = f'"{limit.size} is %ld, expected {least} or more", static_cast<long>({value})'
            lines += _refused(f"{value} < {least}", text)
        else:
            value = compiler.extent_cpp(limit.rest, names)
            text = f'"{limit.rest} is %ld, expected 0 or more", static_cast<long>({value})'
            lines += _refused(f"{value} < 0", text)
    return tuple(lines)


@dataclass
class _Sizes:
    """The statements so far, and which sizes they have given a value."""

    leading: str
    """What the product of the axes that `...` stands for is called."""
    named: set[str | int]
    """Axes as the inputs say them: what is among them is read off an axis of its own."""
    lines: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    """The C++ name of each size that has a value."""
    computed: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Axes that follow from others: their text, the C++ of the length, tensor and place."""
    joined: tuple[str, int, str] | None = None
    """The first list with `...`: its name, index and the C++ of how many tensors it has."""

    def read_shape(self, shape: str, name: str, axes: tuple[str | int, ...], stem: str) -> None:
        """Read a tensor's axes, of which `shape` is the C++; `...` where it stands for its own."""
        variable = f"{stem}Shape"
        self.lines.append(f"const gert::Shape& {variable} = {shape};")
        has_leading = axes[:1] == ("...",)
        count = len(axes) - has_leading
        wanted = "[" + ", ".join(map(str, axes)) + "]"
        self.lines += _refused(
            f"{variable}.GetDimNum() {'<' if has_leading else '!='} {count}",
            f'"{name} has %zu axes, expected {wanted}", {variable}.GetDimNum()',
        )
        for axis, length in enumerate(axes):
            if length == "...":
                if self.joined is None:
                    value = f"Leading({variable}, {count})"
                    self._bind(self.leading, value, name, "in its leading axes")
                continue
            place = f"{variable}.GetDimNum() - {len(axes) - axis}" if has_leading else f"{axis}"
            where = f"along axis {axis - len(axes) if has_leading else axis}"
            value = f"{variable}.GetDim({place})"
            if isinstance(length, str) and not length.isidentifier():
                product = multiple_of(length)
                if product is not None and product[0] not in {*self.named, *self.known}:
                    self._bind(product[0], f"{value} / {product[1]}", name, where)
                self.computed.append((length, value, name, where))
                continue
            self._bind(length, value, name, where)

    def read_list(self, index: int, tensor: TensorSpec, stem: str) -> None:
        """Read the axes of a list off its first tensor, and how far they reach off all of them."""
        name, axes = tensor.name, tensor.axes or ()
        count = f"{stem}Count"
        number = f"context->GetIrInputInstanceInfo({index})->GetInstanceNum()"
        self.lines.append(f"const size_t {count} = {number};")
        self.lines += _refused(f"{count} == 0", f'"{name} is a list of no tensors"')
        is_joined = axes[0] == "..."
        if not is_joined:
            self._bind(axes[0], f"static_cast<int64_t>({count})", name, "as a list", "tensors")
        before = self.joined
        if is_joined:
            self.joined = before or (name, index, count)
        self.read_shape(_shape(index, "0"), f"{name}[0]", tensor_axes(tensor), stem)
        if not is_joined:
            self._each(
                count,
                [f"const gert::Shape& shape = {_shape(index, 'i')};"],
                f"shape != {stem}Shape",
                f'"{name}[%zu] has another shape than {name}[0]", i',
                start=1,
            )
            return
        last = len(axes) - 1
        if before is not None:
            other, first, others = before
            self.lines += _refused(
                f"{count} != {others}",
                f'"{name} has %zu tensors, {other} has %zu", {count}, {others}',
            )
            self._each(
                count,
                [
                    f"const int64_t given = Leading({_shape(index, 'i')}, {last});",
                    f"const int64_t wanted = Leading({_shape(first, 'i')}, {last});",
                ],
                "given != wanted",
                f'"{name}[%zu] has %ld elements in its leading axes, {other}[%zu] has %ld", i,'
                " static_cast<long>(given), i, static_cast<long>(wanted)",
            )
        total = f"{stem}Leading"
        self.lines.append(f"int64_t {total} = 0;")
        self._each(
            count,
            [f"const gert::Shape& shape = {_shape(index, 'i')};"],
            f"!EndsAlike(shape, {stem}Shape, {last})",
            f'"{name}[%zu] ends in other axes than {name}[0]", i',
            after=[f"{total} += Leading(shape, {last});"],
        )
        if before is None:
            self._bind(self.leading, total, name, "in all leading axes")

    def _each(
        self,
        count: str,
        before: list[str],
        condition: str,
        message: str,
        *,
        start: int = 0,
        after: list[str] | None = None,
    ) -> None:
        """Add a check of each tensor of a list."""
        self.lines.append(f"for (size_t i = {start}; i < {count}; ++i) {{")
        body = [*before, *_refused(condition, message), *(after or [])]
        self.lines += [f"    {line}" for line in body]
        self.lines.append("}")

    def check_computed(self) -> None:
        """Check the axes that follow from others: names have lengths, whichever input has them."""
        for length, value, name, where in self.computed:
            wanted = compiler.extent_cpp(compiler.computed_dimension(length), self.known)
            self.lines += _refused(
                f"{value} != {wanted}",
                f'"{name} has %ld elements {where}, expected {length} = %ld",'
                f" static_cast<long>({value}), static_cast<long>({wanted})",
            )

    def _bind(
        self, length: str | int, value: str, name: str, where: str, unit: str = "elements"
    ) -> None:
        """Add what gives a named size its value, or checks that an axis has it."""
        if isinstance(length, str) and length not in self.known:
            self.known[length] = compiler.size_parameter(length)
            self.lines.append(f"const int64_t {self.known[length]} = {value};")
            return
        wanted = self.known[length] if isinstance(length, str) else str(length)
        label = f"{length} = %ld" if isinstance(length, str) else "%ld"
        self.lines += _refused(
            f"{value} != {wanted}",
            f'"{name} has %ld {unit} {where}, expected {label}",'
            f" static_cast<long>({value}), static_cast<long>({wanted})",
        )


def _shape(index: int, tensor: str) -> str:
    """Return the C++ of the shape of one tensor of a list."""
    return f"context->GetDynamicInputShape({index}, {tensor})->GetStorageShape()"


def _refused(condition: str, message: str) -> list[str]:
    return [
        f"if ({condition}) {{",
        f"    OP_LOGE(context->GetNodeName(), {message});",
        "    return ge::GRAPH_FAILED;",
        "}",
    ]
