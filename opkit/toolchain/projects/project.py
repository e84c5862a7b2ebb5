"""An operator project on disk: its pyproject.toml has `[tool.opkit]`, or it is msopgen's tree."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opkit.errors import SetupError, UsageError
from opkit.folders import cache_folder
from opkit.schema import OpSpec, load
from opkit.toolchain.projects.tree import (
    LISTING_SUFFIX,
    KernelFile,
    Tree,
    read_folder,
    read_kernel_options,
    read_listing,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

__all__ = ["Project", "load_project"]


@dataclass(frozen=True)
class Project:
    """One operator project."""

    root: Path
    """The folder of pyproject.toml, absolute."""
    name: str
    """`[project] name`; the folder's name where there is none."""
    operators: tuple[OpSpec, ...]
    """All operators of the JSON files in `[tool.opkit] operators`, in that order; of a tree, what
    its host library registers, so none before it was built."""
    tree: Tree | None = None
    """Without a pyproject.toml: its sources, whose OpDefs describe its operators."""
    kernel_files: Mapping[str, KernelFile] = field(default_factory=dict)
    """Kernel of each operator of a tree, by its OpDef name."""
    own_folder: Path | None = None
    """Folder of an operator of a library; its root is the library's."""

    @property
    def folder(self) -> Path:
        """Where what is built goes, and tests and cases lie."""
        return self.own_folder or self.root

    @property
    def package(self) -> str:
        """The Python package's name."""
        return re.sub(r"\W", "_", self.name)

    @property
    def package_dir(self) -> Path:
        """The Python package's folder."""
        return self.root / self.package

    def kernel_source(self, spec: OpSpec) -> Path:
        """Return where an operator's kernel lies."""
        if spec.op in self.kernel_files:
            return self.kernel_files[spec.op].source
        return self.root / "op_kernel" / f"{spec.name}.cpp"

    def kernel_options(self, op: str, *, soc_config: str) -> tuple[str, ...]:
        """Return the macros and include folders that CMake files give an operator's kernel."""
        if self.tree is not None:
            return self.tree.kernel_options(op, soc_config=soc_config)
        return read_kernel_options(self.root, op, soc_config=soc_config)

    def sources(self, folder: str) -> tuple[Path, ...]:
        """Return the C++ files of one folder of the project, by name."""
        if self.tree is not None:
            return self.tree.host_sources if folder == "op_host" else ()
        return tuple(sorted((self.root / folder).glob("*.cpp")))


def load_project(path: Path | None = None) -> Project:
    """Return the project at a folder, or at the nearest of its parents that is one.

    Args:
        path: a folder, or a file in it; or the list of sources that CMake's npu_op_package
            wrote; the working directory when None.
    Raises:
        UsageError: neither it nor a parent is a project, or its pyproject.toml is wrong.
        SpecError: one of its prototypes is wrong.
        SetupError: the folder's name is no text.
    """
    start = Path(os.path.normpath((path or Path.cwd()).absolute()))
    try:
        str(start).encode()
    except UnicodeEncodeError as err:
        raise SetupError(
            f"{str(start)!a}: the name of the folder is not UTF-8, and libraries are loaded by it",
            help="rename it, or put the project elsewhere",
        ) from err
    if not start.exists():
        raise UsageError(f"there is no {start}", help='"opkit gen" writes a project')
    if start.suffix == LISTING_SUFFIX and start.is_file():
        name, tree = read_listing(start)
        return Project(root=tree.root, name=name, operators=(), tree=tree)
    for folder in (start, *start.parents):
        settings = folder / "pyproject.toml"
        if settings.is_file():
            document = _read_toml(settings)
            table = document.get("tool", {}).get("opkit") if isinstance(document, dict) else None
            if isinstance(table, dict):
                return _project(settings, document, table)
        found = read_folder(folder, cache=cache_folder())
        if found is not None:
            return Project(
                root=found.root, name=folder.name, operators=(), tree=found, own_folder=folder
            )
    raise UsageError(
        f"{start} is not in an operator project: no pyproject.toml with [tool.opkit], and no"
        " op_host/ with op_kernel/ beside it",
        help='"opkit gen -i op.json -o DIR" writes a project; name its folder, or work inside it',
    )


def _read_toml(settings: Path) -> dict[str, dict[str, object]]:
    try:
        document: dict[str, dict[str, object]] = tomllib.loads(settings.read_text(encoding="utf-8"))
        return document
    except (OSError, UnicodeDecodeError) as err:
        raise UsageError(f"{settings}: cannot be read: {err}") from err
    except tomllib.TOMLDecodeError as err:
        raise UsageError(f"{settings}: not TOML: {err}") from err


def _project(
    settings: Path, document: dict[str, dict[str, object]], table: dict[str, object]
) -> Project:
    files = table.get("operators")
    if (
        not isinstance(files, list)
        or not files
        or not all(isinstance(name, str) and name for name in files)
    ):
        raise UsageError(
            f"{settings}: [tool.opkit] operators is {files!r}, expected a list of JSON files",
            help='write operators = ["gelu_custom.json"]',
        )
    root = settings.parent
    for name in files:
        if not (root / name).is_file():
            raise UsageError(
                f"{settings}: [tool.opkit] operators names {name}, which is not in {root}"
            )
    operators = tuple(spec for name in files for spec in load(root / name))
    _check_names_differ(settings, operators)
    name = document.get("project", {}).get("name")
    return Project(
        root=root,
        name=name if isinstance(name, str) and name else root.name,
        operators=operators,
    )


def _check_names_differ(settings: Path, operators: tuple[OpSpec, ...]) -> None:
    seen: dict[str, OpSpec] = {}
    for spec in operators:
        if spec.name in seen:
            first = seen[spec.name]
            raise UsageError(
                f"{settings}: {spec.source.name} and {first.source.name} both define a kernel"
                f" named {spec.name}",
                help="give one of them another kernel_name",
            )
        seen[spec.name] = spec
