"""Launches of `@triton.jit` functions: a specialisation a kernel, arguments where they lie."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkit.chips import find_chip
from opkit.errors import BuildError

from .front import TritonError, triton_ir
from .headers import DEVICE_FUNCTIONS
from .kernel import KernelText, kernel_text
from .products import SYSTEM_BYTES
from .ttir import read_module

__all__ = ["SlowKernel", "TritonKernel", "run"]


class SlowKernel(UserWarning):
    """Part of a program goes element by element: its result is right, its time is no measure."""


# What compiles differently for GPUs or by other backends, and changes no result.
_OPTION_NAMES = """
add_auto_scheduling allow_fp8e4nv allowed_dot_input_precisions arch auto_blockify_size
auto_tile_and_bind_subblock auto_vectorize_v2_max_fused_ops_num bisheng_options cluster_dims
compile_mode compile_on_910_95 debug default_dot_input_precision deprecated_fp8_dtypes
disable_auto_inject_block_sync disable_fma disable_size_align_for_cast
disable_tightly_coupled_buffer_reuse enable_auto_bind_sub_block enable_auto_vectorize_v2
enable_bishengir_simt_optimization enable_cce_vf_auto_sync enable_cce_vf_remove_membar
enable_drop_unit_dims enable_flatten enable_fp_fusion enable_hivm_auto_cv_balance enable_linearize
enable_mask_fallback_conversion enable_mixed_cv enable_nd2nz_on_vector enable_persistent
enable_select_analysis enable_simt_reorder_instruction enable_sync_block_lock enable_ubuf_saving
enable_vf_fusion enable_warp_specialization extern_libs hfusion_enable_multiple_consumer_fusion
inject_barrier_all inject_block_all instrumentation_mode ir_override kernel_name kpack
launch_cooperative_grid launch_pdl limit_auto_multi_buffer_of_local_buffer
limit_auto_multi_buffer_only_for_local_buffer llvm_version matrix_instr_nonkdim
max_num_imprecise_acc_default maxnreg mix_mode multibuffer num_buffers_warp_spec
num_consumer_groups num_ctas num_stages num_warps optimize_dynamic_offset optimize_epilogue
parallel_mode prevec_max_fused_ops_num ptx_options reg_dec_producer reg_inc_consumer
sanitize_overflow set_workspace_multibuffer shared_mem_dynamic_size simt_stack_limit stream
supported_fp8_dtypes sync_solver tile_mix_cube_loop tile_mix_vector_loop unit_flag use_bytecode
vf_merge_level warmup warp_size waves_per_eu
"""
_OPTIONS = frozenset(_OPTION_NAMES.split())
# Those that ask for a way of computing that there is not.
_REFUSED = {
    "force_simt_only": "the chip's vector units have no threads",
    "force_simt_template": "the chip's vector units have no threads",
}
_FLOATS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_WHOLE = {f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)}
_WHOLE |= {f"u{name}": f"u{short[1:]}" for name, short in _WHOLE.items()}
_NAMES = _FLOATS | _WHOLE | {"bool": "i1"}


@dataclass(frozen=True)
class TritonKernel:
    """One specialisation of a `@triton.jit` function."""

    name: str
    text: KernelText
    source: str
    """The kernel as Ascend C."""
    asm: Mapping[str, str]
    """`ttir`: the IR that it was made of; `ascendc`: the kernel."""
    native: Any
    """What `opkit.runtime.Kernel` loaded."""


def _type_name(value: object, parameter: Any) -> str:
    """Return Triton's name of an argument's type."""
    if isinstance(value, np.ndarray) or hasattr(value, "data_ptr"):
        dtype = str(value.dtype).rpartition(".")[2]  # type: ignore[attr-defined]
        if dtype not in _NAMES:
            raise TritonError(f"{parameter.name}: elements of {dtype} are none that Triton has")
        return f"*{_NAMES[dtype]}"
    annotated: str = parameter.annotation_type
    if annotated:
        return annotated
    if isinstance(value, (bool, np.bool_)):
        return "i1"
    if isinstance(value, (int, np.integer)):
        number = int(value)
        if -(2**31) <= number < 2**31:
            return "i32"
        if -(2**63) <= number < 2**63:
            return "i64"
        if number < 2**64:
            return "u64"
        raise TritonError(f"{parameter.name}: {number} has more than 64 bits")
    if isinstance(value, (float, np.floating)):
        return "fp32"
    raise TritonError(
        f"{parameter.name}: a {type(value).__name__} is no argument of a kernel",
        help="NumPy arrays, torch tensors on npu and numbers are; others as tl.constexpr",
    )


def _specialised(
    function: Any, bound: Mapping[str, Any]
) -> tuple[dict[str, str], dict[tuple[int, ...], object]]:
    """Return the types of the arguments, and the values of those that are known at compile time."""
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], object] = {}
    for index, parameter in enumerate(function.params):
        value = bound[parameter.name]
        is_one = type(value) is int and value == 1 and not parameter.do_not_specialize
        if parameter.is_constexpr or value is None or is_one or hasattr(value, "cache_key"):
            signature[parameter.name] = "constexpr"
            constants[(index,)] = value
        else:
            signature[parameter.name] = _type_name(value, parameter)
    return signature, constants


def _compiled(
    function: Any,
    signature: Mapping[str, str],
    constants: Mapping[tuple[int, ...], object],
    *,
    is_debugged: bool,
) -> TritonKernel:
    from opkit.runtime import Kernel, configuration
    from opkit.toolchain import compile_kernel

    chip = find_chip(configuration().chip)
    key = (
        function.cache_key,
        tuple(signature.items()),
        tuple((path, _key_of(value)) for path, value in constants.items()),
        chip.name,
        is_debugged,
    )
    kept = function.__dict__.setdefault("_opkit_kernels", {})
    if key in kept:
        found: TritonKernel = kept[key]
        return found
    ir = triton_ir(function, signature, constants, is_debugged=is_debugged)
    text = kernel_text(read_module(ir), chip)
    try:
        image = compile_kernel(
            text.source,
            chip,
            kernels=[text.name],
            mode=text.mode,
            name=f"{text.name}.cpp",
            include_dirs=[DEVICE_FUNCTIONS],
            is_generated=not text.needs_library,
        )
    except BuildError as err:
        place = f"{function.fn.__code__.co_filename}:{function.starting_line_number}"
        raise TritonError(
            f"{place}: the kernel that became of it does not compile: {err.log}"
        ) from err
    for note in text.notes:
        warnings.warn(note, SlowKernel, stacklevel=4)
    made = TritonKernel(
        function.__name__,
        text,
        text.source,
        {"ttir": ir, "ascendc": text.source},
        Kernel(image, text.name),
    )
    kept[key] = made
    return made


def _plain(value: Any) -> Any:
    """Return a constant of Triton's language as Python's."""
    return value.value if type(value).__name__ == "constexpr" else value


def _key_of(value: object) -> object:
    if hasattr(value, "cache_key"):
        return value.cache_key
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return (type(value), value)


def _memory(value: Any) -> tuple[Any, np.int64]:
    """Return the memory that a pointer points into, whole, and how many bytes in it does."""
    from opkit.runtime import DeviceMemory

    if isinstance(value, np.ndarray):
        low, high = _bounds(value)
        address = value.__array_interface__["data"][0]
    else:
        storage = value.untyped_storage()
        low, high = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        address = value.data_ptr()
    if high <= low:
        return None, np.int64(0)
    return DeviceMemory(low, high - low), np.int64(address - low)


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """Return where the memory begins and ends that an array is a view of."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low = high = int(owner.__array_interface__["data"][0])
    if owner.size == 0:
        return low, high
    for extent, stride in zip(owner.shape, owner.strides, strict=True):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + owner.itemsize


