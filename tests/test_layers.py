"""The import order of docs/architecture.md, and who may print, exit, or catch everything."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "opkit").rglob("*.py"))
# The compiled module is its own face: opkit.emulator must not load it for whoever wants a path.
COMPILED = "opkit.emulator._emulator"


# Not while tests are collected: every process that takes part would parse all of opkit.
@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def layers() -> list[list[str]]:
    """Read the order from the document, so that the picture and the rule cannot part."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    line = re.search(r"^ +(errors .*<.*cli)$", text, re.MULTILINE)
    assert line is not None, "docs/architecture.md no longer draws the import order"
    return [layer.split() for layer in line.group(1).split("<")]


RANK = {name: rank for rank, names in enumerate(layers()) for name in names}


@dataclass(frozen=True)
class Import:
    """One module that a file imports, wherever in the file."""

    file: Path
    line: int
    module: str
    name: str | None
    """What `from module import name` takes; None for `import module`."""


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parent.parts)


def imports_of(path: Path, tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(path, node.lineno, alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package_of(path).split(".")
                above = parents[: len(parents) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                yield Import(path, node.lineno, base, alias.name)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("import_module")
            and isinstance(node.args[0], ast.Constant)
        ):
            yield Import(path, node.lineno, str(node.args[0].value), None)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


@functools.cache
def exported(package: str) -> set[str]:
    """Return `__all__` of a package, read from its source."""
    path = ROOT.joinpath(*package.split("."), "__init__.py")
    if not path.exists():
        return set()
    for node in trees()[path].body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == "__all__":
            assert isinstance(node, ast.Assign)
            return set(ast.literal_eval(node.value))
    return set()


def target_of(item: Import) -> str:
    """Return the module that an import reaches; `from a import b` reaches a.b if that is one."""
    if item.name is None or item.name in exported(item.module):
        return item.module
    joined = f"{item.module}.{item.name}"
    return joined if is_module(joined) else item.module


def room(module: str) -> str | None:
    """Return the layer name of a module, None for `opkit` itself and for what is not ours.

    `python -m opkit` is the command line.
    """
    parts = module.split(".")
    name = parts[1] if parts[0] == "opkit" and len(parts) > 1 else None
    return "cli" if name == "__main__" else name


@functools.cache
def imports() -> tuple[Import, ...]:
    return tuple(item for path, tree in trees().items() for item in imports_of(path, tree))


def ours() -> list[Import]:
    return [item for item in imports() if item.module.split(".")[0] == "opkit"]


def place(item: Import) -> str:
    return f"{item.file.relative_to(ROOT)}:{item.line}"


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 5
    assert len(ours()) > 5


def test_every_room_has_a_layer() -> None:
    rooms = {room(module_of(path)) for path in FILES} - {None}
    assert rooms <= set(RANK), "docs/architecture.md does not place these"


def breaks_the_order(source: str, target: str) -> bool:
    """Whether `source` may not import `target`; neighbours are strangers, except in layer 0."""
    if source == target:
        return False
    return RANK[target] > RANK[source] or (RANK[target] == RANK[source] and RANK[source] > 0)


def test_nothing_imports_rightwards() -> None:
    wrong = []
    for item in ours():
        source, target = room(module_of(item.file)), room(target_of(item))
        if source is not None and target is not None and breaks_the_order(source, target):
            wrong.append(f"{place(item)}: {source} imports {target}")
    assert wrong == []


def test_outsiders_import_packages_and_not_their_modules() -> None:
    wrong = []
    for item in ours():
        target = target_of(item)
        owner = target.rpartition(".")[0]
        inside = f"{package_of(item.file)}.".startswith(f"{owner}.")
        if target == COMPILED:
            continue
        if owner not in ("", "opkit") and not inside:
            wrong.append(f"{place(item)}: {target} belongs to {owner}")
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "target", "broken"),
    [
        ("schema", "errors", False),
        ("errors", "schema", True),
        ("errors", "dtypes", False),
        ("testing", "profiling", True),
        ("cli", "testing", False),
        ("runtime", "testing", True),
    ],
)
def test_the_order_rule_itself(source: str, target: str, broken: bool) -> None:
    assert breaks_the_order(source, target) is broken


