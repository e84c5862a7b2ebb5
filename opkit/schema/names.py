"""Names: which are legal, and what an operator is called in files, kernels and Python."""

from __future__ import annotations

import difflib
import functools
import keyword
import re
import sys
from collections.abc import Iterable
from importlib import resources

__all__ = [
    "FRAMEWORK_CLASSES",
    "camel_case",
    "free_name",
    "is_reserved",
    "kernel_symbol",
    "nearest",
    "operator_name",
    "package_name",
    "quoted_choice",
    "snake_case",
]

# Keywords and alternative tokens of ISO C++17 [lex.key]: tensors become parameters of the kernel.
# fmt: off
_CPP_KEYWORDS = frozenset((
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "class", "compl", "const", "const_cast",
    "constexpr", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
    "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "return", "short", "signed", "sizeof", "static", "static_assert",
    "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true", "try",
    "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
    "wchar_t", "while", "xor", "xor_eq",
))
# fmt: on

# Names besides the C library's that a kernel, a function with C linkage, would redefine, or that
# are ambiguous where kernels use the namespace AscendC: types and namespaces, the compiler's
# built-in functions, and what AscendC has in lower case.
# fmt: off
_GLOBAL_NAMES = frozenset((
    "Order_t", "addr_cal_mode_t", "asc_dump", "asc_dump_cbuf", "asc_dump_gm", "asc_dump_l1buf",
    "asc_dump_ubuf", "bfloat16_t", "block_idx", "block_num", "complex32", "complex64",
    "convert_from_bytes", "copy_data_align64", "copy_gm_to_ubuf", "copy_gm_to_ubuf_align_b16",
    "copy_gm_to_ubuf_align_b32", "copy_gm_to_ubuf_align_b8", "copy_ubuf_to_gm",
    "copy_ubuf_to_gm_align_b16", "copy_ubuf_to_gm_align_b32", "copy_ubuf_to_gm_align_b8",
    "copy_ubuf_to_ubuf", "dec", "detail", "event_t", "fe", "float16_t", "float32_t", "ge",
    "gert", "get_cmpmask", "get_rsvd_cnt", "half", "inc", "int4b_t", "is_layout", "is_layout_v",
    "main", "matmul", "max", "min", "opkit", "pad_t", "pipe_barrier", "pipe_t", "set_cmpmask",
    "set_flag", "set_mask_count", "set_mask_norm", "set_mov_pad_val", "set_nd_para",
    "set_vector_mask", "std", "tiling", "vadd", "vadds", "vcmax", "vcmin", "vcmp_eq", "vcmp_ge",
    "vcmp_gt", "vcmp_le", "vcmp_lt", "vcmp_ne", "vcmpv_eq", "vcmpv_ge", "vcmpv_gt", "vcmpv_le",
    "vcmpv_lt", "vcmpv_ne", "vcmpvs_eq", "vcmpvs_ge", "vcmpvs_gt", "vcmpvs_le", "vcmpvs_lt",
    "vcmpvs_ne", "vdiv", "vector_dup", "vgather", "vgatherb", "vmax", "vmaxs", "vmin", "vmins",
    "vmul", "vmulconv_f162s8", "vmulconv_f162u8", "vmuls", "vreducev2", "vsel", "vsub",
    "wait_flag",
))
# fmt: on

FRAMEWORK_CLASSES = frozenset((
    "CommentSection", "DYNAMIC", "DependScope", "FollowType", "FormatCheckOption", "IGNORE",
    "OPTIONAL", "OpAICoreConfig", "OpAICoreDef", "OpAttrDef", "OpCheckFuncHelper", "OpDef",
    "OpMC2Def", "OpParamDef", "Option", "REQUIRED", "VIRTUAL",
))  # fmt: skip
"""What the framework declares where OpDef classes are: no operator can have these names."""

# What a generated package has besides its operators; `name` is torch's own in each `torch.ops.*`.
_PACKAGE_ATTRIBUTES = frozenset({"golden", "name"})

# Packages that a project's own would hide: what it imports, its other folders, and where torch
# keeps operators already.
# fmt: off
_PACKAGES = frozenset((
    "ml_dtypes", "numpy", "opkit", "pip", "pybind11", "pytest", "scikit_build_core", "setuptools",
    "torch", "torch_npu", "wheel",
    "benchmarks", "build", "build_out", "dist", "numpy_ext", "op_host", "op_kernel", "scripts",
    "tests", "torch_ext",
    "aten", "c10d", "debug_mode_ops", "debugprims", "export", "higher_order", "inductor",
    "inductor_prims", "loaded_libraries", "load_library", "mkl", "mkldnn", "mkldnn_prepacked",
    "onednn", "prim", "prims", "profiler", "quantization", "quantized", "rngprims", "sparse",
    "static_runtime", "symm_mem",
))
# fmt: on

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(op: str) -> str:
    """Return the file and kernel name of an operator type: `AbcAAc` is `abc_a_ac`.

    A capital starts a word after a lower-case letter or a digit (`Conv2D` is `conv2_d`), and when a
    lower-case letter follows the last of several capitals (`GRUCell` is `gru_cell`).

    Source: CANN operator development guide, naming conversion table.
    """
    return _WORD_START.sub("_", op).lower()


def camel_case(name: str) -> str:
    """Return the class name for a snake_case name: `gelu_custom` is `GeluCustom`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)


def is_reserved(name: str) -> bool:
    """Return whether no parameter in C++ or Python could have this name."""
    return name in _CPP_KEYWORDS or keyword.iskeyword(name) or name == "__debug__"


def operator_name(op: str) -> str:
    """Return what an operator is called in files, Python and torch: its snake_case name.

    With `_op` behind it where the languages, the generated package or torch use the word: `and_op`.
    """
    name = snake_case(op)
    return f"{name}_op" if is_reserved(name) or name in _PACKAGE_ATTRIBUTES else name


def package_name(name: str) -> str:
    """Return the name of a project and its package: with `_ops` behind it where another package
    that it needs, or one of its own folders, has that name."""
    taken = name in _PACKAGES or name in sys.stdlib_module_names or is_reserved(name)
    return f"{name}_ops" if taken else name


def kernel_symbol(name: str) -> str:
    """Return the name of an operator's kernel function: the operator's own.

    With `_kernel` behind it where C or C++ has a function, variable or namespace of that name: two
    functions of one name with C linkage are one.
    """
    base = re.sub(r"(f|l|f\d+x?)$", "", name)
    taken = name in _GLOBAL_NAMES or name in _c_names() or (base != name and base in _c_names())
    # The runtime's own functions have C linkage too; a built-in conversion is there for each pair
    # of types and rounding.
    taken = taken or name.startswith(("opkit_", "vconv_"))
    return f"{name}_kernel" if taken else name


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: the one wanted, with as many `_` behind it as that takes."""
    used = frozenset(taken)
    while wanted in used:
        wanted += "_"
    return wanted


@functools.cache
def _c_names() -> frozenset[str]:
    text = resources.files("opkit.schema").joinpath("c_names.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


def nearest(value: str, choices: Iterable[str]) -> str | None:
    """Return the choice most like `value`, or None when none is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(value.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def quoted_choice(value: str, choices: Iterable[str]) -> str:
    """Return the help line for a wrong `value`: the nearest choice, or all of them."""
    choices = tuple(choices)
    best = nearest(value, choices)
    if best is not None:
        return f'did you mean "{best}"?'
    return "use one of " + ", ".join(f'"{choice}"' for choice in choices)
