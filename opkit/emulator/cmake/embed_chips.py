"""Turn chips/*.json into C++ rows: embed_chips.py OUT.cpp CHIP.json...

The emulator library reads no files, so its chips are compiled in (types: `core/chip_rows.h`).
Runs at build time, before opkit can be imported: standard library only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def _with_base(chip: dict[str, Any], chips: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the chip with the numbers of the one that it is based on, where it has none itself."""
    if "based_on" not in chip:
        return chip
    base = next(other for other in chips if other["name"] == chip["based_on"])
    inherited = {k: v for k, v in base["numbers"].items() if not k.startswith("accuracy.")}
    return {**chip, "numbers": {**inherited, **chip["numbers"]}}


def _row(index: int, chip: dict[str, Any]) -> tuple[str, str]:
    """Return the definitions that one chip needs, and its entry in the table."""
    names = [*chip["aliases"], chip["soc_config"]]
    aliases = ", ".join([*(json.dumps(name) for name in names), "nullptr"])
    lines = [f"constexpr const char* kAliases{index}[] = {{{aliases}}};"]
    lines.append(f"constexpr ChipNumber kNumbers{index}[] = {{")
    for key, entry in sorted(chip["numbers"].items()):
        # repr() of a float reads back as the same double.
        lines.append(f"    {{{json.dumps(key)}, {float(entry['value'])!r}}},")
    lines.append("};")
    texts = ", ".join(json.dumps(chip[key]) for key in ("npu_arch", "soc_config"))
    entry = (
        f"    {{{json.dumps(chip['name'])}, kAliases{index}, {texts}, kNumbers{index}, "
        f"{len(chip['numbers'])}}},"
    )
    return "\n".join(lines), entry


def render(chips: list[dict[str, Any]]) -> str:
    """Return the C++ text for these chips, in the given order."""
    rows = [_row(index, chip) for index, chip in enumerate(chips)]
    definitions = "\n\n".join(definition for definition, _ in rows)
    table = "\n".join(entry for _, entry in rows)
    return (
        "// Written by embed_chips.py from chips/*.json: edit those.\n"
        '#include "core/chip_rows.h"\n\n'
        "namespace opkit {\nnamespace {\n\n"
        f"{definitions}\n\n"
        "}  // namespace\n\n"
        f"const ChipRow kChipRows[] = {{\n{table}\n}};\n"
        f"const unsigned kChipRowCount = {len(chips)};\n\n"
        "}  // namespace opkit\n"
    )


def main(arguments: list[str]) -> int:
    """Write the file; the default chip, Ascend910B2, is row 0."""
    if len(arguments) < 2:
        print("usage: embed_chips.py OUT.cpp CHIP.json...", file=sys.stderr)
        return 2
    out = Path(arguments[0])
    chips = [json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments[1:]]
    chips = [_with_base(chip, chips) for chip in chips]
    chips.sort(key=lambda chip: (chip["name"] != "Ascend910B2", chip["name"]))
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(out.name + ".tmp")
    aside.write_text(render(chips), encoding="utf-8")
    aside.replace(out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
