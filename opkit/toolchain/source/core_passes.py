"""Sources that the preprocessor asks for the kind of core: they are compiled once for each.

The vendor's compiler compiles a kernel once for cube cores and once for vector cores, and defines
which: `#ifdef __DAV_C220_VEC__` around a body, a member, a class or an #include. opkit compiles a
kernel once and decides at run time (`g_coreType`); where a condition asks these macros it compiles
as the vendor does. A kernel of one kind of core is compiled for that kind. One of both is compiled
twice: the symbols of the cube cores' object get another name, a table has both addresses of each
kernel, and `opkit/core_passes.h` calls the one of the core that runs.
Source: public kernels (no page names the macros): MatMulV3, GemmV3, FastHadamard, ReluV3.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from opkit.chips import all_architectures
from opkit.errors import SetupError
from opkit.toolchain.compiler import Compiler
from opkit.toolchain.source.launch_rewrite import TASK_TYPES, VECTOR, task_type_of
from opkit.toolchain.source.tokens import plain_code

__all__ = [
    "CUBE",
    "VEC",
    "core_passes",
    "join_passes",
    "pass_macros",
    "split_passes",
]

VEC = "vector"
CUBE = "cube"
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(?:.*\\\n)*.*", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*")
# What says that a kernel runs on cube cores, beside the task types.
_CUBE_WORDS = {"__cube__", "aic"}
_MIX_WORDS = {"__mix__", "core_ratio", "REGIST_MATMUL_OBJ", "__kfc_workspace__"}
# In front of the names of what calls a kernel: Invoker, PendingCall, twin::Call.
_CALLS = re.compile(r"5opkit.*6invoke")
# The one object that both passes share: what the kernels say of themselves.
_SHARED = {"_ZN5opkit12kernel_notesE"}
_TABLE = "opkit_core_twins"


def core_passes(texts: Iterable[str], arch: int) -> tuple[str, ...]:
    """Return the kinds of cores that a unit of these texts has to be compiled for, one by one.

    Empty where no condition asks for the kind of core.

    Args:
        texts: of all files of the user's in the unit.
        arch: `__NPU_ARCH__`.
    """
    macros = {name for names in _core_macros(arch).values() for name in names}
    codes = [plain_code(text) for text in texts]
    asked = {
        word
        for code in codes
        if "__DAV_" in code
        for condition in _CONDITION.findall(code)
        for word in _WORD.findall(condition)
    }
    if not asked & macros:
        return ()
    words = {word for code in codes for word in _WORD.findall(code)}
    modes = {TASK_TYPES[name] for word in words if (name := task_type_of(word)) is not None}
    on_cubes = bool(words & (_CUBE_WORDS | _MIX_WORDS) or modes - {VECTOR})
    on_vectors = not on_cubes or bool(
        words & (_MIX_WORDS | {"__vector__", "aiv"}) or modes - {"::opkit::KernelMode::Cube"}
    )
    return (*((VEC,) if on_vectors else ()), *((CUBE,) if on_cubes else ()))


def pass_macros(kind: str, passes: Collection[str], arch: int) -> tuple[str, ...]:
    """Return the options of one pass of those that a unit is compiled in."""
    names = _core_macros(arch).get(kind, ())
    # The calls of vector cores' object lead cube cores to the other one.
    calls = ("-DOPKIT_CORE_PASSES",) if len(passes) > 1 and kind == VEC else ()
    return (*(f"-D{name}=1" for name in names), *calls)


def _core_macros(arch: int) -> Mapping[str, tuple[str, ...]]:
    """Return what is defined while a kernel is compiled for one kind of core."""
    found = all_architectures().get(arch)
    return found.core_macros if found is not None else {}


def split_passes(
    texts: Iterable[str], arch: int
) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Return the options of a kernel's unit, and its passes with theirs where it is compiled twice.

    Args:
        texts, arch: as `core_passes` takes them.
    """
    passes = core_passes(texts, arch)
    options = tuple((kind, pass_macros(kind, passes, arch)) for kind in passes)
    if len(options) > 1:
        return (), options
    return tuple(option for _, options_of in options for option in options_of), ()


def join_passes(
    vector: Path,
    cube: Path,
    *,
    kernels: Collection[str],
    is_program: bool = False,
    compiler: Compiler,
    run: Callable[[list[str]], tuple[int, str]],
) -> tuple[tuple[Path, ...], str]:
    """Return the objects to link in the place of one unit compiled in two passes, and messages.

    No objects where a command failed: the messages say why. Both files are changed.

    Args:
        vector, cube: the objects of the two passes.
        kernels: the names of kernels, without namespaces.
        is_program: host code stands beside the kernels: its objects are made once.
        run: runs a command and returns its exit code with its messages.
    Raises:
        SetupError: the machine lacks nm or objcopy.
    """
    own, other = _defined(vector, compiler), _defined(cube, compiler)
    wanted = [f"{len(kernel)}{kernel}" for kernel in kernels]
    twins = [
        name
        for name in sorted(own.keys() & other.keys())
        if own[name] in "tTW"
        and "." not in name
        and (name in kernels or _CALLS.search(name) or any(part in name for part in wanted))
    ]
    # Local symbols have to be known to the table, and must meet none of another unit's.
    unique = f".{hashlib.sha256(vector.read_bytes()).hexdigest()[:16]}"
    vector_names = {name: f"{name}{unique}" for name in twins if own[name] == "t"}
    cube_names = {
        name: f"{name}.cube" for name, kind in other.items() if kind.isupper() or kind == "u"
    }
    cube_names |= {name: f"{name}{unique}.cube" for name in twins if other[name] == "t"}
    table = vector.with_suffix(".twins.s")
    rows = "".join(
        f'    .quad "{vector_names.get(name, name)}", "{cube_names[name]}"\n' for name in twins
    )
    table.write_text(
        f'.section {_TABLE},"aw",@progbits\n.balign 8\n{rows}'
        '.section .note.GNU-stack,"",@progbits\n'
    )
    made = vector.with_suffix(".twins.o")
    messages = ""
    for argv in (
        # An empty list of names is an error.
        *([_renaming(vector, vector_names, compiler)] if vector_names else []),
        [
            *_renaming(cube, cube_names, compiler),
            *(["--remove-section=.init_array*"] if is_program else []),
        ],
        [*compiler.argv, "-c", str(table), "-o", str(made)],
    ):
        code, log = run(argv)
        messages += log
        if code != 0:
            return (), messages
    return (vector, cube, made), messages


def _renaming(file: Path, names: dict[str, str], compiler: Compiler) -> list[str]:
    """Return the command that gives symbols of an object other names that all objects know."""
    pairs, known = file.with_suffix(".names"), file.with_suffix(".known")
    pairs.write_text("".join(f"{name} {new}\n" for name, new in names.items()))
    # A symbol is looked for by its new name, by the manual; older releases take the old one.
    known.write_text("".join(f"{name}\n{new}\n" for name, new in names.items()))
    tool = _tool("objcopy", compiler)
    return [tool, str(file), f"--globalize-symbols={known}", f"--redefine-syms={pairs}"]


def _defined(file: Path, compiler: Compiler) -> dict[str, str]:
    """Return the kind of each symbol that an object defines once, as nm writes it."""
    done = subprocess.run(
        [_tool("nm", compiler), "-P", "--defined-only", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line.split(" ")[:2] for line in done.stdout.splitlines()]
    counts = Counter(name for name, _ in found)
    return {name: kind for name, kind in found if counts[name] == 1 and name not in _SHARED}


def _tool(name: str, compiler: Compiler) -> str:
    """Return a program of the compiler's, or the machine's."""
    done = subprocess.run(
        [*compiler.argv, f"-print-prog-name={name}"], capture_output=True, text=True, check=False
    )
    for candidate in (done.stdout.strip(), name):
        if candidate and (path := shutil.which(candidate)) is not None:
            return path
    raise SetupError(
        f"{name} was not found: a kernel whose text asks for the kind of core, and runs on both,"
        " is compiled twice and joined with it",
        help="install binutils",
    )
