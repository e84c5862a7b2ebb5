"""Write the parts of the documents that are facts about the program, from the program itself.

    python docs/generate.py            # after adding an instruction, a command or an option
    python docs/generate.py --check    # exits 1 and names what is out of date

A document marks such a part with `<!-- NAME: begin -->` and `<!-- NAME: end -->`. Pages of
docs/zh have the code blocks and the marked parts of the English page of the same name, which
languages.py copies, and links to Chinese pages where these exist.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
from languages import CHINESE, english_of, with_english_code, with_links

from opkit.chips import all_chips
from opkit.cli.app import COMMANDS, group
from opkit.dtypes import DTYPES

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "examples" / "prototypes" / "corpus"

FAMILIES = {
    "vec_unary": "one source",
    "vec_binary": "two sources",
    "vec_binary_scalar": "a tensor and a scalar",
    "vec_special": "other vector instructions",
    "data_copy": "copies",
    "cube": "matrices",
    "control": "scalars, flags, barriers",
}
"""Headings by family of the table; a family that is missing here goes by its own name."""

TIERS = {
    "T1": "the names that carry most public kernels",
    "T2": "names that some use",
    "T3": "the long tail",
}
MISSED_SHOWN = 40
EVERYWHERE = {"json", "verbose", "quiet", "help"}
"""Options of every command, which the head of docs/commands.md explains once."""


def instruction_names() -> str:
    """Return one row a family: how many instructions, and which."""
    rows = _instructions()
    first, *others = all_chips()
    lines = [
        f"{len(rows)} instructions on {first.name}:",
        "",
        "| family | instructions |",
        "|---|---|",
    ]
    for family in dict.fromkeys(row["family"] for row in rows):
        names = ", ".join(f"`{row['name']}`" for row in rows if row["family"] == family)
        lines.append(f"| {FAMILIES.get(family, family.replace('_', ' '))} | {names} |")
    for chip in others:
        lacking = [
            f"`{row['name']}`"
            for row in rows
            if row["dtypes"].get(first.npu_arch) and not row["dtypes"].get(chip.npu_arch)
        ]
        lines += ["", f"{chip.name} lacks {', '.join(lacking)}." if lacking else ""]
    return "\n".join(lines).rstrip()


def instruction_table() -> str:
    """Return every instruction with its types on each chip, what it does and its cost class."""
    chips = all_chips()
    lines = [
        f"| instruction | does | {' | '.join(chip.name for chip in chips)} | cost class |",
        "|---|---|" + "---|" * (len(chips) + 1),
    ]
    for row in _instructions():
        types = " | ".join(_types(row["dtypes"].get(chip.npu_arch, [])) for chip in chips)
        does = row["semantics"].replace("|", "\\|")
        lines.append(f"| `{row['name']}` | `{does}` | {types} | {row['cost']} |")
    return "\n".join(lines)


def commands() -> str:
    """Return every command's help, as its click command holds it."""
    context = click.Context(group, info_name="opkit", **group.context_settings)
    parts = []
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        parts.append(_command_text(name, command, context))
        if isinstance(command, click.Group):
            inner = click.Context(command, info_name=name, parent=context)
            parts += [
                _command_text(f"{name} {each}", one, context)
                for each in command.list_commands(inner)
                if (one := command.get_command(inner, each)) is not None
            ]
    return "\n\n".join(parts)


def names() -> str:
    """Return how many of the API's public names the headers declare, and which are missed most."""
    from opkit.compat import api_names, read_declared

    known = api_names()
    lacking = read_declared().missing(known)
    lines = ["| tier | declared |", "|---|---|"]
    for tier, meaning in TIERS.items():
        total = sum(name.tier == tier for name in known)
        gone = sum(name.tier == tier for name in lacking)
        lines.append(f"| {meaning} | {total - gone} of {total} |")
    most = sorted(lacking, key=lambda name: (-name.kernels, name.text))[:MISSED_SHOWN]
    listed = ", ".join(f"`{name.text}`" for name in most)
    return "\n".join([*lines, "", f"Missing, most used first: {listed}."])


def accuracy() -> str:
    """Return the one line of docs/profile.md that sums the timing model's errors up."""
    text = (ROOT / "docs" / "profile.md").read_text(encoding="utf-8")
    found = re.search(r"^Mean absolute error .*$", text, re.MULTILINE)
    if found is None:
        raise ValueError("docs/profile.md has no line that starts with: Mean absolute error")
    return f"  {found[0]}"


def limits() -> str:
    """Return what pages state as a limit, one row each, and how many of them are held."""
    from opkit.sanitizer.limits import STATES, stated_limits

    rows = stated_limits()
    counts = ", ".join(
        f"{sum(row.state == state for row in rows)} are {state}"
        f" ({sum(row.sentences for row in rows if row.state == state)} sentences)"
        for state in STATES
    )
    lines = [f"Of {len(rows)} limits {counts}.", "", "| of | limit | here | reported as |"]
    lines.append("|---|---|---|---|")
    for row in rows:
        reported = row.held_by if row.state == "left" else row.id or "-"
        lines.append(f"| {row.api} | {row.text} | {row.state} | {reported} |")
    return "\n".join(lines)


def passes() -> str:
    """Return the compiler's passes in their order."""
    from opkit.compiler import PASSES

    lines = ["| pass | what it gives | runs |", "|---|---|---|"]
    lines += [f"| `{row.name}` | {row.does} | {row.condition} |" for row in PASSES]
    return "\n".join(lines)


def written_out() -> str:
    """Return the functions of PyTorch and NumPy that formulas write out, and as what."""
    from opkit.schema import WRITTEN_OUT

    rows = (f"| `{name}({row.parameters})` | `{row.text}` |" for name, row in WRITTEN_OUT.items())
    return "\n".join(["| | |", "|---|---|", *rows])


def formula_words() -> str:
    """Return the functions of tensors of any rank that formulas have by PyTorch's names."""
    from opkit.compiler import FORMULA_WORDS

    return " ".join(f"`{name}`" for name in sorted(FORMULA_WORDS))


def torchs_elementwise() -> str:
    """Return the element-wise functions of PyTorch that formulas call and operators do not have."""
    from opkit.compiler import ATEN_ELEMENTWISE, FORMULA_WORDS, OPERATORS
    from opkit.schema import WRITTEN_OUT

    functions = {key.split(".")[1] for key in ATEN_ELEMENTWISE if key.startswith("aten.")}
    functions -= {*OPERATORS, *WRITTEN_OUT, *FORMULA_WORDS}
    shown = (each for each in sorted(functions) if not re.search(r"^_|backward", each))
    return " ".join(f"`{name}`" for name in shown)


def cookbook(family: str, language: str) -> str:
    """Return the operators of a page of the cookbook: what for, prototype, what to notice.

    The words are those of docs/cookbook/recipes.json, the prototypes those of the corpus.
    """
    heading = {"en": "Notice", "zh": "注意"}[language]
    lines: list[str] = []
    for recipe in recipes():
        if recipe["family"] != family:
            continue
        text = (CORPUS / f"{recipe['prototype']}.json").read_text(encoding="utf-8")
        words = recipe[language]
        lines += [f"## {json.loads(text)['op']}", "", words["use"], ""]
        lines += ["```json", compact(json.loads(text)), "```", ""]
        lines += [f"{heading}: {words['notice']}", ""]
    return "\n".join(lines).rstrip()


def cookbook_index(language: str) -> str:
    """Return a table of the cookbook's operators with links into its pages."""
    lines = [{"en": "| operator | |", "zh": "| 算子 | |"}[language], "|---|---|"]
    for recipe in recipes():
        text = (CORPUS / f"{recipe['prototype']}.json").read_text(encoding="utf-8")
        name = json.loads(text)["op"]
        link = f"[{name}]({recipe['family']}.md#{name.lower()})"
        lines.append(f"| {link} | {recipe[language]['use']} |")
    return "\n".join(lines)


def recipes() -> list[dict[str, Any]]:
    """Return the rows of the cookbook's table."""
    path = ROOT / "docs" / "cookbook" / "recipes.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def compact(entry: dict[str, Any]) -> str:
    """Return a prototype as people write it: a line a tensor, a line an attribute."""
    lines = ["{"]
    for key, value in entry.items():
        last = "" if key == list(entry)[-1] else ","
        if isinstance(value, list) and value:
            rows = [json.dumps(row, ensure_ascii=False) for row in value]
            lines.append(f'    "{key}": [')
            lines += [f"        {row}{',' if row is not rows[-1] else ''}" for row in rows]
            lines.append(f"    ]{last}")
        else:
            lines.append(f'    "{key}": {json.dumps(value, ensure_ascii=False)}{last}')
    return "\n".join([*lines, "}"])


