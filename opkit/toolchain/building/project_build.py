"""`build`: a project's sources to an artifact folder."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sysconfig
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.chips import DEFAULT_CHIP, Chip, find_chip
from opkit.errors import BuildError, Diagnostic, SetupError, UsageError
from opkit.files import write_aside
from opkit.folders import cache_folder
from opkit.log import info as log_info
from opkit.schema import OpSpec
from opkit.toolchain.building.absent import absent_functions, absent_source
from opkit.toolchain.building.binary_list import listed_combinations, only_listed
from opkit.toolchain.building.cache import BuildCache
from opkit.toolchain.building.command import (
    HOST_LIBRARY,
    KernelPreamble,
    absent_unit,
    kernel_units,
    kernel_variants,
    library_units,
    opapi_unit,
    skipped_bindings,
    template_listing,
    with_instances,
)
from opkit.toolchain.building.described import HostDescription, ask_host, parse_description
from opkit.toolchain.building.digests import FileStat
from opkit.toolchain.building.editor import COMPILE_COMMANDS, compile_commands
from opkit.toolchain.building.manifest import (
    KERNEL_NAMES,
    MANIFEST_NAME,
    kernel_names_text,
    listed_files,
    manifest_text,
)
from opkit.toolchain.building.opapi import (
    OPAPI_LIBRARY,
    api_header,
    api_source,
    header_name,
    proto_header,
)
from opkit.toolchain.building.processes import ProcessGroup
from opkit.toolchain.building.session import Session, UnitResult
from opkit.toolchain.building.state import BuildState, UnitState
from opkit.toolchain.building.unit import CompileUnit, LinkUnit
from opkit.toolchain.compiler import Compiler, find_compiler
from opkit.toolchain.lock import locked
from opkit.toolchain.projects import Project
from opkit.toolchain.source import compiler_crash, folders_of, parse_diagnostics, structs_in
from opkit.toolchain.toolkit import Toolkit

__all__ = [
    "Artifact",
    "BuildEvent",
    "build",
    "clean_output",
    "default_output",
    "host_description",
    "library_dir",
    "work_dir",
]

# As strerror(ENOSPC) says it; compilers run in the C locale.
_NO_SPACE = "No space left on device"

# What static_assert says of an instruction that lacks a data type (emulator/include/opkit/api).
_LACKS_TYPE = "not supported on this chip"

# The longest first, so that the last one to end is a short one.
_ORDER = ("template", "numpy_ext", "op_host", "torch_ext", "op_api", "kernel")


@dataclass(frozen=True)
class BuildEvent:
    """One unit is done, or the build waits."""

    status: str
    """`fresh`, `cached`, `compile`, `link`, `failed`, `skip` or `wait`."""
    name: str
    """The file that is made; the folder for `wait`."""
    seconds: float = 0.0
    detail: str = ""
    """Why a unit was skipped."""


@dataclass(frozen=True)
class Artifact:
    """A built artifact folder."""

    folder: Path
    """Holds manifest.json and the shared objects."""
    project: Project
    chip: Chip
    compiled: int
    """Units that the compiler made in this build."""
    cached: int
    """Units that came out of the cache."""
    fresh: int
    """Units that the last build had left."""
    skipped: tuple[tuple[str, str], ...]
    """(library, reason) of bindings that this machine cannot build."""
    warnings: tuple[Diagnostic, ...]
    """The compiler's warnings about the user's files."""
    seconds: float
    described: HostDescription | None = None
    """What the host library registers; None without the emulator's library."""

    @property
    def manifest(self) -> Path:
        """The folder's manifest."""
        return self.folder / MANIFEST_NAME


def default_output(project: Project) -> Path:
    """Return a project's own artifact folder, `build/opkit`."""
    return project.folder / "build" / "opkit"


def work_dir(out: Path) -> Path:
    """Return where a build keeps objects, its lock and its state: beside the artifact folder."""
    return out.with_name(f"{out.name}.work")


def library_dir(out: Path) -> Path:
    """Return where the library goes that programs link: beside the artifact folder."""
    return out.with_name(f"{out.name}.library")


