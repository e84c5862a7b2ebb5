"""From a `@triton.jit` function to Triton's IR: its own front end reads the Python.

Nothing of Triton behind the front end takes part: no backend, no GPU. What the front end restricts
for GPUs only (extents that are no powers of two, block pointers) is allowed while it reads for us.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from opkit.errors import SetupError, UsageError

__all__ = ["LIBRARY", "TritonError", "triton_ir"]

LIBRARY = "triton.language.extra.libdevice"
"""Where programs find functions of a device's library; Triton maps it to a backend's."""

_lock = threading.RLock()


class TritonError(UsageError):
    """A Triton program has something that has no kernel here; says where and what."""


def triton_ir(
    function: Any,
    signature: Mapping[str, str],
    constants: Mapping[tuple[int, ...], object],
    *,
    is_debugged: bool = False,
) -> str:
    """Return the IR of a specialisation, in MLIR's generic form with the lines of the Python.

    Args:
        function: what `@triton.jit` gave.
        signature: Triton's type of each argument, such as `*fp32`, `i32` or `constexpr`.
        constants: values of those that are `constexpr`, by position.
        is_debugged: whether `device_assert` is there.
    Raises:
        TritonError: the front end does not take the Python; with file and line.
        SetupError: triton is not installed.
    """
    try:
        import triton.compiler.code_generator  # noqa: F401
    except ImportError as err:
        raise SetupError(
            f"triton cannot be imported: {err}",
            help="pip install 'opkit[triton]', or pip install triton: it reads the Python",
        ) from err
    with _lock, _relaxed():
        from triton._C.libtriton import ir
        from triton.compiler import ASTSource
        from triton.compiler.code_generator import ast_to_ttir
        from triton.compiler.errors import CompilationError

        from . import libdevice

        source = ASTSource(function, dict(signature), dict(constants))
        context = ir.context()
        ir.load_dialects(context)
        try:
            module = ast_to_ttir(
                function,
                source,
                context=context,
                options=_options(is_debugged),
                codegen_fns={"min_dot_size": lambda left, right: (1, 1, 1)},
                module_map={LIBRARY: libdevice},
            )
        except CompilationError as err:
            raise _at_line(function, err) from err
        # A function without an end: modules that do not verify are printed in the generic form.
        builder = ir.builder(context)
        kind = builder.get_function_ty([], [])
        odd = builder.get_or_insert_function(module, "opkit_generic", kind, "private", False)
        odd.add_entry_block()
        module.push_back(odd)
        text: str = module.str()
        return text


def _options(is_debugged: bool) -> SimpleNamespace:
    return SimpleNamespace(
        debug=is_debugged,
        sanitize_overflow=False,
        allowed_dot_input_precisions=("ieee", "tf32", "tf32x3", "hf32", "bf16x3", "bf16x6"),
        default_dot_input_precision="ieee",
        supported_fp8_dtypes=(),
        deprecated_fp8_dot_operand_dtypes=(),
        max_num_imprecise_acc_default=0,
        arch=None,
        num_warps=1,
        num_ctas=1,
        num_stages=1,
        enable_fp_fusion=False,
        backend_name="opkit",
        extern_libs=(),
        instrumentation_mode="",
    )


@contextmanager
def _relaxed() -> Iterator[None]:
    """Let the front end take what only GPUs cannot: any extents, this chip's precisions."""
    import triton.language as language
    from triton._C.libtriton import ir
    from triton.compiler import code_generator
    from triton.language import core, semantic

    class Semantic(semantic.TritonSemantic):  # type: ignore[misc]
        def arange(self, start: int, end: int, *, ret_ty: Any = None) -> Any:
            if not isinstance(start, int) or not isinstance(end, int):
                raise ValueError("arange's arguments must be of type tl.constexpr")
            if end <= start:
                raise ValueError("arange's end must be greater than its start")
            if ret_ty is None:
                ret_ty = core.block_type(core.int32, [end - start])
            handle = self.builder.create_make_range(ret_ty.to_ir(self.builder), start, end)
            return self.tensor(handle, ret_ty)

        def make_tensor_descriptor(
            self, base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: str = ""
        ) -> Any:
            from .block_pointers import descriptor

            return descriptor(self, base, shape, strides, block_shape, padding_option)

        def logical_and(self, input: Any, other: Any) -> Any:
            return super().logical_and(self._truth(input), self._truth(other))

        def logical_or(self, input: Any, other: Any) -> Any:
            return super().logical_or(self._truth(input), self._truth(other))

        def not_(self, input: Any) -> Any:
            return super().not_(self._truth(input))

        def _truth(self, value: Any) -> Any:
            # Of numbers their being other than zero, as `and` of the language has it.
            value = self.to_tensor(value)
            return value if value.type.scalar.is_int1() else self.not_equal(value, 0)

        def histogram(self, input: Any, num_bins: int, mask: Any) -> Any:
            if input.dtype.is_int() and input.dtype.primitive_bitwidth != 32:
                kind = core.block_type(core.int32, input.shape)
                return super().histogram(self.cast(input, kind), num_bins, mask)
            return super().histogram(input, num_bins, mask)

        def _validate_atomic_rmw_element_type(self, element_ty: Any, op: str) -> None:
            """Take elements of all widths."""

        def atomic_max(self, ptr: Any, val: Any, mask: Any, sem: str, scope: str) -> Any:
            return self._extreme("max", ptr, val, mask, sem, scope)

        def atomic_min(self, ptr: Any, val: Any, mask: Any, sem: str, scope: str) -> Any:
            return self._extreme("min", ptr, val, mask, sem, scope)

        def _extreme(self, name: str, ptr: Any, val: Any, mask: Any, sem: str, scope: str) -> Any:
            # Of floats too: the chip has them, and needs no comparison of their bits.
            if not val.type.scalar.is_floating():
                return getattr(super(), f"atomic_{name}")(ptr, val, mask, sem, scope)
            ptr, val, mask = self.atom_red_typechecking_impl(ptr, val, mask, name)
            handle = self.builder.create_atomic_rmw(
                getattr(ir.ATOMIC_OP, name.upper()),
                *(ptr.handle, val.handle, mask.handle),
                *(self._str_to_sem(sem), self._str_to_scope(scope)),
            )
            return self.make_tensor(handle, val.type)

        def _str_to_dot_input_precision(self, input_precision: str) -> Any:
            # Products are exact sums of the operands' own digits whatever is allowed.
            if input_precision.lower() == "hf32":
                input_precision = "ieee"
            return super()._str_to_dot_input_precision(input_precision)

    def extents(shape: list[int]) -> int:
        for index, extent in enumerate(shape):
            if not isinstance(extent, int) or extent <= 0:
                raise TypeError(f"extent {index} of a block must be a positive constant")
        return math.prod(shape)

    from . import extension
    from .block_pointers import STATIC
    from .half_functions import static_functions

    known = code_generator.CodeGenerator.statically_implemented_functions
    with (
        patch.dict(known, STATIC | static_functions()),
        # The rules that operations are verified by are a GPU's.
        patch.object(ir.OpState, "verify", lambda operation: True),
        # Gone from the newest releases' namespace, though not from their core.
        patch.object(language, "advance", core.advance, create=True),
        # The chip's own Triton has them in the language itself, too.
        patch.multiple(
            language,
            create=True,
            **{
                name: getattr(extension, name)
                for name in ("compile_hint", "extract_slice", "get_element", "insert_slice")
            },
        ),
        patch.object(semantic, "TritonSemantic", Semantic),
        patch.object(core, "validate_block_shape", extents),
    ):
        yield


