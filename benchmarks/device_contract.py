"""What libraries take from a device's module in torch, collected from their sources.

    python benchmarks/device_contract.py FOLDER ... > tests/torch_npu/contract.tsv

Each folder is an installed package, such as site-packages/accelerate. A row has a name below
`torch.npu` (or `torch.accelerator.NAME`) and the packages whose sources take it. Names are found by
how they are written: `torch.npu.NAME`, and `.NAME` of a variable or call that is a device's module
(`device_module`, `getattr(torch, kind)`, `torch.get_device_module(kind)` and their likes).
`tests/torch_npu/test_contract_table.py` reads the rows.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

_OWNERS = (
    r"torch\.npu",
    r"(?:self\.)?_?(?:device_module|device_handle|torch_device_module|device_mod)",
    r"getattr\(torch, [\w.]*(?:device|backend|kind)[\w.()]*\)",
    r"(?:torch\.)?_?get_device_(?:module|handle)\([^()]*\)",
)
_NAME = re.compile(rf"(?<![\w.])(?:{'|'.join(_OWNERS)})\.([a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)?)")
_ACCELERATOR = re.compile(r"\btorch\.(accelerator\.[a-z_]\w*)")
_ASKED = re.compile(rf"\b(?:has|get)attr\((?:{'|'.join(_OWNERS)}),\s*[\"'](\w+)[\"']")


def names_in(text: str) -> set[str]:
    """Return the names that a source takes."""
    found = {*_NAME.findall(text), *_ACCELERATOR.findall(text), *_ASKED.findall(text)}
    return {name for name in found if not name.startswith("__")}


def main() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for folder in map(Path, sys.argv[1:]):
        for path in folder.rglob("*.py"):
            if "test" not in path.name and "testing" not in path.parts:
                for name in names_in(path.read_text(encoding="utf-8", errors="replace")):
                    found[name].add(folder.name)
    for name in sorted(found):
        print(f"{name}\t{' '.join(sorted(found[name]))}")


if __name__ == "__main__":
    main()
