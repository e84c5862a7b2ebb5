"""From a project's sources to an artifact folder: compiler, commands, cache, diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.toolchain.building import (
        LIBRARY_KINDS,
        Artifact,
        BuildEvent,
        HostDescription,
        OperatorBuild,
        build,
        build_library,
        build_operators,
        clean_output,
        default_output,
        host_argv,
        host_description,
        is_operator_for,
        operators_below,
        operators_for,
        project_as_built,
        read_opdefs,
    )
    from opkit.toolchain.compiler import Compiler, compiler_choice, find_compiler
    from opkit.toolchain.driver import (
        DriverRequest,
        DriverResult,
        parse_driver_arguments,
        run_driver,
    )
    from opkit.toolchain.flags import ARCH_MACROS, CCE_AICORE, chip_macros
    from opkit.toolchain.health import Check, check_machine, install_missing
    from opkit.toolchain.home import CMAKE_DIR, find_home, home_variables
    from opkit.toolchain.image import (
        MODES,
        ImageKernel,
        KernelImage,
        TilingUse,
        compile_kernel,
        open_image,
    )
    from opkit.toolchain.lock import locked
    from opkit.toolchain.own_command import OPKIT_COMMAND, WITHOUT_FOLDER
    from opkit.toolchain.projects import (
        OperatorLibrary,
        Project,
        Tree,
        build_wheel,
        find_library,
        load_project,
    )
    from opkit.toolchain.source import (
        CORE_MACROS,
        LIST_TEMPLATES,
        Token,
        TokenKind,
        is_kernel_template,
        matching_close,
        matching_open,
        plain_code,
        significant,
        tokenize,
        twin_entry,
    )
    from opkit.toolchain.toolkit import Toolkit

__all__ = [
    "ARCH_MACROS",
    "CCE_AICORE",
    "CMAKE_DIR",
    "CORE_MACROS",
    "LIBRARY_KINDS",
    "LIST_TEMPLATES",
    "MODES",
    "OPKIT_COMMAND",
    "WITHOUT_FOLDER",
    "Artifact",
    "BuildEvent",
    "Check",
    "Compiler",
    "DriverRequest",
    "DriverResult",
    "HostDescription",
    "ImageKernel",
    "KernelImage",
    "OperatorBuild",
    "OperatorLibrary",
    "Project",
    "TilingUse",
    "Token",
    "TokenKind",
    "Toolkit",
    "Tree",
    "build",
    "build_library",
    "build_operators",
    "build_wheel",
    "check_machine",
    "chip_macros",
    "clean_output",
    "compile_kernel",
    "compiler_choice",
    "default_output",
    "find_compiler",
    "find_home",
    "find_library",
    "home_variables",
    "host_argv",
    "host_description",
    "install_missing",
    "is_kernel_template",
    "is_operator_for",
    "load_project",
    "locked",
    "matching_close",
    "matching_open",
    "open_image",
    "operators_below",
    "operators_for",
    "parse_driver_arguments",
    "plain_code",
    "project_as_built",
    "read_opdefs",
    "run_driver",
    "significant",
    "tokenize",
    "twin_entry",
]

__getattr__ = lazy_names(
    __name__,
    {
        "building": (
            "Artifact",
            "BuildEvent",
            "HostDescription",
            "LIBRARY_KINDS",
            "OperatorBuild",
            "build",
            "build_library",
            "build_operators",
            "clean_output",
            "default_output",
            "host_argv",
            "host_description",
            "is_operator_for",
            "operators_below",
            "operators_for",
            "project_as_built",
            "read_opdefs",
        ),
        "compiler": (
            "Compiler",
            "compiler_choice",
            "find_compiler",
        ),
        "driver": (
            "DriverRequest",
            "DriverResult",
            "parse_driver_arguments",
            "run_driver",
        ),
        "flags": (
            "ARCH_MACROS",
            "CCE_AICORE",
            "chip_macros",
        ),
        "health": (
            "Check",
            "check_machine",
            "install_missing",
        ),
        "home": (
            "CMAKE_DIR",
            "find_home",
            "home_variables",
        ),
        "image": (
            "ImageKernel",
            "KernelImage",
            "MODES",
            "TilingUse",
            "compile_kernel",
            "open_image",
        ),
        "lock": ("locked",),
        "own_command": (
            "OPKIT_COMMAND",
            "WITHOUT_FOLDER",
        ),
        "projects": (
            "OperatorLibrary",
            "Project",
            "Tree",
            "build_wheel",
            "find_library",
            "load_project",
        ),
        "source": (
            "CORE_MACROS",
            "LIST_TEMPLATES",
            "Token",
            "TokenKind",
            "is_kernel_template",
            "matching_close",
            "matching_open",
            "plain_code",
            "significant",
            "tokenize",
            "twin_entry",
        ),
        "toolkit": ("Toolkit",),
    },
)
