"""What is compiled for a project, and with which command: pure functions, nothing is run here.

Commands run in the project's folder and name its files relatively. So `__FILE__`, and with it every
fault, says `op_kernel/gelu_custom.cpp`, and equal projects in two places share the cache.
"""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.chips import Chip
from opkit.errors import SetupError, UsageError
from opkit.schema import OpSpec
from opkit.toolchain.building.opapi import OPAPI_LIBRARY
from opkit.toolchain.building.unit import CompileUnit, LinkUnit, Variant, is_for_linker
from opkit.toolchain.compiler import Compiler
from opkit.toolchain.flags import common_flags, kernel_flags, link_flags
from opkit.toolchain.kernel_table import TableEntry, kernel_table
from opkit.toolchain.projects import Project
from opkit.toolchain.source import (
    LIST_TEMPLATES,
    TASK_TYPES,
    VECTOR,
    Kernel,
    beside_template,
    compiles_as_twin,
    folders_of,
    is_plain_function,
    kernel_source,
    kernel_texts,
    late_macros,
    read_instances,
    read_kernels,
    split_passes,
    tiling_structs,
)
from opkit.toolchain.toolkit import Toolkit

__all__ = [
    "KernelPreamble",
    "absent_unit",
    "host_argv",
    "kernel_units",
    "kernel_variants",
    "library_units",
    "opapi_unit",
    "skipped_bindings",
    "template_listing",
    "with_instances",
]

HOST_LIBRARY = "libop_host.so"
TORCH_LIBRARY = "_torch.so"
# torch >= 2.10 at run time: the oldest release whose stable ABI has what the bindings use.
TORCH_TARGET_VERSION = "0x020a000000000000"


@dataclass(frozen=True)
class KernelPreamble:
    """What comes before an operator's kernel source in its translation unit."""

    text: str = ""
    """The tiling structs that host files define by macros."""
    tiling_default: str | None = None
    """The struct that GET_TILING_DATA reads where the kernel does not say."""
    options: tuple[str, ...] = ()
    """Further compiler options."""


def kernel_variants(spec: OpSpec, npu_arch: str) -> tuple[Variant, ...]:
    """Return an operator's variants, one shared object each.

    Combinations that differ in format only have their formats in the file's name, from the second
    one on: calls carry no format, so they take the first, and the others are compiled all the same.
    """
    variants: dict[str, Variant] = {}
    by_dtypes: dict[str, int] = {}
    for index in range(spec.variant_count):
        dtypes = "-".join(dtype.name for dtype in spec.variant_dtypes(index))
        first = by_dtypes.setdefault(dtypes, index)
        is_callable = _formats(spec, first) == _formats(spec, index)
        formats = "" if is_callable else "." + "-".join(_formats(spec, index))
        file = f"{spec.name}.{npu_arch}.{dtypes}{formats}.so"
        variants.setdefault(file, Variant(spec, index, file, callable=is_callable))
    return tuple(variants.values())


def kernel_units(
    project: Project,
    chip: Chip,
    toolkit: Toolkit,
    compiler: Compiler,
    preambles: Mapping[str, KernelPreamble] | None = None,
) -> tuple[CompileUnit, ...]:
    """Return one unit for each kernel variant of each operator.

    Args:
        preambles: by OpDef name; an operator may have none.

    Raises:
        UsageError: an operator has no kernel source.
    """
    units = []
    for spec in project.operators:
        source = project.kernel_source(spec)
        if not source.is_file():
            raise UsageError(
                f"{project.root}: {spec.op} has no kernel: {source.relative_to(project.root)}"
                " is missing",
                help=f'write it, or let "opkit gen" write it; {spec.source.name} names the kernel',
            )
        preamble = (preambles or {}).get(spec.op) or KernelPreamble(
            options=project.kernel_options(spec.op, soc_config=chip.soc_config)
        )
        options, late = late_macros(preamble.options, toolkit.include_dir)
        kernel = _find_kernel(source, spec, toolkit)
        folders = folders_of(preamble.options)
        included = kernel_source(source, project.root, folders)
        macros, passes = split_passes(kernel_texts(source, folders), chip.npu_arch_number)
        for variant in kernel_variants(spec, chip.npu_arch):
            units.append(
                CompileUnit(
                    name=variant.file,
                    kind="kernel",
                    source=source,
                    text=_kernel_text(
                        included,
                        spec.name,
                        kernel,
                        preamble,
                        guard=late + _guard_of_launches(source),
                    ),
                    flags=(
                        *kernel_flags(compiler, toolkit, chip),
                        # The unit lies elsewhere; this finds the user's file from the root, and
                        # takes the "./" that it puts before it off again.
                        "-iquote",
                        ".",
                        "-fmacro-prefix-map=./=",
                        "-DOPKIT_KERNEL_OF_OPERATOR",
                        *_variant_macros(variant),
                        *_without_launches(source),
                        *macros,
                        *options,
                        *link_flags(toolkit, strict=True),
                    ),
                    linked=True,
                    template=variant if kernel.is_template else None,
                    function=kernel.name,
                    core_passes=passes,
                )
            )
    return tuple(units)


