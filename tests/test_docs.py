"""The documents are true: generated parts are current, examples run, links lead somewhere."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

from opkit import schema
from opkit.algebra import FUNCTIONS
from opkit.errors import SpecError
from opkit.scaffold import formula, render

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OPERATORS = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")


def load_generator() -> ModuleType:
    if str(ROOT / "docs") not in sys.path:  # generate.py imports its neighbour
        sys.path.append(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of docs/operators.md in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", OPERATORS, re.DOTALL | re.MULTILINE)


def block(language: str) -> str:
    """Return the one fenced block of docs/operators.md in a language."""
    (found,) = blocks(language)
    return found


def read_formula(text: str) -> formula.ParsedFormulas:
    """Read a formula of an operator with inputs x and y and float attributes alpha and beta."""
    operator = {
        "op": "Sample",
        "input_desc": [{"name": name, "type": "float32"} for name in ("x", "y")],
        "output_desc": [{"name": "z", "type": "float32", "formula": text}],
        "attr": [{"name": name, "type": "float"} for name in ("alpha", "beta")],
    }
    (spec,) = schema.parse(json.dumps(operator), file=Path("sample.json"))
    return formula.parse(spec)


def test_generated_parts_are_current() -> None:
    # In a process of its own: commands that tests have run in this one may tell other defaults.
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: run python docs/generate.py"


def test_a_document_without_its_markers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = load_generator()
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    monkeypatch.setattr(generator, "SECTIONS", {"page.md": {"part": lambda: "text"}})
    (tmp_path / "page.md").write_text("nothing to fill")
    with pytest.raises(ValueError, match=r"page\.md has no lines <!-- part: begin -->"):
        list(generator.generated())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document: Path) -> None:
    # `kernel[grid](...)` is code.
    text = re.sub(r"`[^`\n]+`", "", document.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (document.parent / target).exists()]
    assert not missing, f"{document.name} links to {', '.join(missing)}"


@pytest.mark.parametrize("document", ["architecture.md", "emulator.md", "instructions.md"])
def test_source_paths_in_documents_exist(document: str) -> None:
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    emulator = ROOT / "opkit" / "emulator"
    bases = (emulator, emulator / "include" / "opkit", ROOT / "opkit", ROOT)
    named = re.findall(
        r"`((?:src|isa|include|chips|opkit|emulator|cli|schema|scaffold|toolchain|runtime|testing|profiling|compat)/[\w./*]+)`",
        text,
    )
    assert named
    missing = [path for path in named if not any([*base.glob(path)] for base in bases)]
    assert not missing, f"docs/{document} names {', '.join(missing)}"


def test_the_prototypes_in_operators_md_are_valid() -> None:
    first, of_lists, second = blocks("json")
    (spec,) = schema.parse(of_lists, file=Path("operators.md"))
    assert "lists.split" in render(spec)[PurePosixPath("op_kernel/foreach_axpy.cpp")]
    (spec,) = schema.parse(second, file=Path("operators.md"))
    assert "op_kernel/row_norm_grad.cpp" in map(str, render(spec))
    (spec,) = schema.parse(first, file=Path("operators.md"))
    assert spec.name == "rmsnorm"
    assert spec.variant_count == 3
    assert formula.parse(spec).kind == "rowwise"


def test_every_formula_in_operators_md_is_accepted() -> None:
    for text in block("formulas").splitlines():
        assert read_formula(text).outputs[0].text == text


@pytest.mark.parametrize("text", block("implied").splitlines())
def test_every_formula_that_operators_md_calls_one_over_axes_needs_no_names_for_them(
    text: str,
) -> None:
    names = [name for name in ("x", "w") if re.search(rf"\b{name}\b", text)]
    entry = {
        "op": "Implied",
        "input_desc": [{"name": name, "type": "float16"} for name in names],
        "output_desc": [{"name": "y", "type": "float16", "formula": text}],
        "attr": [{"name": "beta", "type": "float"}],
    }
    (spec,) = schema.parse(json.dumps(entry), file=Path("implied.json"))
    assert spec.is_program
    assert "op_kernel/implied.cpp" in map(str, render(spec))


def test_operators_md_lists_every_function_that_implies_axes() -> None:
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", OPERATORS))))
    assert words >= schema.ELEMENTWISE | schema.ROWS


@pytest.mark.parametrize("line", block("refused").splitlines())
def test_every_formula_that_operators_md_calls_refused_is_refused(line: str) -> None:
    text = re.split(r" {2,}", line)[0]
    with pytest.raises(SpecError):
        read_formula(text)


def test_operators_md_lists_every_function() -> None:
    (row,) = re.findall(r"^\| functions \| (.*) \|$", OPERATORS, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) == set(FUNCTIONS) - {"where"}


def test_operators_md_lists_every_field() -> None:
    definitions = schema.json_schema()["$defs"]
    for kind in ("operator", "input", "output", "attribute"):
        for field in definitions[kind]["properties"]:
            assert field == "$schema" or f"`{field}`" in OPERATORS, f"{kind}: {field}"


@pytest.mark.slow
def test_the_examples_in_python_md_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prototype = ROOT / "examples" / "prototypes" / "gelu_custom.json"
    (tmp_path / "gelu_custom.json").write_bytes(prototype.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = ROOT / "docs" / "python.md"
    result = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
    )
    assert result.attempted > 10
    assert result.failed == 0