def clean_output(project: Project, *, out: Path | None = None) -> None:
    """Delete what builds left in an artifact folder, and nothing else in it.

    Raises:
        UsageError: the project's own lies behind a link that leads out of the project.
    """
    folder = (out or default_output(project)).absolute()
    root = project.folder.resolve()
    for place in (folder.parent, folder) if out is None else ():
        if place.is_symlink() and not place.resolve().is_relative_to(root):
            raise UsageError(
                f"{place} is a link to {place.resolve()}, outside the project: nothing is deleted",
                help=f"delete the link, or name what is to be cleaned: --into {folder.resolve()}",
            )
    for name in (*listed_files(folder), KERNEL_NAMES, MANIFEST_NAME):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "op_api", ignore_errors=True)
    for beside in (work_dir(folder), library_dir(folder)):
        shutil.rmtree(beside, ignore_errors=True)


def build(
    project: Project,
    *,
    chip: Chip | str = DEFAULT_CHIP,
    out: Path | None = None,
    jobs: int | None = None,
    cache_dir: Path | None = None,
    toolkit: Toolkit | None = None,
    verbose: Callable[[list[str]], None] | None = None,
    progress: Callable[[BuildEvent], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Artifact:
    """Compile what changed in a project and return its artifact folder.

    The folder changes only if everything compiled; its manifest is written last.

    Args:
        chip: what to build for; any name that `find_chip` takes.
        out: the artifact folder; `build/opkit` in the project when None.
        jobs: commands at a time; the cores this process may use when None.
        cache_dir: the user's build cache when None.
        toolkit: the installed emulator when None.
        verbose: is given every command before it runs, from any thread but one at a time.
        progress: is given every unit when it is done, and why the build waits.
        warn: is given what does not stop the build, such as a cache that cannot be written.
    Raises:
        BuildError: the compiler rejected a source; carries the diagnostics of all of them.
        SetupError: there is no compiler, or no room.
        UsageError: the project lacks sources, or no such chip exists.
    """
    begin = time.monotonic()
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} jobs are too few", help="give 1 or more")
    target = find_chip(chip) if isinstance(chip, str) else chip
    report = progress or (lambda event: None)
    kit = toolkit or Toolkit.installed()
    compiler = find_compiler()
    # A tree says what its operators are only when its host library is there.
    is_tree = project.tree is not None
    kernels = () if is_tree else kernel_units(project, target, kit, compiler)
    objects, links = library_units(project, kit, compiler)
    folder = (out or default_output(project)).absolute()
    work = work_dir(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (work / "objects").mkdir(parents=True, exist_ok=True)
        with locked(work / "lock", waiting=lambda: report(BuildEvent("wait", str(folder)))):
            job = _Build(
                project=project,
                chip=target,
                folder=folder,
                toolkit=kit,
                compiler=compiler,
                cache=BuildCache(cache_dir or cache_folder(), warn=warn or _silent),
                verbose=verbose or (lambda argv: None),
                report=report,
            )
            results = job.run((*objects, *kernels), links, jobs or _usable_cores())
            project = job.project
    except OSError as err:
        advice = "choose another folder with --into"
        raise SetupError(
            f"{folder} cannot be written: {err.strerror or err}",
            help=f"free some space there, or {advice}" if err.errno == errno.ENOSPC else advice,
        ) from err
    for text in (*job.notes, *_format_notes(project, target)):
        (warn or _silent)(text)
    skipped = skipped_bindings(project)
    for name, reason in skipped:
        report(BuildEvent("skip", name, detail=reason))
    made = [result.status for result in results]
    counts = {name: made.count(name) for name in ("compile", "link", "cached", "fresh")}
    log_info("TOOLCHAIN", f"{project.name} is built for {target.name}", **counts)
    return Artifact(
        folder=folder,
        project=project,
        chip=target,
        compiled=made.count("compile") + made.count("link"),
        cached=made.count("cached"),
        fresh=made.count("fresh"),
        skipped=skipped,
        warnings=job.diagnose(results),
        seconds=time.monotonic() - begin,
        described=job.described,
    )


def host_description(
    project: Project,
    *,
    out: Path,
    chip: Chip | str = DEFAULT_CHIP,
    jobs: int | None = None,
    cache_dir: Path | None = None,
) -> HostDescription:
    """Return what the host code of a tree registers: its operators and their tiling data.

    Args:
        out: a folder that may be filled; kernels are not built.
        chip, jobs, cache_dir: as `build` takes them.
    Raises:
        BuildError: the compiler rejected a source.
        SetupError: there is no compiler.
        UsageError: the project has no host code, or no such chip exists.
    """
    kit, compiler = Toolkit.installed(), find_compiler()
    objects, links = library_units(project, kit, compiler)
    (work_dir(out) / "objects").mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    job = _Build(
        project=project,
        chip=find_chip(chip) if isinstance(chip, str) else chip,
        folder=out.absolute(),
        toolkit=kit,
        compiler=compiler,
        cache=BuildCache(cache_dir or cache_folder()),
        verbose=lambda argv: None,
        report=lambda event: None,
    )
    return job.describe(objects, links, jobs or _usable_cores())


class _Build:
    """One build, under the folder's lock."""

    def __init__(
        self,
        *,
        project: Project,
        chip: Chip,
        folder: Path,
        toolkit: Toolkit,
        compiler: Compiler,
        cache: BuildCache,
        verbose: Callable[[list[str]], None],
        report: Callable[[BuildEvent], None],
    ) -> None:
        self.project = project
        """With the operators of a tree once its host library is built."""
        self.notes: list[str] = []
        """What was left out, for the user."""
        self.described: HostDescription | None = None
        """What the host library registers, once it is built."""
        self._chip = chip
        self._compiler = compiler
        self._folder = folder
        self._work = work_dir(folder)
        self._toolkit = toolkit
        self._cache = cache
        self._report = report
        self._processes = ProcessGroup()
        self._state = BuildState.load(self._work / "state.json")
        self._session = Session(
            root=project.root,
            work=self._work,
            compiler=compiler,
            state=self._state,
            cache=cache,
            processes=self._processes,
            verbose=verbose,
        )

    def run(
        self, units: Sequence[CompileUnit], links: Sequence[LinkUnit], jobs: int
    ) -> list[UnitResult]:
        """Make all units and publish them."""
        # Before they compile: an editor is of most use while something does not.
        commands = compile_commands(units, compiler=self._compiler, root=self.project.root)
        _write_if_changed(self._work / COMPILE_COMMANDS, commands)
        results = self._make_libraries(units, links, jobs)
        # A host library without the emulator's registers nothing that could be asked.
        headers = self._build_described(results, jobs) if self._toolkit.library is not None else {}
        self._publish(results)
        if headers:
            self._publish_headers(headers)
        self._cache.evict()
        return list(results.values())

    def describe(
        self, units: Sequence[CompileUnit], links: Sequence[LinkUnit], jobs: int
    ) -> HostDescription:
        """Make the host library and return what it registers; publishes nothing."""
        results = self._make_libraries(units, links, jobs)
        self._cache.evict()
        return self._describe(results[HOST_LIBRARY])

    def _make_libraries(
        self, units: Sequence[CompileUnit], links: Sequence[LinkUnit], jobs: int
    ) -> dict[str, UnitResult]:
        """Make all units, and the libraries of those that are objects."""
        units, results = self._instantiate(units, jobs)
        results.update(self._compile_all(units, jobs))
        self._raise_if_failed(results)
        objects = {}
        for unit in units:
            if not unit.linked:
                result = results[unit.name]
                place = self._place(unit.name)
                if result.data is not None:
                    write_aside(place, result.data)
                objects[unit.name] = (place, result.digest)
        for link in links:
            result = self._session.link(link, self._place(link.name), objects)
            if result.status == "failed" and self.project.own_folder is not None:
                result = self._link_without_absent(link, objects, results, jobs) or result
            self._done(result)
            results[link.name] = result
        self._raise_if_failed(results)
        return results

    def _link_without_absent(
        self,
        link: LinkUnit,
        objects: dict[str, tuple[Path, str]],
        results: dict[str, UnitResult],
        jobs: int,
    ) -> UnitResult | None:
        """Link host code of a library's operator again, with what stands for absent functions."""
        place = self._place(link.name)
        plain = replace(link, flags=(*link.flags, "-Wl,--no-demangle"))
        names = absent_functions(self._session.link(plain, place, objects).log)
        if not names:
            return None
        unit = absent_unit(self.project, self._toolkit, self._compiler, absent_source(names))
        made = self._compile_all((unit,), jobs)
        results.update(made)
        self._raise_if_failed(made)
        result = made[unit.name]
        if result.data is not None:
            write_aside(self._place(unit.name), result.data)
        every = {**objects, unit.name: (self._place(unit.name), result.digest)}
        self.notes.append(
            f"{len(names)} functions of the host code are defined by no source of this chip;"
            " calls that need them are refused"
        )
        return self._session.link(replace(link, objects=(*link.objects, unit.name)), place, every)

    def _build_described(self, results: dict[str, UnitResult], jobs: int) -> dict[str, str]:
        """Build what follows from the host's OpDefs, and return the headers of its functions."""
        described = self.described = self._describe(results[HOST_LIBRARY])
        headers = {header_name(op.op): api_header(op) for op in described.operators}
        api = opapi_unit(
            headers,
            api_source(described.operators),
            root=self.project.root,
            toolkit=self._toolkit,
            compiler=self._compiler,
        )
        kernels, listed = self._instantiate(self._described_kernels(described), jobs)
        results.update({**listed, **self._compile_all((api, *kernels), jobs)})
        self._leave_out_impossible(results, kernels)
        self._raise_if_failed(results)
        return {**headers, "op_proto.h": proto_header(described.operators)}

    def _describe(self, host: UnitResult) -> HostDescription:
        """Return what the host library registers, asked of it once for each of its states."""
        known = self._work / "described.json"
        place = self._place(HOST_LIBRARY)
        if host.data is not None:
            place = self._work / HOST_LIBRARY
            write_aside(place, host.data, mode=0o755)
        try:
            document = json.loads(known.read_bytes())
            found = document["host"] if document["digest"] == host.digest else None
        except (OSError, ValueError, KeyError):
            found = None
        if found is None:
            found = ask_host(place)
            write_aside(known, json.dumps({"digest": host.digest, "host": found}).encode())
        described = parse_description(
            found, soc_config=self._chip.soc_config, source=self.project.root
        )
        return replace(described, library=place)

    def _described_kernels(self, described: HostDescription) -> tuple[CompileUnit, ...]:
        """Return the kernels of a tree; those of other projects are known from their prototypes."""
        project = self.project
        tree = project.tree
        if tree is None:
            return ()
        operators, files, preambles = [], {}, {}
        for operator in described.operators:
            soc_config = operator.configured_for
            if soc_config is None:
                self.notes.append(
                    f"{operator.op} is not built: its OpDef has no AddConfig for"
                    f" {self._chip.soc_config}"
                )
                continue
            if soc_config != self._chip.soc_config:
                self.notes.append(
                    f"{operator.op}: its OpDef has no AddConfig for {self._chip.soc_config}; it is"
                    f" built for {self._chip.name} as for {soc_config}, which it names"
                )
            kernel = tree.find_kernel(operator.op, operator.op_file, soc_config=soc_config)
            spec = self._shipped(operator.spec)
            operators.append(replace(spec, name=kernel.entry))
            files[operator.op] = kernel
            text, default = described.tiling_text(
                operator.op, without=structs_in(kernel.source, folders_of(tree.kernel_includes))
            )
            options = (
                *tree.mode_macros(operator.op, soc_config=soc_config),
                *project.kernel_options(operator.op, soc_config=soc_config),
            )
            preambles[operator.op] = KernelPreamble(text, default, options)
            if operator.unsupported is not None:
                self.notes.append(
                    f"{operator.op}: calls are refused, its OpDef uses {operator.unsupported},"
                    " which opkit does not support"
                )
            self.notes.extend(
                f"{operator.op}: the combination {types} is not built: opkit lacks one of its types"
                for types in operator.skipped
            )
        if not operators:
            raise UsageError(
                f"{project.root}: no operator is for {self._chip.soc_config}",
                help=f'add AICore().AddConfig("{self._chip.soc_config}"), or choose another --chip',
            )
        self.project = replace(project, operators=tuple(operators), kernel_files=files)
        return kernel_units(
            self.project, self._chip, self._toolkit, self._compiler, preambles=preambles
        )

    def _shipped(self, spec: OpSpec) -> OpSpec:
        """Return a prototype with the combinations that a library ships for this chip."""
        if self.project.own_folder is None:
            return spec
        listed, file = listed_combinations(
            self.project.own_folder, spec.op, soc_config=self._chip.soc_config
        )
        shipped = only_listed(spec, listed)
        left_out = spec.variant_count - shipped.variant_count
        if left_out and file is not None:
            self.notes.append(
                f"{spec.op}: {left_out} combinations of data types are not built: {file.name} does"
                " not list them"
            )
        return shipped

    def _leave_out_impossible(
        self, results: dict[str, UnitResult], kernels: Sequence[CompileUnit]
    ) -> None:
        """Take away the kernels of data types that an instruction lacks, unless that is all.

        An OpDef may list more data types than the chip has instructions for: such a combination
        is told and left out, the others stay.
        """
        by_source: dict[Path, list[UnitResult]] = {}
        for unit in kernels:
            by_source.setdefault(unit.source, []).append(results[unit.name])
        for made in by_source.values():
            impossible = {
                result.name: reason
                for result in made
                if result.status == "failed" and (reason := self._impossible(result))
            }
            if len(impossible) == len(made):
                continue
            for name, reason in sorted(impossible.items()):
                del results[name]
                self.notes.append(f"{name.removesuffix('.so')} is not built: {reason}")

    def _impossible(self, result: UnitResult) -> str | None:
        """Return which instruction lacks the data types of a rejected kernel."""
        found = parse_diagnostics(result.log, root=self.project.root, foreign=())
        texts = (item.message for item in found if item.severity == "error")
        return next((text for text in texts if _LACKS_TYPE in text), None)

    def _instantiate(
        self, units: Sequence[CompileUnit], jobs: int
    ) -> tuple[tuple[CompileUnit, ...], dict[str, UnitResult]]:
        """Return the units, kernel templates among them with their instances.

        Also returns what was made to learn of these.
        """
        listings = {unit.name: template_listing(unit) for unit in units if unit.template}
        results = self._compile_all(tuple(listings.values()), jobs)
        self._raise_if_failed(results)
        made = []
        for unit in units:
            listing = listings.get(unit.name)
            if listing is None:
                made.append(unit)
                continue
            result, place = results[listing.name], self._place(listing.name)
            if result.data is not None:
                write_aside(place, result.data)
            text = place.read_text(encoding="utf-8", errors="replace")
            made.append(with_instances(unit, text))
        return tuple(made), results

    def _publish_headers(self, headers: dict[str, str]) -> None:
        """Write what C++ programs are compiled against: op_api/include, and lib beside it."""
        include = self._folder / "op_api" / "include"
        library = self._folder / "op_api" / "lib" / OPAPI_LIBRARY
        include.mkdir(parents=True, exist_ok=True)
        library.parent.mkdir(exist_ok=True)
        for name, text in headers.items():
            _write_if_changed(include / name, text)
        for stale in include.glob("*.h"):
            if stale.name not in headers:
                stale.unlink()
        if not library.is_symlink():
            library.unlink(missing_ok=True)
            library.symlink_to(Path("..", "..", OPAPI_LIBRARY))

    def diagnose(self, results: Sequence[UnitResult]) -> tuple[Diagnostic, ...]:
        """Return what the compiler said of the user's files, each line once.

        Variants differ in types only, so a line that one of them stumbles on is bad in all.
        """
        paths = {sysconfig.get_path(name) for name in ("include", "purelib", "platlib")}
        ours = (self._toolkit.include_dir, self._work)
        foreign = (*ours, *map(Path, sorted(paths)))
        found: dict[Diagnostic, None] = {}
        for result in sorted(results, key=lambda result: result.name):
            told = {(item.file, item.line) for item in found if item.line}
            for item in parse_diagnostics(result.log, root=self.project.root, foreign=foreign):
                if (item.file, item.line) not in told:
                    found[item] = None
        return tuple(found)

    def _compile_all(self, units: Sequence[CompileUnit], jobs: int) -> dict[str, UnitResult]:
        results: dict[str, UnitResult] = {}
        stale = []
        for unit in sorted(units, key=lambda unit: _ORDER.index(unit.kind)):
            fresh = self._session.fresh(unit, self._place(unit.name))
            if fresh is None:
                stale.append(unit)
            else:
                results[unit.name] = fresh
                self._done(fresh)
        if not stale:
            return results
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            try:
                # Inside: Ctrl-C may come while some are submitted and some are not.
                futures = [pool.submit(self._session.compile, unit) for unit in stale]
                for future in as_completed(futures):
                    result = future.result()
                    results[result.name] = result
                    self._done(result)
            except BaseException:
                # Ctrl-C too: no compiler outlives the build.
                self._processes.stop()
                pool.shutdown(cancel_futures=True)
                raise
        return results

    def _done(self, result: UnitResult) -> None:
        self._report(BuildEvent(result.status, result.name, result.seconds))

    def _raise_if_failed(self, results: dict[str, UnitResult]) -> None:
        failed = [result for result in results.values() if result.status == "failed"]
        if not failed:
            return
        full = [line for result in failed for line in result.log.splitlines() if _NO_SPACE in line]
        if full:
            # Not the user's source: a full disk under the project, or under the compiler's TMPDIR.
            raise SetupError(
                f"a disk is full: {full[0].strip()}",
                help="free some space there, or choose another folder with --into",
            )
        for result in failed:
            if (crash := compiler_crash(result.log)) is not None:
                raise crash
        diagnostics = self.diagnose(failed)
        errors = [item for item in diagnostics if item.severity == "error"]
        names = ", ".join(sorted(result.name for result in failed))
        files = dict.fromkeys(
            str(item.file.relative_to(self.project.root))
            for item in errors
            if item.file.is_relative_to(self.project.root) and item.line
        )
        log = "\n".join(f"{result.name}:\n{result.log}" for result in failed)
        where = ", ".join(files) or names
        verb = "do not compile" if max(len(files), 1) > 1 else "does not compile"
        # Words that we cannot read are shown as they are, rather than not at all.
        found = f"{len(errors)} error{'' if len(errors) == 1 else 's'}" if errors else log.rstrip()
        raise BuildError(f"{where} {verb}: {found}", diagnostics=diagnostics, log=log)

    def _place(self, name: str) -> Path:
        """Return where a unit's file stays."""
        return (self._work / "objects" if name.endswith(".o") else self._folder) / name

    def _publish(self, results: dict[str, UnitResult]) -> None:
        before = listed_files(self._folder)
        for name, result in results.items():
            if result.data is not None and not name.endswith(".o"):
                write_aside(self._place(name), result.data, mode=0o755)
        digests = {
            name: result.digest for name, result in results.items() if not name.endswith(".o")
        }
        text = manifest_text(
            self.project,
            chip=self._chip,
            abi_version=self._toolkit.abi_version,
            digests=digests,
            sources=_project_sources(results),
        )
        _write_if_changed(self._folder / KERNEL_NAMES, kernel_names_text(self.project))
        _write_if_changed(self._folder / MANIFEST_NAME, text)
        for name in before:
            if name not in digests:
                (self._folder / name).unlink(missing_ok=True)
        if any(result.status != "fresh" for result in results.values()):
            self._save_state(results)

    def _save_state(self, results: dict[str, UnitResult]) -> None:
        units = {}
        for name, result in results.items():
            output = FileStat.of(str(self._place(name)))
            if output is None or not result.reusable:
                continue
            units[name] = UnitState(
                key=result.key,
                dependencies=tuple(
                    str(self.project.root / path) for path, _ in result.dependencies
                ),
                output=output,
                digest=result.digest,
                log=result.log,
            )
        files = {**self._state.files, **self._session.digests.known()}
        BuildState(units, files).save(self._work / "state.json")


def _write_if_changed(file: Path, text: str) -> None:
    if not file.is_file() or file.read_bytes() != text.encode():
        write_aside(file, text.encode())


def _project_sources(results: dict[str, UnitResult]) -> dict[str, str]:
    return {
        path: digest
        for result in results.values()
        for path, digest in result.dependencies
        if not Path(path).is_absolute()
    }


def _format_notes(project: Project, chip: Chip) -> list[str]:
    return [
        f"{spec.op}: {variant.file} is built, but calls carry no format and take an earlier"
        " combination of the same data types"
        for spec in project.operators
        for variant in kernel_variants(spec, chip.npu_arch)
        if not variant.callable
    ]


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0))


def _silent(text: str) -> None:
    pass