def edges() -> dict[str, set[str]]:
    """Return the modules that each module imports, wherever in the file and for whatever reason."""
    found: dict[str, set[str]] = defaultdict(set)
    for item in ours():
        source = module_of(item.file)
        joined = f"{item.module}.{item.name}"
        target = joined if item.name is not None and is_module(joined) else item.module
        # A package gathers its modules; what one of them takes from the package is another's.
        if not f"{source}.".startswith(f"{target}."):
            found[source].add(target)
    return found


def circles(edges: Mapping[str, Iterable[str]]) -> set[frozenset[str]]:
    graph = networkx.DiGraph((source, target) for source in edges for target in edges[source])
    parts = networkx.strongly_connected_components(graph)
    return {frozenset(part) for part in parts if len(part) > 1}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert [sorted(part) for part in circles(edges())] == []


# Importing such a module binds the name to it, and not to what the package exports: whoever
# comes later gets the module. The list only shrinks.
SHARED_NAMES = {
    "opkit.scaffold.formula.torch_source",
    "opkit.scaffold.render",
    "opkit.torch_npu.autoload",
}


def test_no_package_exports_a_name_that_one_of_its_modules_has() -> None:
    wrong = set()
    for path in FILES:
        if path.name != "__init__.py" or "lazy_names" not in path.read_text(encoding="utf-8"):
            continue
        package = package_of(path)
        wrong |= {
            f"{package}.{name}" for name in exported(package) if is_module(f"{package}.{name}")
        }
    assert wrong == SHARED_NAMES


def test_no_folder_has_more_modules_than_a_reader_looks_through() -> None:
    folders = {path.parent for path in FILES}
    counts = {str(folder.relative_to(ROOT)): len([*folder.glob("*.py")]) for folder in folders}
    assert {name: count for name, count in counts.items() if count > 30} == {}


def test_the_circle_rule_itself() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"]}) == {frozenset("bc")}
    assert circles({"a": ["b"], "b": ["c"]}) == set()


def test_every_package_states_its_surface() -> None:
    packages = [path for path in FILES if path.name == "__init__.py"]
    assert [str(path) for path in packages if not exported(package_of(path))] == []


def test_only_the_torch_packages_import_torch() -> None:
    wrong = [
        place(item)
        for item in imports()
        if item.module.split(".")[0] == "torch"
        and room(module_of(item.file)) not in {"torch_npu", "torch_bridge", "graph"}
        # A process of its own: Triton takes torch's tensors.
        and item.file != ROOT / "opkit" / "compiler" / "codegen" / "triton" / "worker.py"
    ]
    assert wrong == []


def below_the_command_line() -> list[tuple[Path, ast.Module]]:
    return [(path, tree) for path, tree in trees().items() if room(module_of(path)) != "cli"]


def test_nothing_below_the_command_line_prints_or_exits() -> None:
    wrong = []
    for path, tree in below_the_command_line():
        scripts = path.relative_to(ROOT / "opkit").parts[:2] == ("emulator", "cmake")
        for node in ast.walk(tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in {"print", "sys.exit", "exit", "os._exit"} and not scripts:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {called}")
    assert wrong == []


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends any exception; one that raises again, or translates, does not."""
    caught = handler.type
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    wide = any(
        name is None or ast.unparse(name) in {"Exception", "BaseException"} for name in names
    )
    return wide and not isinstance(handler.body[-1], ast.Raise)


def test_only_the_console_catches_every_exception() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees().items()
        if path != ROOT / "opkit" / "cli" / "console.py"
        # PyTorch calls it while it is imported: whatever it raised would end "import torch".
        and path != ROOT / "opkit" / "torch_npu" / "autoload.py"
        # A process of its own: what a case raises goes to whoever asked for it.
        and path != ROOT / "opkit" / "executor" / "worker.py"
        and path != ROOT / "opkit" / "judging" / "worker.py"
        and path != ROOT / "opkit" / "testing" / "apart.py"
        and path != ROOT / "opkit" / "compiler" / "codegen" / "triton" / "worker.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    ]
    assert wrong == []
