"""Names of kernels' classes and tiling structures."""

import re

from opkit import emulator
from opkit.compiler.codegen.kernel_class import struct_of


def test_no_tiling_structure_has_the_name_of_one_of_the_api() -> None:
    """Kernels of operators named LayerNorm or Pad did not compile: "redefinition of struct"."""
    api = emulator.include_dir() / "opkit" / "api"
    text = "".join(path.read_text() for path in sorted(api.glob("*.h")))
    taken = re.findall(r"^using AscendC::tiling::(\w+)Tiling;", text, re.MULTILINE)
    assert "LayerNorm" in taken
    for stem in taken:
        assert struct_of(stem) == f"{stem}OwnTiling"
    assert struct_of("Gelu") == "GeluTiling"
