"""A built project as a library that programs link: static or shared, with headers and CMake files.

The library carries the artifact folder inside, so nothing has to be installed beside the program.
Source: public programming guide, operator projects, static and dynamic libraries.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from opkit.errors import BuildError, SetupError, UsageError
from opkit.files import write_aside
from opkit.toolchain.building.command import opapi_unit
from opkit.toolchain.building.manifest import KERNEL_NAMES, MANIFEST_NAME, listed_files
from opkit.toolchain.building.opapi import OPAPI_LIBRARY, api_header, api_source, header_name
from opkit.toolchain.building.project_build import Artifact, library_dir
from opkit.toolchain.building.unit import compile_argv
from opkit.toolchain.compiler import find_compiler
from opkit.toolchain.source import compiler_crash
from opkit.toolchain.toolkit import Toolkit

__all__ = ["LIBRARY_KINDS", "build_library"]

LIBRARY_KINDS = ("static", "shared")

_CONFIG = """\
# Brings @name@::@name@, the operators' aclnn functions.
include(CMakeFindDependencyMacro)
find_dependency(ASC)
include("${CMAKE_CURRENT_LIST_DIR}/@name@-targets.cmake")
"""
_TARGETS = """\
get_filename_component(_opkit_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET @name@::@kind@)
  add_library(@name@::@kind@ @KIND@ IMPORTED)
  set_target_properties(@name@::@kind@ PROPERTIES
    IMPORTED_LOCATION "${_opkit_prefix}/lib/@file@"
    INTERFACE_INCLUDE_DIRECTORIES "${_opkit_prefix}/include;${ASC_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "${ASC_LIBRARIES}"
    # A program that is installed starts by its name, too.
    INTERFACE_LINK_OPTIONS "LINKER:-rpath,${ASC_LIBRARY_DIR}")
  add_library(@name@::@name@ INTERFACE IMPORTED)
  set_property(TARGET @name@::@name@ PROPERTY INTERFACE_LINK_LIBRARIES @name@::@kind@)
endif()
unset(_opkit_prefix)
"""


def build_library(
    artifact: Artifact,
    kind: str,
    *,
    file_name: str | None = None,
    verbose: Callable[[list[str]], None] | None = None,
) -> Path:
    """Make a library of a project's aclnn functions and return the folder to install.

    It holds `include/aclnn_<op>.h`, `include/op_proto.h`, the library in `lib/` and a CMake package
    in `lib/cmake/<project>/`, whose target is `<project>::<project>`; beside the artifact folder.

    Args:
        kind: `static` makes lib<project>.a, `shared` libcust_opapi.so.
        file_name: another name for the shared library, without `lib` and `.so`.
        verbose: is given every command before it runs.
    Raises:
        UsageError: there is no such kind, or a static library is to have another name.
        BuildError: the library does not compile; carries the log.
        SetupError: there is no ar, or no room.
    """
    if kind not in LIBRARY_KINDS:
        raise UsageError(f"there is no {kind} library", help=f"choose {' or '.join(LIBRARY_KINDS)}")
    if kind == "static" and file_name is not None:
        raise UsageError(f"a static library has the project's name, not {file_name}")
    name = artifact.project.name
    shared = f"lib{file_name}.so" if file_name else OPAPI_LIBRARY
    file = f"lib{name}.a" if kind == "static" else shared
    folder = library_dir(artifact.folder)
    values = {"name": name, "kind": kind, "KIND": kind.upper(), "file": file}
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".library-") as aside:
            made = Path(aside) / "made"
            (made / "lib" / "cmake" / name).mkdir(parents=True)
            shutil.copytree(artifact.folder / "op_api" / "include", made / "include")
            for part, text in (("config", _CONFIG), ("targets", _TARGETS)):
                place = made / "lib" / "cmake" / name / f"{name}-{part}.cmake"
                write_aside(place, _filled(text, values).encode())
            _compile(artifact, kind, made / "lib" / file, verbose or (lambda argv: None))
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    except OSError as err:
        raise SetupError(
            f"{folder} cannot be written: {err.strerror or err}",
            help="free some space there, or choose another folder with --into",
        ) from err
    return folder


def _filled(text: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def _compile(
    artifact: Artifact, kind: str, target: Path, verbose: Callable[[list[str]], None]
) -> None:
    """Compile the aclnn functions, with the folder that they call inside."""
    if artifact.described is None:
        raise SetupError("the emulator's library is not built", help='run "opkit doctor"')
    inside = [KERNEL_NAMES, MANIFEST_NAME, *listed_files(artifact.folder)]
    packed = {
        name: artifact.folder / name
        # Bindings of other languages, and the functions that call the folder from outside.
        for name in inside
        if name != OPAPI_LIBRARY and not name.startswith("_")
    }
    operators = artifact.described.operators
    compiler = find_compiler()
    headers = {header_name(operator.op): api_header(operator) for operator in operators}
    unit = opapi_unit(
        headers,
        api_source(operators, packed=packed),
        root=artifact.project.root,
        toolkit=Toolkit.installed(),
        compiler=compiler,
        file=target.name if kind == "shared" else None,
    )
    aside = target.parent.parent.parent
    source, made = aside / "op_api.cpp", aside / "op_api.o"
    source.write_text(unit.text or "", encoding="utf-8")
    output = made if kind == "static" else target
    _run(
        compile_argv(compiler, unit, source=source, output=output, depfile=aside / "op_api.d"),
        verbose,
    )
    if kind == "static":
        archiver = shutil.which("ar") or shutil.which("gcc-ar") or shutil.which("llvm-ar")
        if archiver is None:
            raise SetupError(
                "there is no ar, which makes static libraries", help="install binutils"
            )
        _run([archiver, "rcs", str(target), str(made)], verbose)


def _run(argv: Sequence[str], verbose: Callable[[list[str]], None]) -> None:
    verbose(list(argv))
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        if (crash := compiler_crash(done.stderr)) is not None:
            raise crash
        raise BuildError(f"{Path(argv[0]).name} failed: {done.stderr.strip()}", log=done.stderr)