def template_listing(unit: CompileUnit) -> CompileUnit:
    """Return the unit that preprocesses a kernel template for what it says of its instances."""
    flags = [flag for flag in unit.flags if flag != "-s" and not is_for_linker(flag)]
    # The instances are the same for both kinds of cores.
    macros = unit.core_passes[0][1] if unit.core_passes else ()
    return replace(
        unit,
        name=f"{unit.name.removesuffix('.so')}.templates.o",
        kind="template",
        flags=(*flags, *macros, "-E", "-P", f"-D{LIST_TEMPLATES}"),
        linked=False,
        template=None,
        core_passes=(),
    )


def with_instances(unit: CompileUnit, preprocessed: str) -> CompileUnit:
    """Return a kernel template's unit with a table of its instances.

    One that turns out to be a plain function gets the table of one.

    Args:
        preprocessed: what `template_listing` of the unit made.
    Raises:
        BuildError: the declarations of the instances cannot be read.
    """
    if unit.template is None:
        return unit
    spec = unit.template.spec
    if is_plain_function(preprocessed, unit.function):
        function, declaration = beside_template(preprocessed, unit.function)
        table = kernel_table([_entry(spec.name, function)])
        return replace(unit, text=f"{unit.text}{declaration}{table}")
    tensors = [tensor.dtypes[unit.template.index].ge for tensor in (*spec.inputs, *spec.outputs)]
    count = len(spec.inputs)
    instances = read_instances(
        preprocessed, op=spec.op, inputs=tensors[:count], outputs=tensors[count:]
    )
    entries = [
        TableEntry(
            spec.name,
            function=f"{unit.function}<{', '.join(instance.arguments)}>",
            mode=TASK_TYPES[instance.task_type] if instance.task_type else None,
            tiling_key=instance.tiling_key,
        )
        for instance in instances
    ]
    before, behind = tiling_structs(preprocessed, unit.function, instances)
    return replace(unit, text=f"{before}{unit.text}{behind}{kernel_table(entries)}")


def library_units(
    project: Project, toolkit: Toolkit, compiler: Compiler
) -> tuple[tuple[CompileUnit, ...], tuple[LinkUnit, ...]]:
    """Return the units of the host library and of the bindings: objects, then one link each.

    Raises:
        UsageError: there is no host code.
        SetupError: pybind11 is missing.
    """
    if not project.sources("op_host"):
        raise UsageError(
            f"{project.root}: op_host/ has no .cpp file: nothing registers the operators",
            help='let "opkit gen" write it',
        )
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX") or ".so")
    no_flags: tuple[str, ...] = ()
    host_flags = project.tree.host_options if project.tree is not None else no_flags
    libraries = [(HOST_LIBRARY, "op_host", host_flags, "-O1", True)]
    if project.sources("numpy_ext"):
        libraries.append((f"_numpy{suffix}", "numpy_ext", _numpy_flags(), "-O1", False))
    torch = _torch_folder()
    if project.sources("torch_ext") and torch is not None:
        libraries.append((TORCH_LIBRARY, "torch_ext", _torch_flags(torch), "-O1", False))
    objects, links = [], []
    for name, folder, extra, optimise, strict in libraries:
        flags = (*common_flags(compiler, toolkit, optimise=optimise), *extra)
        members = [
            CompileUnit(
                name=_object_name(source.relative_to(project.root)),
                kind=folder,
                source=source,
                text=None,
                flags=(*flags, *_own_options(project, source)),
                linked=False,
            )
            for source in project.sources(folder)
        ]
        libraries_of = link_flags(toolkit, strict=strict)
        if folder == "torch_ext" and torch is not None:
            libraries_of = (*_torch_link_flags(torch), *libraries_of)
        objects.extend(members)
        links.append(LinkUnit(name, tuple(unit.name for unit in members), libraries_of))
    return tuple(objects), tuple(links)


def _own_options(project: Project, source: Path) -> tuple[str, ...]:
    if project.tree is None or not source.is_relative_to(project.folder):
        return ()
    return project.tree.own_host_options


def host_argv(compiler: Compiler, toolkit: Toolkit, *, source: Path, output: Path) -> list[str]:
    """Return the command that makes a host library of one source."""
    flags = common_flags(compiler, toolkit, optimise="-O0")
    libraries = link_flags(toolkit, strict=False)
    return [*compiler.argv, *flags, "-shared", "-o", str(output), str(source), *libraries]


def skipped_bindings(project: Project) -> tuple[tuple[str, str], ...]:
    """Return (library, reason) for what the project has but this machine cannot build."""
    if project.sources("torch_ext") and _torch_folder() is None:
        return ((TORCH_LIBRARY, "torch is not installed here"),)
    return ()