def _at_line(function: Any, error: Any) -> TritonError:
    line = getattr(getattr(error, "node", None), "lineno", None)
    file = function.fn.__code__.co_filename
    source = getattr(error, "src", None)
    # The error may lie in another function that this one calls: its text says which.
    first = _def_line(function)
    if source is not None and source != function.src:
        found = _place_of(function, source)
        if found is not None:
            file, first = found
    place = f"{file}:{first + line - 1}" if line is not None else file
    message = getattr(error, "error_message", None) or str(error.__cause__ or error)
    return TritonError(f"{place}: {message}")


def _def_line(function: Any) -> int:
    """Return the line of a jit function's `def`, where the text that Triton reads begins."""
    lines = inspect.getsourcelines(function.fn)[0]
    above = (at for at, line in enumerate(lines) if line.lstrip().startswith("def "))
    return int(function.starting_line_number) + next(above, 0)


def _place_of(function: Any, source: str) -> tuple[str, int] | None:
    """Return file and first line of the jit function of a text, of those that a kernel calls."""
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if each.src == source:
            return each.fn.__code__.co_filename, _def_line(each)
        waiting += [
            value
            for value in each.get_capture_scope().values()
            if hasattr(value, "starting_line_number") and hasattr(value, "src")
        ]
    return None