_SCALARS = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f16": np.float32,
    "bf16": np.float32,
}


def _argument(kind: str, value: Any) -> list[Any]:
    if kind == "pointer":
        if isinstance(value, (int, np.integer)):
            raise TritonError("an address given as a number: give the array or tensor itself")
        return list(_memory(value))
    if kind.startswith("i") and kind != "i1":
        bits = int(kind[1:])
        number = (int(value) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
        return [_SCALARS[kind](number)]
    return [_SCALARS[kind](value)]


def _grid_of(grid: Any, bound: Mapping[str, Any]) -> tuple[int, int, int]:
    if callable(grid):
        grid = grid(dict(bound))
    extents = [grid] if isinstance(grid, (int, np.integer)) else list(grid)
    if not 1 <= len(extents) <= 3:
        raise TritonError(f"a grid of {len(extents)} dimensions: one to three are there")
    x, y, z = (int(each) for each in [*extents, 1, 1][:3])
    return x, y, z


def run(function: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> TritonKernel:
    """Compile a `@triton.jit` function for its arguments, and run it over a grid.

    Args:
        function: what `@triton.jit` gave.
        args: NumPy arrays or torch tensors on npu where the function has pointers; numbers.
        grid: one to three extents, or a function of the arguments that gives them.
        warmup: compile only.
        kwargs: arguments by name, and Triton's options, which change no result here.
    Raises:
        TritonError: the program has something that has no kernel here; with file and line.
        KernelFault: it did what the chip does not allow.
    """
    options = {name: kwargs.pop(name) for name in list(kwargs) if _is_option(function, name)}
    for hook in function.pre_run_hooks:
        hook(*args, **kwargs)
    try:
        arguments = function.signature.bind(*args, **kwargs)
    except TypeError as err:
        raise TritonError(f"{function.__name__}: {err}") from err
    arguments.apply_defaults()
    bound = {name: _plain(value) for name, value in arguments.arguments.items()}
    signature, constants = _specialised(function, bound)
    is_debugged = bool(options.get("debug") or getattr(function, "debug", None)) or (
        os.environ.get("TRITON_DEBUG", "0") not in ("", "0")
    )
    kernel = _compiled(function, signature, constants, is_debugged=is_debugged)
    if warmup:
        return kernel
    x, y, z = _grid_of(grid, bound)
    if x * y * z <= 0:
        return kernel
    _start(kernel, signature, bound, (x, y, z))
    return kernel


def _start(
    kernel: TritonKernel,
    signature: Mapping[str, str],
    bound: Mapping[str, Any],
    grid: Sequence[int],
) -> None:
    names = [name for name, kind in signature.items() if kind != "constexpr"]
    values = [bound[name] for name in names]
    for name, value in zip(names, values, strict=True):
        _check_device(value, name, list(bound).index(name))
    given: list[Any] = []
    for kind, value in zip(kernel.text.parameters, values, strict=True):
        given += _argument(kind, value)
    given += [np.int32(extent) for extent in grid]
    chip = kernel.native.image.chip
    tasks = 1 if kernel.text.is_in_turns else grid[0] * grid[1] * grid[2]
    if kernel.text.mode == "vector":
        kernel.native.launch(given, min(tasks, chip.count("cores.aiv")))
        return
    # Two vector cores ask each cube core.
    blocks = min((tasks + 1) // 2, chip.count("cores.aic"))
    system = np.empty(SYSTEM_BYTES, np.uint8)
    work = np.empty(2 * blocks * kernel.text.workspace_bytes, np.uint8)
    kernel.native.launch([*given, system, work], blocks)


class _HostTensor(TritonError, ValueError):
    """Triton itself has a ValueError of this text, which programs catch."""


def _check_device(value: object, name: str, position: int) -> None:
    device = getattr(value, "device", None)
    kind = getattr(device, "type", None)
    if kind == "cpu":
        raise _HostTensor(
            f"Pointer argument (at {position}) cannot be accessed from Triton (cpu tensor?)",
            help=f"{name}.npu(), or {name}.numpy(): arrays are read where they lie",
        )
    if kind is not None and kind != "npu":
        raise TritonError(f"a tensor on {device}: the emulated device is npu")


def _is_option(function: Any, name: str) -> bool:
    if name in function.arg_names:
        return False
    if name in _REFUSED:
        raise TritonError(f"{function.__name__}: {name}: {_REFUSED[name]}")
    if name not in _OPTIONS:
        raise TritonError(
            f"{function.__name__}: {name} is neither an argument of it nor an option of Triton"
        )
    return True
