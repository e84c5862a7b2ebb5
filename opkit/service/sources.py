"""Where versions come from: projects, folders, wheels, packages, programs, model files."""

from __future__ import annotations

import importlib.util
import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from opkit.errors import UsageError
from opkit.service.interface import Interface, interface_of_manifest

__all__ = ["DESCRIPTION", "GOLDEN_MODEL", "MODEL", "Staged", "complete", "stage"]

DESCRIPTION = "version.json"
"""The file of a kept version that says what the rest is."""

MODEL = "model.opkit"
GOLDEN_MODEL = "golden.opkit"
"""The model file that answers are held against, where it is no golden.py."""

# What only Python programs and C++ programs outside the service need.
_LEFT_OUT = ("_numpy", "_torch", "libcust_opapi")
_LARGEST_WHEEL = 1 << 30


@dataclass(frozen=True)
class Staged:
    """A version's files, copied together, before they are named by their content."""

    kind: str
    """`operator`, of an artifact folder, `program`, a Python file for the compiler, or `model`, a
    model file."""
    interface: Interface | None
    """None for programs and model files: only a worker may load them, to see."""
    has_reference: bool


def stage(
    source: str, folder: Path, *, base: Path, op: str | None = None, golden: str | None = None
) -> Staged:
    """Copy what a source names into an empty folder.

    Args:
        base: what relative paths start from.
    Raises:
        UsageError: the source is none of those that docs/service.md lists, or is not built.
    """
    path = base / source
    if source.startswith("package:"):
        return _stage_artifact(_installed(source.partition(":")[2]), folder, op, golden, base)
    if path.suffix == ".whl" and path.is_file():
        return _stage_wheel(path, folder, op, golden, base)
    file, _, function = source.partition(":")
    if (base / file).suffix == ".py" and (base / file).is_file():
        return _stage_program(base / file, function or op, folder)
    if path.is_file():
        return _stage_model(path, folder, op, golden, base)
    for candidate in (path, path / "build" / "opkit", path / "_lib"):
        if (candidate / "manifest.json").is_file():
            return _stage_artifact(candidate, folder, op, golden, base)
    if (path / "pyproject.toml").is_file():
        raise UsageError(f"{path} is not built", help=f"run opkit build {path}")
    raise UsageError(
        f"{source}: no project, artifact folder, wheel, installed package, program or model file at"
        f" {path}",
        help='name a built project\'s folder, a wheel, "package:NAME", FILE.py:FUNCTION, or a file'
        " of Model.save",
    )


def _stage_artifact(
    artifact: Path, folder: Path, op: str | None, golden: str | None, base: Path
) -> Staged:
    interface = interface_of_manifest(artifact / "manifest.json", op)
    content = folder / "content"
    content.mkdir()
    for path in sorted(artifact.iterdir()):
        if path.is_file() and not path.name.startswith((*_LEFT_OUT, ".")):
            shutil.copyfile(path, content / path.name)
    if not any(content.glob("*.so")):
        raise UsageError(f"{artifact} has a manifest and no libraries", help="build it again")
    function = _stage_golden(artifact, folder, interface, golden, base)
    described = {"kind": "operator", "interface": interface.to_json(), "golden": function}
    (folder / DESCRIPTION).write_text(json.dumps(described, indent=1, sort_keys=True))
    return Staged("operator", interface, function is not None)


def _stage_golden(
    artifact: Path, folder: Path, interface: Interface, golden: str | None, base: Path
) -> str | None:
    """Copy the reference, and return the name of its function; None where there is none."""
    file, _, function = (golden or "").partition(":")
    if golden is not None and not (base / file).is_file():
        raise UsageError(f"golden {golden!r}: there is no {base / file}")
    found = base / file if golden is not None else _golden_beside(artifact)
    if found is None:
        return None
    shutil.copyfile(found, folder / "golden.py")
    return function or interface.kernel


def _golden_beside(artifact: Path) -> Path | None:
    # A wheel's package has it above _lib; a project beside build/opkit, in its package's folder.
    package = json.loads((artifact / "manifest.json").read_bytes()).get("package", "")
    project = artifact.parent.parent
    for path in (artifact.parent / "golden.py", project / package / "golden.py"):
        if path.is_file():
            return path
    return None


def _stage_wheel(
    wheel: Path, folder: Path, op: str | None, golden: str | None, base: Path
) -> Staged:
    unpacked = folder / "unpacked"
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [PurePosixPath(name) for name in archive.namelist()]
            manifests = [name for name in names if name.parts[1:] == ("_lib", "manifest.json")]
            if not manifests:
                raise UsageError(f"{wheel} carries no operators: it has no _lib/manifest.json")
            package = manifests[0].parts[0]
            wanted = [
                info
                for info in archive.infolist()
                if _is_plain(info.filename) and info.filename.split("/")[0] == package
            ]
            if sum(info.file_size for info in wanted) > _LARGEST_WHEEL:
                raise UsageError(f"{wheel} unpacks to more than {_LARGEST_WHEEL >> 20} MiB")
            archive.extractall(unpacked, members=wanted)
    except (OSError, zipfile.BadZipFile) as err:
        raise UsageError(f"{wheel} cannot be read as a wheel: {err}") from err
    try:
        return _stage_artifact(unpacked / package / "_lib", folder, op, golden, base)
    finally:
        shutil.rmtree(unpacked)


def _is_plain(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return not name.startswith("/") and ".." not in parts


def _installed(name: str) -> Path:
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    for location in (spec.submodule_search_locations or ()) if spec else ():
        for folder in (Path(location) / "_lib", Path(location).parent / "build" / "opkit"):
            if (folder / "manifest.json").is_file():
                return folder
    raise UsageError(
        f"package:{name} is not installed here, or has no operators",
        help="install its wheel for this Python, or name the wheel",
    )


def _stage_program(path: Path, function: str | None, folder: Path) -> Staged:
    shutil.copyfile(path, folder / "program.py")
    described = {"kind": "program", "function": function, "name": path.stem}
    (folder / DESCRIPTION).write_text(json.dumps(described, indent=1, sort_keys=True))
    return Staged("program", None, True)


def _stage_model(
    path: Path, folder: Path, op: str | None, golden: str | None, base: Path
) -> Staged:
    if op is not None:
        raise UsageError(f"{path} is one model, and has no {op}", help="leave out op")
    shutil.copyfile(path, folder / MODEL)
    reference = None
    if golden is not None:
        file, _, function = golden.partition(":")
        if not (base / file).is_file():
            raise UsageError(f"golden {golden!r}: there is no {base / file}")
        is_python = file.endswith(".py")
        shutil.copyfile(base / file, folder / ("golden.py" if is_python else GOLDEN_MODEL))
        reference = function or path.stem if is_python else GOLDEN_MODEL
    described = {"kind": "model", "name": path.stem, "golden": reference}
    (folder / DESCRIPTION).write_text(json.dumps(described, indent=1, sort_keys=True))
    return Staged("model", None, reference is not None)


def complete(folder: Path, interface: Interface) -> None:
    """Write into a version's description what a worker has found in its files."""
    described = json.loads((folder / DESCRIPTION).read_bytes())
    described["interface"] = interface.to_json()
    (folder / DESCRIPTION).write_text(json.dumps(described, indent=1, sort_keys=True))