def opapi_unit(
    headers: Mapping[str, str],
    source: str,
    *,
    root: Path,
    toolkit: Toolkit,
    compiler: Compiler,
    file: str | None = OPAPI_LIBRARY,
) -> CompileUnit:
    """Return the unit of the aclnn library.

    Args:
        headers: text by name of the headers that the source includes; they become part of it.
        source: its text.
        root: the project's folder.
        file: the library's name; None for an object that goes into a static one.
    """
    text = source
    for name, header in headers.items():
        text = text.replace(f'#include "{name}"\n', header)
    flags = common_flags(compiler, toolkit, optimise="-O1")
    if file is not None:
        flags = (*flags, "-s", f"-Wl,-soname,{file}", *link_flags(toolkit, strict=True))
    return CompileUnit(
        name=file or "op_api.o",
        kind="op_api",
        source=root / "op_api.cpp",
        text=text,
        flags=flags,
        linked=file is not None,
    )


def absent_unit(project: Project, toolkit: Toolkit, compiler: Compiler, source: str) -> CompileUnit:
    """Return the unit of what stands for functions that no host source defines."""
    return CompileUnit(
        name="op_host.absent.o",
        kind="op_host",
        source=project.root / "absent.cpp",
        text=source,
        flags=common_flags(compiler, toolkit, optimise="-O1"),
        linked=False,
    )


def _object_name(source: Path) -> str:
    return ".".join((*source.parts[:-1], source.stem, "o"))


def _find_kernel(source: Path, spec: OpSpec, toolkit: Toolkit) -> Kernel:
    found = read_kernels(source, foreign=(toolkit.include_dir,))
    by_name = {kernel.name: kernel for kernel in found}
    usual = Kernel(spec.name, VECTOR, is_template=False)
    return by_name.get(spec.name) or by_name.get(spec.symbol) or usual


def _entry(name: str, function: str, cast: str = "") -> TableEntry:
    return TableEntry(name, function=None if function == name else function, cast=cast)


def _kernel_text(
    included: str, name: str, kernel: Kernel, preamble: KernelPreamble, *, guard: str
) -> str:
    structs = ""
    if preamble.text:
        structs = f'#include "kernel_tiling/kernel_tiling.h"\n\n{preamble.text}\n'
    if preamble.tiling_default is not None:
        structs += f"#define OPKIT_TILING_DEFAULT {preamble.tiling_default}\n"
    return (
        '#include "opkit/kernel_constants.h"\n'
        f"{structs}"
        f"{guard}"
        f"{included}"
        '#include "opkit/kernel_entry.h"\n\n'
        # A template's table follows when its instances are known.
        f"{'' if kernel.is_template else kernel_table([_entry(name, kernel.name, kernel.cast)])}"
    )


def _variant_macros(variant: Variant) -> tuple[str, ...]:
    macros = []
    for tensor in (*variant.spec.inputs, *variant.spec.outputs):
        dtype = tensor.dtypes[variant.index]
        name = tensor.name.upper()
        macros.append(f"-DDTYPE_{name}={dtype.kernel}")
        macros.append(f"-DORIG_DTYPE_{name}={dtype.ge}")
        macros.append(f"-DFORMAT_{name}=FORMAT_{tensor.formats[variant.index]}")
    return tuple(macros)


def _without_launches(source: Path) -> tuple[str, ...]:
    """Return the macro by which public sources leave the launches of their kernels away."""
    return ("-DASCENDC_CPU_DEBUG=1",) if "<<<" in _text(source) else ()


def _guard_of_launches(source: Path) -> str:
    """Return what defines their other macro for that, which stands for the CPU twin in headers."""
    if not compiles_as_twin(source):
        return ""
    return '#include "kernel_operator.h"\n#define __CCE_KT_TEST__ 1\n'


def _text(source: Path) -> str:
    return source.read_text(encoding="utf-8", errors="replace")


def _formats(spec: OpSpec, index: int) -> tuple[str, ...]:
    return tuple(tensor.formats[index] for tensor in (*spec.inputs, *spec.outputs))


def _numpy_flags() -> tuple[str, ...]:
    pybind11 = _package_folder("pybind11")
    if pybind11 is None:
        raise SetupError(
            "pybind11 is not installed: numpy_ext cannot be compiled",
            help="python -m pip install pybind11",
        )
    paths = dict.fromkeys((sysconfig.get_path("include"), sysconfig.get_path("platinclude")))
    includes = [str(pybind11 / "include"), *paths]
    return tuple(flag for path in includes for flag in ("-isystem", path))


def _torch_flags(torch: Path) -> tuple[str, ...]:
    return (
        f"-DTORCH_TARGET_VERSION={TORCH_TARGET_VERSION}",
        "-isystem",
        str(torch / "include"),
    )


def _torch_link_flags(torch: Path) -> tuple[str, ...]:
    # Its symbols come from the libtorch that Python has loaded; naming that library makes the
    # loader search it although torch itself was loaded locally.
    return (
        "-Wl,--no-as-needed",
        f"-L{torch / 'lib'}",
        "-ltorch_cpu",
        "-Wl,--as-needed",
    )


def _torch_folder() -> Path | None:
    return _package_folder("torch")


def _package_folder(name: str) -> Path | None:
    # Found, not imported: importing torch takes seconds.
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent
