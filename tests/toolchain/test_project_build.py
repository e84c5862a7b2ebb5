"""Whole builds of a small project, with the machine's own compiler."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import opkit
from opkit.errors import BuildError, SetupError, UsageError
from opkit.toolchain import (
    BuildEvent,
    Toolkit,
    build,
    clean_output,
    default_output,
    load_project,
)
from opkit.toolchain.lock import locked

HALF = "twice.dav-2201.float16-float16.so"
SINGLE = "twice.dav-2201.float32-float32.so"
HOST_OBJECT = "op_host.twice.o"
HOST = "libop_host.so"


def age(*files: Path) -> None:
    """Make files an hour old: a build does not trust the time of a file just written."""
    for file in files:
        os.utime(file, (time.time() - 3600, time.time() - 3600))


@pytest.fixture
def aged(workshop):
    age(*(path for path in workshop.root.parent.rglob("*") if path.is_file()))
    return workshop


def test_a_build_makes_loadable_libraries_for_each_variant(workshop) -> None:
    folder = workshop.build().folder
    assert folder == default_output(workshop.project)
    for name, size in ((HALF, 2), (SINGLE, 4)):
        library = ctypes.CDLL(str(folder / name))
        assert ctypes.c_char.in_dll(library, "opkit_dtype").value == bytes([size])
        library.where.restype = ctypes.c_char_p
        assert library.where() == b"op_kernel/twice.cpp"
    assert ctypes.CDLL(str(folder / HOST)).tile() == 8


def test_an_artifact_holds_no_path_of_this_machine(workshop) -> None:
    folder = workshop.build().folder
    for file in folder.iterdir():
        assert str(workshop.root.parent).encode() not in file.read_bytes(), file.name


def test_the_manifest_tells_what_was_built(workshop) -> None:
    manifest = json.loads(workshop.build().manifest.read_text())
    assert (manifest["opkit"], manifest["abi_version"]) == (opkit.__version__, 7)
    assert (manifest["chip"], manifest["npu_arch"]) == ("Ascend910B2", "dav-2201")
    (operator,) = manifest["operators"]
    assert (operator["op"], operator["kernel"]) == ("Twice", "twice")
    assert [row["file"] for row in operator["variants"]] == [HALF, SINGLE]
    assert [row["dtypes"] for row in operator["variants"]] == [["float16"] * 2, ["float32"] * 2]
    assert set(manifest["files"]) == {HALF, SINGLE, HOST}
    assert {"op_kernel/twice.cpp", "op_kernel/twice_tiling.h"} <= set(manifest["sources"])


def test_the_folder_names_the_kernel_of_each_operator(workshop) -> None:
    # The operator call guesses snake_case(op) where kernels.txt is missing.
    prototype = json.loads((workshop.root / "twice.json").read_text())
    prototype[0]["kernel_name"] = "double_it"
    (workshop.root / "twice.json").write_text(json.dumps(prototype))
    source = workshop.kernel.rename(workshop.kernel.with_name("double_it.cpp"))
    source.write_text(source.read_text().replace("void twice(", "void double_it("))
    folder = workshop.build().folder
    assert (folder / "kernels.txt").read_text() == "Twice double_it\n"
    clean_output(workshop.project)
    assert list(folder.iterdir()) == []


def test_combinations_that_differ_in_format_only_are_built_with_a_warning(workshop) -> None:
    prototype = json.loads((workshop.root / "twice.json").read_text())
    for tensor in (*prototype[0]["input_desc"], *prototype[0]["output_desc"]):
        tensor.update(type=["fp16", "fp16"], format=["ND", "NCHW"])
    (workshop.root / "twice.json").write_text(json.dumps(prototype))
    variants = json.loads(workshop.build().manifest.read_text())["operators"][0]["variants"]
    assert [row["callable"] for row in variants] == [True, False]
    assert any("NCHW-NCHW.so is built, but calls carry no format" in w for w in workshop.warnings)


def test_kernels_can_compare_data_types_in_the_preprocessor(workshop) -> None:
    # Names that the preprocessor does not know are 0, and 0 == 0 holds for every type.
    kernel = workshop.kernel.read_text()
    check = '#if ORIG_DTYPE_X == DT_FLOAT\nstatic_assert(sizeof(DTYPE_X) == 4, "");\n#else\n'
    check += 'static_assert(sizeof(DTYPE_X) == 2, "");\n#endif\n'
    workshop.kernel.write_text(kernel + check)
    workshop.build()


def test_a_second_build_starts_no_compiler(aged) -> None:
    first = aged.build()
    before = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    again = aged.build()
    assert (again.compiled, again.cached, again.fresh) == (0, 0, 4)
    assert aged.commands == []
    assert {path: path.stat().st_mtime_ns for path in again.folder.iterdir()} == before


def test_a_changed_header_rebuilds_what_read_it(aged) -> None:
    aged.build()
    aged.tiling.write_text("constexpr int kTile = 9;\n")
    age(aged.tiling)
    aged.build()
    assert aged.statuses() == dict.fromkeys((HALF, SINGLE, HOST_OBJECT), "compile") | {HOST: "link"}


def test_a_changed_kernel_leaves_the_host_library_alone(aged) -> None:
    aged.build()
    aged.kernel.write_text(aged.kernel.read_text() + "// edited\n")
    age(aged.kernel)
    aged.build()
    assert aged.statuses() == {
        HALF: "compile",
        SINGLE: "compile",
        HOST_OBJECT: "fresh",
        HOST: "fresh",
    }


def test_an_edit_within_the_clocks_tick_is_seen(workshop) -> None:
    for value in (1, 2, 3):
        workshop.tiling.write_text(f"constexpr int kTile = {value};\n")
        folder = workshop.build(out=workshop.root / f"out{value}").folder
        assert ctypes.CDLL(str(folder / HOST)).tile() == value


def test_an_edit_undone_comes_out_of_the_cache(aged) -> None:
    aged.build()
    text = aged.tiling.read_text()
    for content in ("constexpr int kTile = 9;\n", text):
        aged.tiling.write_text(content)
        age(aged.tiling)
        aged.build()
    assert aged.statuses()[HALF] == "cached"
    assert aged.commands == [command for command in aged.commands if "-shared" in command]


def test_an_equal_project_elsewhere_shares_the_cache(aged, make_project: Callable) -> None:
    aged.build()
    other = aged.root.parent / "elsewhere"
    make_project(other)
    artifact = build(load_project(other), toolkit=aged.toolkit, cache_dir=aged.cache_dir)
    assert (artifact.cached, artifact.compiled) == (3, 1)
    assert (artifact.folder / HALF).read_bytes() == (
        default_output(aged.project) / HALF
    ).read_bytes()


def test_a_deleted_or_damaged_output_is_made_again(aged) -> None:
    folder = aged.build().folder
    whole = (folder / HALF).read_bytes()
    (folder / HALF).write_bytes(whole[:100])
    (folder / SINGLE).unlink()
    aged.build()
    assert (folder / HALF).read_bytes() == whole
    assert (folder / SINGLE).is_file()


def test_damaged_state_costs_time_only(aged) -> None:
    folder = aged.build().folder
    state = folder.with_name("opkit.work") / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "units": 3}))
    assert aged.build().cached == 3


def test_a_copied_project_is_judged_by_its_own_files(aged) -> None:
    # The copy's state named the original's files: edits of the copy went unseen.
    aged.build()
    copy = aged.root.parent / "copy"
    shutil.copytree(aged.root, copy)
    kernel = copy / "op_kernel" / "twice.cpp"
    kernel.write_text(kernel.read_text() + "// edited\n")
    age(kernel)
    events: list[BuildEvent] = []
    build(
        load_project(copy), toolkit=aged.toolkit, cache_dir=aged.cache_dir, progress=events.append
    )
    assert {event.name: event.status for event in events}[HALF] == "compile"


def test_another_chip_replaces_the_kernels(workshop) -> None:
    workshop.build()
    folder = workshop.build(chip="310P3").folder
    names = {path.name for path in folder.iterdir()}
    assert "twice.dav-2002.float16-float16.so" in names
    assert HALF not in names


def test_files_of_others_in_the_folder_stay(workshop) -> None:
    out = workshop.root / "package" / "_lib"
    out.mkdir(parents=True)
    (out / "__init__.py").write_text("")
    workshop.build(out=out)
    clean_output(workshop.project, out=out)
    assert [path.name for path in out.iterdir()] == ["__init__.py"]


def test_an_error_is_shown_at_the_users_line(workshop) -> None:
    workshop.kernel.write_text(workshop.kernel.read_text().replace("kTile)", "kTile, missing)"))
    with pytest.raises(BuildError, match=r"op_kernel/twice\.cpp does not compile: 1 error") as bad:
        workshop.build()
    error = bad.value.diagnostics[0]
    assert (error.file, error.line) == (workshop.kernel, 5)
    assert "missing" in error.message
    assert error.source_line == "  AscendC::Add(tensor, kTile, missing);"


def test_an_unsupported_type_is_said_in_our_words_at_the_call(workshop) -> None:
    text = workshop.kernel.read_text().replace("DTYPE_X", "double")
    workshop.kernel.write_text(text)
    with pytest.raises(BuildError) as bad:
        workshop.build()
    errors = [item for item in bad.value.diagnostics if item.severity == "error"]
    assert [(item.line, item.message) for item in errors] == [
        (5, "Add takes half, float, int16_t and int32_t")
    ]


def test_errors_of_all_files_are_reported_together(workshop) -> None:
    host = workshop.root / "op_host" / "twice.cpp"
    host.write_text("int broken = ;\n")
    workshop.kernel.write_text('#include "kernel_operator.h"\nalso broken\n')
    with pytest.raises(BuildError) as bad:
        workshop.build()
    assert {item.file for item in bad.value.diagnostics} == {host, workshop.kernel}


def test_a_line_that_is_wrong_in_each_variant_is_shown_once(workshop) -> None:
    text = workshop.kernel.read_text().replace("kTile)", "tensor)")
    workshop.kernel.write_text(text)
    with pytest.raises(BuildError) as bad:
        workshop.build()
    errors = [item for item in bad.value.diagnostics if item.severity == "error"]
    assert [item.line for item in errors] == [5]
    # One compiler, two variants: both did stumble, over differently named types.
    assert bad.value.log.count("error:") >= 2


def test_a_failed_build_leaves_the_last_artifact(workshop) -> None:
    folder = workshop.build().folder
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    workshop.kernel.write_text("broken")
    with pytest.raises(BuildError):
        workshop.build()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_warnings_of_user_code_are_shown_also_from_the_cache(aged) -> None:
    aged.kernel.write_text(aged.kernel.read_text() + "static int unused_thing;\n")
    age(aged.kernel)
    messages = [item.message for item in aged.build().warnings]
    assert len(messages) == 1
    assert "unused_thing" in messages[0]
    assert [item.message for item in aged.build().warnings] == messages
    clean_output(aged.project)
    assert [item.message for item in aged.build().warnings] == messages


def test_an_unwritable_cache_is_said_and_the_build_goes_on(aged) -> None:
    aged.cache_dir.write_text("not a folder")
    assert aged.build().compiled == 4
    assert len(aged.warnings) == 1


def test_an_artifact_folder_that_cannot_be_made_is_a_setup_error(workshop) -> None:
    (workshop.root / "taken").write_text("")
    with pytest.raises(SetupError, match="cannot be written"):
        workshop.build(out=workshop.root / "taken" / "below")


def test_zero_jobs_are_refused(workshop) -> None:
    with pytest.raises(UsageError, match="0 jobs"):
        workshop.build(jobs=0)


def test_a_second_build_of_one_folder_waits_for_the_first(workshop) -> None:
    out = workshop.root / "out"
    (workshop.root / "out.work").mkdir()
    waits = threading.Event()
    ended = threading.Event()

    def other() -> None:
        build(
            workshop.project,
            out=out,
            toolkit=workshop.toolkit,
            cache_dir=workshop.cache_dir,
            progress=lambda event: waits.set() if event.status == "wait" else None,
        )
        ended.set()

    thread = threading.Thread(target=other)
    with locked(workshop.root / "out.work" / "lock", waiting=lambda: None):
        thread.start()
        assert waits.wait(timeout=120)
        assert not ended.is_set()
    thread.join(timeout=60)
    assert ended.is_set()


def test_builds_side_by_side_in_one_cache_are_all_whole(workshop) -> None:
    folders = [workshop.root / f"out{number}" for number in range(3)]

    def one(out: Path) -> None:
        build(workshop.project, out=out, toolkit=workshop.toolkit, cache_dir=workshop.cache_dir)

    threads = [threading.Thread(target=one, args=(out,)) for out in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    contents = [(out / HALF).read_bytes() for out in folders]
    assert contents[0] == contents[1] == contents[2]
    assert all((out / "manifest.json").is_file() for out in folders)


def test_an_interrupt_kills_the_compilers(workshop, tmp_path: Path) -> None:
    # A compiler that never ends, and says who it is.
    slow = tmp_path / "slow++"
    slow.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "g++ 12.2.0"; exit 0; fi\n'
        f'echo $$ >> "{tmp_path}/pids"\n'
        "sleep 600\n"
    )
    slow.chmod(0o755)
    script = textwrap.dedent(f"""
        from pathlib import Path
        from opkit.toolchain import BuildEvent, Toolkit, build, load_project
        kit = Toolkit(Path({str(workshop.toolkit.include_dir)!r}), None)
        build(load_project(Path({str(workshop.root)!r})), toolkit=kit,
              cache_dir=Path({str(workshop.cache_dir)!r}))
    """)
    environment = {**os.environ, "CXX": str(slow)}
    source = Path(opkit.__file__).parents[1]
    environment["PYTHONPATH"] = f"{source}:{environment.get('PYTHONPATH', '')}"
    run = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE, text=True
    )
    pids = tmp_path / "pids"
    deadline = time.monotonic() + 30
    while not (pids.exists() and pids.read_text().split()):
        assert time.monotonic() < deadline, "no compiler was started"
        assert run.poll() is None, run.stderr.read() if run.stderr else ""
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors
    for pid in map(int, pids.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_without_the_emulator_the_error_says_what_to_install(
    workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opkit.emulator, "__path__", [str(workshop.root)])
    with pytest.raises(SetupError, match="lacks the emulator's headers"):
        Toolkit.installed()


def test_words_of_a_compiler_that_cannot_be_read_are_shown_as_they_are(
    workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "odd++"
    odd.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "g++ 12.2.0" && exit 0\n'
        'echo "the licence server is asleep"\nexit 1\n'
    )
    odd.chmod(0o755)
    monkeypatch.setenv("CXX", str(odd))
    with pytest.raises(BuildError, match="the licence server is asleep"):
        workshop.build()


def test_a_disk_that_is_full_is_not_the_users_mistake(
    workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The assembler says it, and it used to be reported as a source that does not compile.
    compiler = tmp_path / "full++"
    compiler.write_text(
        "#!/bin/sh\n"
        'test "$1" = --version && echo "g++ (GCC) 12.2.0" && exit 0\n'
        'echo "/tmp/ccX.s: Fatal error: a.o: No space left on device" >&2\n'
        "exit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(SetupError, match=r"a disk is full: .*a\.o: No space left on device"):
        workshop.build()


def test_an_editor_finds_the_options_of_each_source(workshop) -> None:
    # clangd used to mark every line of a kernel: it knew neither the headers nor DTYPE_X.
    work = workshop.build().folder.parent / "opkit.work"
    entries = json.loads((work / "compile_commands.json").read_text())
    by_file = {Path(entry["file"]).relative_to(workshop.root): entry for entry in entries}
    assert set(by_file) == {Path("op_kernel/twice.cpp"), Path("op_host/twice.cpp")}
    kernel = by_file[Path("op_kernel/twice.cpp")]["arguments"]
    assert "-DDTYPE_X=half" in kernel
    assert "-isystem" in kernel
    # What clang does not have is an error in an editor, and what links is of no use there.
    assert not {"-s", "-fno-gnu-unique", "-shared"} & set(kernel)
    assert not any(word.startswith(("-l", "-Wl,")) for word in kernel)


def test_an_editor_has_them_while_a_source_does_not_compile(workshop) -> None:
    source = workshop.root / "op_host" / "twice.cpp"
    source.write_text(source.read_text() + "\nthis is no C++\n")
    with pytest.raises(BuildError):
        workshop.build()
    assert list(workshop.root.rglob("compile_commands.json"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clangd") is None, reason="clangd is not installed")
def test_clangd_has_no_error_in_generated_sources(tmp_path: Path) -> None:
    prototype = Path(__file__).parents[2] / "examples" / "prototypes" / "rmsnorm.json"
    project = tmp_path / "rmsnorm"
    opkit_command = [sys.executable, "-m", "opkit"]
    for arguments in (["gen", "-i", str(prototype), "-o", str(project)], ["build", str(project)]):
        subprocess.run([*opkit_command, *arguments], check=True, capture_output=True)
    kernels = sorted((project / "op_kernel").glob("*.cpp"))
    assert len(kernels) == 2
    for kernel in (*kernels, project / "op_host" / "rmsnorm.cpp"):
        done = subprocess.run(
            ["clangd", f"--check={kernel}"],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "All checks completed, 0 errors" in done.stderr, done.stderr[-2000:]
