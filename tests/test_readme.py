"""The README is true: its commands exist, and what its tour shows is what the program writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from opkit import scaffold, schema
from opkit.testing import default_cases

from .documents import ROOT, blocks_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [block.text.strip() for block in blocks_of(ROOT / "README.md")]


def block_with(text: str) -> str:
    """Return the one block that contains a text."""
    (found,) = [block for block in BLOCKS if text in block]
    return found


def tour_spec() -> schema.OpSpec:
    (spec,) = schema.parse(block_with('"op": "GELUCustom"'), file=Path("README.md"))
    return spec


def test_the_two_commands_stand_alone_in_their_blocks() -> None:
    commands = [block.split("#")[0].strip() for block in BLOCKS if block.startswith("pip install")]
    assert commands[:2] == ["pip install . && opkit demo", "pip install '.[test]' && pytest"]


def test_the_tour_shows_files_and_code_that_gen_writes() -> None:
    tree = scaffold.render(tour_spec(), prototype=block_with('"op": "GELUCustom"'))
    files = re.findall(r"create +gelu_custom/(\S+)", block_with("$ opkit gen"))
    assert files
    assert set(files) <= {str(path) for path in tree}
    kernel = next(
        text
        for path, text in tree.items()
        if path.name == "gelu_custom.cpp" and "op_kernel" in path.parts
    )
    written = {line.strip() for line in kernel.splitlines()}
    for line in block_with("Exp(scratch1").splitlines():
        assert line == "..." or line.strip() in written, line


def test_the_tour_shows_cases_that_test_runs() -> None:
    tree = scaffold.render(tour_spec(), prototype=block_with('"op": "GELUCustom"'))
    backward = next(text for path, text in tree.items() if path.name == "gelu_custom_grad.json")
    (grad,) = schema.parse(backward, file=Path("gelu_custom_grad.json"))
    names = [case.name for spec in (tour_spec(), grad) for case in default_cases(spec)]
    shown = block_with("$ opkit test")
    assert set(re.findall(r"^gelu_custom\S*-\S+", shown, re.MULTILINE)) <= set(names)
    (total,) = re.findall(r"(\d+) cases by", shown)
    # Choices by tiling data add some that only a built operator has; a slow test runs it.
    assert int(total) >= len(names)


def test_the_prototype_of_the_tour_is_the_one_of_the_demo() -> None:
    demo = Path(scaffold.__file__).parents[1] / "cli" / "commands" / "data" / "gelu_custom.json"
    (spec,) = schema.load(demo)
    shown = tour_spec()
    assert (shown.op, shown.name, shown.inputs, shown.outputs) == (
        spec.op,
        spec.name,
        spec.inputs,
        spec.outputs,
    )
    assert json.loads(demo.read_text())["kernel_name"] == "gelu_custom"
