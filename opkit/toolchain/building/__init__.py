"""From sources to artifacts: commands, cache, sessions, manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .built import project_as_built
    from .cache import BuildCache, unit_key
    from .command import host_argv
    from .described import HostDescription
    from .editor import COMPILE_COMMANDS
    from .imports import (
        allocating_names,
        assembly_log,
        foreign_host_names,
        foreign_kernel_log,
        foreign_launcher_names,
        foreign_log,
        is_foreign,
        library_names,
        library_names_behind,
        named_texts,
        pastes_tokens,
    )
    from .library_build import (
        OperatorBuild,
        build_operators,
        is_operator_for,
        operators_below,
        operators_for,
    )
    from .linkable import LIBRARY_KINDS, build_library
    from .manifest import MANIFEST_NAME
    from .opdef import read_opdefs
    from .precompiled import precompiled_headers
    from .processes import ProcessGroup
    from .project_build import (
        Artifact,
        BuildEvent,
        build,
        clean_output,
        default_output,
        host_description,
    )
    from .session import Session
    from .state import BuildState
    from .unit import CompileUnit, LinkUnit, link_argv

__all__ = [
    "COMPILE_COMMANDS",
    "LIBRARY_KINDS",
    "MANIFEST_NAME",
    "Artifact",
    "BuildCache",
    "BuildEvent",
    "BuildState",
    "CompileUnit",
    "HostDescription",
    "LinkUnit",
    "OperatorBuild",
    "ProcessGroup",
    "Session",
    "allocating_names",
    "assembly_log",
    "build",
    "build_library",
    "build_operators",
    "clean_output",
    "default_output",
    "foreign_host_names",
    "foreign_kernel_log",
    "foreign_launcher_names",
    "foreign_log",
    "host_argv",
    "host_description",
    "is_foreign",
    "is_operator_for",
    "library_names",
    "library_names_behind",
    "link_argv",
    "named_texts",
    "operators_below",
    "operators_for",
    "pastes_tokens",
    "precompiled_headers",
    "project_as_built",
    "read_opdefs",
    "unit_key",
]

__getattr__ = lazy_names(
    __name__,
    {
        "built": ("project_as_built",),
        "cache": (
            "BuildCache",
            "unit_key",
        ),
        "command": ("host_argv",),
        "editor": ("COMPILE_COMMANDS",),
        "described": ("HostDescription",),
        "imports": (
            "allocating_names",
            "assembly_log",
            "foreign_host_names",
            "foreign_launcher_names",
            "foreign_kernel_log",
            "foreign_log",
            "is_foreign",
            "library_names",
            "library_names_behind",
            "named_texts",
            "pastes_tokens",
        ),
        "manifest": ("MANIFEST_NAME",),
        "library_build": (
            "OperatorBuild",
            "build_operators",
            "is_operator_for",
            "operators_below",
            "operators_for",
        ),
        "linkable": (
            "LIBRARY_KINDS",
            "build_library",
        ),
        "opdef": ("read_opdefs",),
        "precompiled": ("precompiled_headers",),
        "processes": ("ProcessGroup",),
        "project_build": (
            "Artifact",
            "BuildEvent",
            "build",
            "clean_output",
            "default_output",
            "host_description",
        ),
        "session": ("Session",),
        "state": ("BuildState",),
        "unit": ("CompileUnit", "LinkUnit", "link_argv"),
    },
)
