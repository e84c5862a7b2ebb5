"""The corpus of prototypes: every field and family, generated; in the slow run built and tested."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opkit.scaffold import render
from opkit.schema import OpSpec, dump, load

CORPUS = Path(__file__).parents[2] / "examples" / "prototypes" / "corpus"
FILES = sorted(CORPUS.glob("*.json"))
PARTS = 3


def specs() -> list[OpSpec]:
    return [spec for file in FILES for spec in load(file)]


def test_the_corpus_has_every_field_value() -> None:
    found = specs()
    tensors = [tensor for spec in found for tensor in (*spec.inputs, *spec.outputs)]
    attrs = [attr for spec in found for attr in spec.attrs]
    assert len(FILES) >= 60
    assert {tensor.param_type for tensor in tensors} == {"required", "optional", "dynamic"}
    types = {"int", "float", "bool", "string", "list_int", "list_float", "list_bool"}
    assert {attr.type for attr in attrs if attr.default is not None} == {*types, "list_list_int"}
    assert {attr.type for attr in attrs if attr.default is None} == {*types, "list_list_int"}
    rules = {tensor.shape.kind for tensor in tensors if tensor.shape is not None}
    assert rules == {"same", "broadcast", "reduce", "matmul", "dims"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_prototype_renders_and_reads_back_the_same(file: Path) -> None:
    (spec,) = load(file)
    tree = render(spec)
    for path, text in tree.items():
        if path.suffix == ".py":
            ast.parse(text, filename=str(path))
    again = json.loads(dump(spec))
    assert again["op"] == spec.op
    assert f"class {spec.op} : public OpDef" in tree[Path(f"op_host/{spec.name}.cpp")]


def _of_one_combination(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a prototype without all but the first of its combinations of data types."""
    of_combinations = ("type", "format")  # where they are lists, their items go together

    def first(tensor: dict[str, Any]) -> dict[str, Any]:
        cut = {k: v[:1] for k, v in tensor.items() if k in of_combinations and isinstance(v, list)}
        return {**tensor, **cut}

    tensors = {key: [*map(first, entry.get(key, ()))] for key in ("input_desc", "output_desc")}
    return {**entry, **tensors}


@pytest.mark.slow(seconds=150)
@pytest.mark.torch
@pytest.mark.parametrize("part", range(PARTS))
def test_the_corpus_builds_and_passes_its_tests(part: int, tmp_path: Path) -> None:
    """A project of many operators each, so that bindings are compiled a few times.

    Every fourth has all its combinations of data types: it is the kernels that take minutes.
    """
    prototype = tmp_path / "corpus.json"
    entries = [json.loads(file.read_text(encoding="utf-8")) for file in FILES]
    entries = [
        entry if number % 4 == 0 else _of_one_combination(entry)
        for number, entry in enumerate(entries)
    ][part::PARTS]
    prototype.write_text(json.dumps(entries))
    folder = tmp_path / "corpus"
    opkit = [sys.executable, "-m", "opkit"]
    pytest_options = ["-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}  # those of this run are not meant for it
    for command, directory in (
        ([*opkit, "gen", "-q", "-i", str(prototype), "-o", str(folder), "-f", "pytorch"], tmp_path),
        ([*opkit, "build", "-q", str(folder)], tmp_path),
        ([sys.executable, "-m", "pytest", *pytest_options, "tests"], folder),
    ):
        done = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