COOKBOOK = ("activations", "elementwise", "rows", "axes", "optimisers")
"""Pages of the cookbook, in their order."""

SECTIONS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"instructions": instruction_names, "names": names, "accuracy": accuracy},
    "docs/instructions.md": {"instructions": instruction_table},
    "docs/commands.md": {"commands": commands},
    "docs/check.md": {"limits": limits},
    "docs/compiler.md": {"passes": passes},
    "docs/operators.md": {
        "written-out": written_out,
        "words": formula_words,
        "element-wise": torchs_elementwise,
    },
    **{
        f"docs/{folder}cookbook/{family}.md": {"cookbook": partial(cookbook, family, language)}
        for language, folder in (("en", ""), ("zh", f"{CHINESE}/"))
        for family in COOKBOOK
    },
    "docs/cookbook/index.md": {"operators": partial(cookbook_index, "en")},
    f"docs/{CHINESE}/cookbook/index.md": {"operators": partial(cookbook_index, "zh")},
}
"""By document: what stands between its markers."""


def generated() -> Iterator[tuple[Path, str, str]]:
    """Yield each document with the text that it has and the text that it should have.

    Raises:
        ValueError: a document lacks a marker.
    """
    for name, sections in SECTIONS.items():
        path = ROOT / name
        now = path.read_text(encoding="utf-8")
        text = now
        for marker, write in sections.items():
            begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
            pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
            found = pattern.search(text)
            if found is None:
                raise ValueError(f"{name} has no lines {begin} and {end}")
            start, stop = found.span()
            text = f"{text[:start]}{begin}\n{write()}\n{end}{text[stop:]}"
        yield path, now, text


def translated() -> Iterator[tuple[Path, str, str]]:
    """Yield each Chinese page with its text and that text with the English page's code."""
    for path in sorted((ROOT / "docs" / CHINESE).rglob("*.md")):
        now = path.read_text(encoding="utf-8")
        text = now
        if str(path.relative_to(ROOT)) not in SECTIONS:
            text = with_english_code(now, english_of(path).read_text(encoding="utf-8"))
        yield path, now, with_links(text, path)


def _instructions() -> list[dict[str, Any]]:
    from opkit import runtime

    runtime.load_emulator()
    import opkit.emulator._emulator as emulator

    table: list[dict[str, Any]] = emulator.isa_table()
    return table


def _types(codes: list[str]) -> str:
    if len(codes) >= len(DTYPES):
        return "any"
    names = {dtype.code: dtype.name for dtype in DTYPES}
    return " ".join(names.get(code, code.lower()) for code in codes) or "-"


def _command_text(name: str, command: click.Command, context: click.Context) -> str:
    inner = click.Context(command, info_name=name, parent=context, **command.context_settings)
    usage = " ".join(["opkit", name, *command.collect_usage_pieces(inner)])
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    lines = [f"## opkit {name}", "", f"    {usage}", ""]
    for paragraph in paragraphs:
        example = re.fullmatch(r"(Example|With CMake): (.*)", paragraph)
        text = f"{example[1]}: `{example[2]}`" if example else _escaped(paragraph)
        lines += [text, ""]
    options = []
    for parameter in command.get_params(inner):
        record = parameter.get_help_record(inner)
        if record is None or isinstance(parameter, click.Argument) or parameter.name in EVERYWHERE:
            continue
        option, help_text = (" ".join(part.split()).replace("|", "\\|") for part in record)
        options.append(f"| `{option}` | {_escaped(help_text)} |")
    if options:
        lines += ["| option | |", "|---|---|", *options]
    return "\n".join(lines).rstrip()


def _escaped(text: str) -> str:
    """Return help text for Markdown, where `<file>` outside of code would be taken for a tag."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "\\<") for part in parts[::2]]
    return "`".join(parts)


def main() -> int:
    """Write what has changed, or only name it with --check."""
    check = "--check" in sys.argv
    stale = False
    for pages in (generated, translated):  # the second reads what the first has written
        for path, now, text in pages():
            if now == text:
                continue
            stale = True
            print(path.relative_to(ROOT))
            if not check:
                path.write_text(text, encoding="utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
