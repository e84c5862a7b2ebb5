"""Kernel templates that programs call by their plain name, as functions of the CPU twin.

On the chip a launch's tiling key chooses the instance. A unit test that declares the kernel as a
function of C finds no such function, so its unit gets one that chooses in the same way.
Source: Ascend C API, utilities, tiling template programming.
"""

from __future__ import annotations

import re

from opkit.toolchain.source.kernel_templates import is_plain_function, read_instances
from opkit.toolchain.source.launch_rewrite import all_kernels
from opkit.toolchain.source.structs import tiling_structs

__all__ = ["is_kernel_template", "twin_entry"]

_TEMPLATE = re.compile(r"\btemplate\s*<")
_END = re.compile(r"[;{}]")


def is_kernel_template(text: str, kernel: str) -> bool:
    """Whether a source defines a kernel of this name as a template, in whichever branch.

    Args:
        text: the source, without comments.
    """
    heads = (found for found in all_kernels(text) if found.name == kernel)
    # A branch of its head may have C's linkage where another one has the template.
    return any(_TEMPLATE.search(_END.split(text[: head.name_start])[-1]) for head in heads)


def twin_entry(preprocessed: str, *, kernel: str, op: str, arguments: int) -> tuple[str, str]:
    """Return what stands in front of a kernel template's source and behind it in a program.

    Both are empty where the kernel turns out to be a plain function.

    Args:
        preprocessed: the source, preprocessed with LIST_TEMPLATES defined.
        kernel: the function's name.
        op: the operator's.
        arguments: how many pointers the program gives it.
    Raises:
        BuildError: the declarations of the instances cannot be read.
    """
    if is_plain_function(preprocessed, kernel):
        return "", ""
    # A program may run the kernel in any of its types.
    instances = read_instances(preprocessed, op=op, inputs=(), outputs=())
    before, behind = tiling_structs(preprocessed, kernel, instances)
    names = [f"argument_{index}" for index in range(arguments)]
    declared = ", ".join(f"GM_ADDR {name}" for name in names)
    calls = "".join(
        f"  if (::opkit::tiling_key_is({instance.tiling_key}u)) "
        f"return {kernel}<{', '.join(instance.arguments)}>({', '.join(names)});\n"
        for instance in instances
    )
    return before, (
        f'{behind}extern "C" __global__ __aicore__ void {kernel}({declared}) {{\n{calls}'
        f'  ::opkit::illegal_operand("{kernel}: no instance of the kernel has the tiling key that'
        ' is set (ICPU_SET_TILING_KEY)", ::opkit::Where::here());\n}\n'
    )
