"""From a project's sources to an artifact folder: compiler, commands, cache, diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.toolchain.built import project_as_built
    from opkit.toolchain.command import host_argv
    from opkit.toolchain.compiler import Compiler, compiler_choice, find_compiler
    from opkit.toolchain.core_passes import CORE_MACROS
    from opkit.toolchain.described import HostDescription
    from opkit.toolchain.driver import (
        DriverRequest,
        DriverResult,
        parse_driver_arguments,
        run_driver,
    )
    from opkit.toolchain.flags import ARCH_MACROS, chip_macros
    from opkit.toolchain.health import Check, check_machine
    from opkit.toolchain.home import CMAKE_DIR, find_home, home_variables
    from opkit.toolchain.image import (
        MODES,
        ImageKernel,
        KernelImage,
        TilingUse,
        compile_kernel,
        open_image,
    )
    from opkit.toolchain.kernel_templates import LIST_TEMPLATES
    from opkit.toolchain.library_build import (
        OperatorBuild,
        build_operators,
        is_operator_for,
        operators_below,
        operators_for,
    )
    from opkit.toolchain.linkable import LIBRARY_KINDS, build_library
    from opkit.toolchain.lock import locked
    from opkit.toolchain.opdef import read_opdefs
    from opkit.toolchain.operator_library import OperatorLibrary, find_library
    from opkit.toolchain.own_command import OPKIT_COMMAND, WITHOUT_FOLDER
    from opkit.toolchain.project import Project, load_project
    from opkit.toolchain.project_build import (
        Artifact,
        BuildEvent,
        build,
        clean_output,
        default_output,
        host_description,
    )
    from opkit.toolchain.tokens import (
        Token,
        TokenKind,
        matching_close,
        matching_open,
        plain_code,
        significant,
        tokenize,
    )
    from opkit.toolchain.toolkit import Toolkit
    from opkit.toolchain.tree import Tree
    from opkit.toolchain.twin_entry import is_kernel_template, twin_entry
    from opkit.toolchain.wheel import build_wheel

__all__ = [
    "ARCH_MACROS",
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
        "built": ("project_as_built",),
        "command": ("host_argv",),
        "compiler": ("Compiler", "compiler_choice", "find_compiler"),
        "core_passes": ("CORE_MACROS",),
        "described": ("HostDescription",),
        "driver": ("DriverRequest", "DriverResult", "parse_driver_arguments", "run_driver"),
        "flags": ("ARCH_MACROS", "chip_macros"),
        "health": ("Check", "check_machine"),
        "home": ("CMAKE_DIR", "find_home", "home_variables"),
        "image": (
            "MODES",
            "ImageKernel",
            "KernelImage",
            "TilingUse",
            "compile_kernel",
            "open_image",
        ),
        "kernel_templates": ("LIST_TEMPLATES",),
        "library_build": (
            "OperatorBuild",
            "build_operators",
            "is_operator_for",
            "operators_below",
            "operators_for",
        ),
        "linkable": ("LIBRARY_KINDS", "build_library"),
        "lock": ("locked",),
        "opdef": ("read_opdefs",),
        "operator_library": ("OperatorLibrary", "find_library"),
        "own_command": ("OPKIT_COMMAND", "WITHOUT_FOLDER"),
        "project": ("Project", "load_project"),
        "project_build": (
            "Artifact",
            "BuildEvent",
            "build",
            "clean_output",
            "default_output",
            "host_description",
        ),
        "tokens": (
            "Token",
            "TokenKind",
            "matching_close",
            "matching_open",
            "plain_code",
            "significant",
            "tokenize",
        ),
        "toolkit": ("Toolkit",),
        "tree": ("Tree",),
        "twin_entry": ("is_kernel_template", "twin_entry"),
        "wheel": ("build_wheel",),
    },
)
