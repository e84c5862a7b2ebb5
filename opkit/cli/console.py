"""Everything that a command prints, and the only place that catches `Exception`.

Results go to stdout, progress and errors to stderr. A command looks like this:

    @click.command("targets", short_help="...")
    @click.argument("name")
    @common_options
    def command(*, name: str, console: Console) -> None:
        console.status("read", name)
        if console.json:
            console.emit_json({"name": name})

It raises the errors of `opkit.errors` and neither exits nor catches: `run_guarded` maps them to
exit codes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import importlib.metadata
import json as json_module
import os
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from opkit import log
from opkit.cli.apart import run_apart
from opkit.errors import (
    BuildError,
    Diagnostic,
    OpkitError,
    SetupError,
    Terminated,
    cannot_write,
)
from opkit.files import written_aside
from opkit.processes import termination_unwinds

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID
    from rich.text import Text

__all__ = [
    "Console",
    "Progress",
    "common_options",
    "run_guarded",
    "run_program",
    "to_json",
    "write_text",
]

EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141
EXIT_OUR_BUG = 70

# A tone says what a word means; the colour follows from it.
_TONES = {"good": "green", "bad": "red", "warn": "yellow", "plain": None, "quiet": "bright_black"}
_VERB_TONES = {"conflict": "bad", "fail": "bad", "failed": "bad", "skip": "warn", "warning": "warn"}


def wants_colour(stream: IO[str]) -> bool:
    """Whether `stream` is a terminal whose user has not set NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def to_json(value: object) -> Any:
    """Return `value` as what `json.dumps` takes.

    Dataclasses become objects, paths strings, tuples and sets lists; NaN and infinities strings,
    because JSON has no such numbers.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, str):
        return value
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, (bytes, bytearray)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [to_json(item) for item in items]
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if hasattr(value, "item"):
        return to_json(value.item())
    return str(value)


class Progress:
    """A progress bar on stderr; silent where stderr is no terminal.

    Use: `with console.progress("test", total=10) as bar: bar.advance("float16 (1,)")`.
    """

    def __init__(self, description: str, total: int, *, shown: bool) -> None:
        self._description = description
        self._total = total
        self._shown = shown
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        if self._shown:
            from rich.console import Console as RichConsole
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                TextColumn("{task.description:>10}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[detail]}", markup=False),
                console=RichConsole(stderr=True, no_color=not wants_colour(sys.stderr)),
                transient=True,
            )
            self._task = self._bar.add_task(self._description, total=self._total, detail="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, detail: str = "", *, steps: int = 1) -> None:
        """Move the bar by `steps` and show what is being done now."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=steps, detail=detail)


class Console:
    """What a command prints through; made by `common_options` from --json, -v and -q."""

    def __init__(self, *, json: bool = False, verbose: int = 0, quiet: bool = False) -> None:
        self.json = json
        """The user asked for JSON: stdout carries one JSON document and nothing else."""
        self.verbose = verbose
        """How many -v were given; 1 shows every command that is run."""
        self.quiet = quiet
        """Only results and errors."""

    def status(self, verb: str, text: str, *, tone: str | None = None) -> None:
        """Print one step on stderr, verb first, aligned.

        `tone` is good, warn, bad, quiet or plain; without it the verb decides.
        """
        if self.quiet:
            return
        colour = _TONES[tone or _VERB_TONES.get(verb, "good")]
        head = click.style(f"{verb:>10}", fg=colour, bold=colour is not None)
        self._error_line(head, f"  {text}")

    def warn(self, text: str) -> None:
        """Print a warning on stderr, also under -q."""
        self._error_line(click.style("warning: ", fg="yellow", bold=True), text)

    def detail(self, text: str) -> None:
        """Print a line on stderr under -v only."""
        if self.verbose and not self.quiet:
            self._error_line(text)

    def command_line(self, argv: Sequence[str], *, always: bool = False, stdin: str = "") -> None:
        """Print a command on stderr as a shell would take it; under -v only, unless `always`.

        `stdin` is what the command reads, shown as a here-document.
        """
        if not always and (self.quiet or not self.verbose):
            return
        if stdin:
            self._error_line(click.style(f"$ {shlex.join(argv)} <<'END'", bold=True))
            self._error_line(f"{stdin.rstrip()}\nEND")
        else:
            self._error_line(click.style(f"$ {shlex.join(argv)}", bold=True))

    def gap(self) -> None:
        """Print an empty line on stderr, between steps."""
        if not self.quiet:
            self._error_line()

    def diagnostics(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Print compiler messages on stderr against the user's own lines, with a caret."""
        for diagnostic in diagnostics:
            self._error_line(_diagnostic_text(diagnostic))

    def result(self, text: str = "") -> None:
        """Print a line of the result on stdout; nothing in JSON mode."""
        if not self.json:
            click.echo(text, color=wants_colour(sys.stdout))

    def emit_json(self, value: object) -> None:
        """Print one JSON document on stdout; takes what `to_json` takes."""
        text = json_module.dumps(to_json(value), indent=2, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:
            # The name of a file that is not UTF-8.
            text = json_module.dumps(to_json(value), indent=2)
        click.echo(text, file=_results[-1] if _results else None)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str | Text]],
        *,
        title: str | None = None,
        right: Collection[str] = (),
    ) -> None:
        """Print a table on stdout, columns of `right` right-aligned; nothing in JSON mode.

        A terminal that is too narrow for the words of a row gets a line a column instead.
        """
        if self.json:
            return
        from opkit.cli.tables import print_table

        print_table(columns, rows, title=title, right=right, colour=wants_colour(sys.stdout))

    def styled(self, text: str, tone: str) -> Text:
        """Return a table cell in the colour of `tone`: good, warn, bad, quiet or plain."""
        from rich.text import Text

        return Text(text, style=_TONES[tone] or "")

    def progress(self, description: str, total: int) -> Progress:
        """Return a progress bar of `total` steps, to be entered with `with`."""
        return Progress(description, total, shown=sys.stderr.isatty() and not self.quiet)

    def _error_line(self, *parts: str) -> None:
        click.echo("".join(parts), err=True, color=wants_colour(sys.stderr))


Function = TypeVar("Function", bound=Callable[..., object])


def common_options(function: Function) -> Callable[..., object]:
    """Give a command --json, -v and -q, and pass it a `console` made from them."""

    @click.option("--json", "json_output", is_flag=True, help="Print the result as JSON on stdout.")
    @click.option("-v", "--verbose", count=True, help="Show every command that is run.")
    @click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
    @functools.wraps(function)
    def with_console(
        *args: object, json_output: bool, verbose: int, quiet: bool, **kwargs: object
    ) -> object:
        console = Console(json=json_output, verbose=verbose, quiet=quiet)
        return function(*args, console=console, **kwargs)

    return with_console


def write_text(path: Path, text: str) -> None:
    """Write a file that the user named, aside first and then renamed.

    Raises:
        UsageError: its folder does not exist or cannot be written.
        SetupError: the disk is full or cannot be written.
    """
    try:
        with written_aside(path) as aside:
            # Names of files need not be UTF-8: they go out as they came in.
            aside.write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as err:
        raise cannot_write(path, err) from err


def run_program(
    command: click.Command, arguments: Sequence[str], *, name: str = "opkit", is_apart: bool
) -> int:
    """Return the exit code of a command that this process was started for.

    Args:
        name: as `run_guarded`.
        is_apart: it launches kernels, and so goes on in a process of its own.
    """
    try:
        if not is_apart:
            return run_guarded(command, arguments, name=name)
        console = _console_of(arguments)
        return run_apart(
            lambda: run_guarded(command, arguments, name=name),
            lambda error: _report(error, console),
        )
    except KeyboardInterrupt:
        # Before the command, or behind it.
        return EXIT_INTERRUPTED


def _console_of(arguments: Sequence[str]) -> Console:
    options = _options_before_dashes(arguments)
    return Console(
        json="--json" in options,
        verbose=int(any(_is_verbose(option) for option in options)),
    )


def run_guarded(command: click.Command, arguments: Sequence[str], *, name: str = "opkit") -> int:
    """Run a click command and return the exit code of its outcome; prints the error, if any.

    Args:
        name: what usage lines call the program.
    """
    console = _console_of(arguments)
    if sys.stdout is None:
        return _report(_no_stdout("it is closed"), Console())
    try:
        with _only_json(console.json):
            return _run(command, arguments, console, name)
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:
        # What was left to write, at the end.
        _discard_stdout()
        return _report(_no_stdout(error.strerror or str(error)), Console())


def _run(command: click.Command, arguments: Sequence[str], console: Console, name: str) -> int:
    try:
        if "_OPKIT_COMPLETE" in os.environ:
            command.main(args=list(arguments), prog_name="opkit")
        # Not command.main(): it exits 1 on a closed pipe before we can tell.
        with termination_unwinds(), command.make_context(name, list(arguments)) as context:
            command.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EBADF, errno.EIO):
            raise
        found = cannot_write(error.filename or "a file", error)
        if not isinstance(found, SetupError):
            return _report_bug(error, console)
        return _report(found, console)
    except UnicodeError as error:
        if not _names_outside_utf8(arguments):
            return _report_bug(error, console)
        return _report(_not_utf8(), console)
    except MemoryError:
        return _report(
            SetupError("this machine's memory is used up", help="use smaller shapes"), console
        )
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except Terminated:
        click.echo("terminated", err=True)
        return Terminated.exit_code
    except click.ClickException as error:
        return _report_click(error, console)
    except OpkitError as error:
        if error.exit_code == EXIT_OUR_BUG:
            return _report_bug(error, console)
        return _report(error, console)
    except ModuleNotFoundError as error:
        missing = _missing_extra(error)
        return _report_bug(error, console) if missing is None else _report(missing, console)
    except Exception as error:
        return _report_bug(error, console)
    return 0


def _options_before_dashes(arguments: Sequence[str]) -> list[str]:
    return list(arguments[: arguments.index("--")] if "--" in arguments else arguments)


def _is_verbose(option: str) -> bool:
    return option == "--verbose" or (option.startswith("-v") and set(option[1:]) == {"v"})


# The stream of the results while everything else that writes to stdout goes to stderr.
_results: list[IO[str]] = []


@contextlib.contextmanager
def _only_json(asked: bool) -> Iterator[None]:
    """Keep stdout for the one JSON document: what kernels, host code and golden print is not it."""
    is_the_process = sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__
    if not asked or not is_the_process or sys.stderr is None or sys.stdout.fileno() != 1:
        try:
            yield
        finally:
            sys.stdout.flush()
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(sys.stderr.fileno(), 1)
    with open(kept, "w", encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123
        _results.append(stream)
        try:
            yield
            sys.stdout.flush()
            stream.flush()
        finally:
            _results.pop()


def _discard_stdout() -> None:
    # Python flushes stdout once more at exit; give it somewhere harmless to write.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _closed_pipe() -> int:
    _discard_stdout()
    return EXIT_PIPE_CLOSED


def _no_stdout(why: str) -> SetupError:
    return SetupError(
        f"standard output cannot be written: {why}", help="write to another place, or free space"
    )


def _names_outside_utf8(arguments: Sequence[str]) -> bool:
    """Whether a name that the command got, or runs in, is no UTF-8 text."""
    return any("\udc80" <= letter <= "\udcff" for letter in "".join((*arguments, os.getcwd())))  # noqa: PTH109


def _not_utf8() -> SetupError:
    return SetupError(
        "the name of a folder here is not UTF-8, which compilers and Python's own tools want",
        help="rename it, or work in another folder",
    )


def _missing_extra(error: ModuleNotFoundError) -> SetupError | None:
    """Return that one of opkit's optional packages is missing; None: it is none of these."""
    module = (error.name or "").partition(".")[0]
    try:
        requirements = importlib.metadata.requires("opkit") or ()
    except importlib.metadata.PackageNotFoundError:
        return None  # run from a folder of sources
    for line in requirements:
        found = re.match(r"([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]", line)
        if found and found[1].replace("-", "_") == module and found[2] != "test":
            return SetupError(
                f"{module} is not installed, which this command needs",
                help=f"pip install 'opkit[{found[2]}]'",
            )
    return None


def _report(error: OpkitError, console: Console) -> int:
    log.error("CLI", str(error), kind=type(error).__name__, exit_code=error.exit_code)
    if console.json:
        console.emit_json({"error": _error_object(error, error.exit_code)})
        return error.exit_code
    if isinstance(error, BuildError):
        console.diagnostics(error.diagnostics)
    _print_error(str(error))
    return error.exit_code


def _report_click(error: click.ClickException, console: Console) -> int:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "opkit"
    help_line = f'"{path} --help" shows the options'
    if console.json:
        fields = {"kind": "UsageError", "message": message, "help": help_line}
        console.emit_json({"error": {**fields, "exit_code": error.exit_code}})
        return error.exit_code
    _print_error(f"{message}\n  help: {help_line}")
    return error.exit_code


def _report_bug(error: Exception, console: Console) -> int:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    log.error("CLI", text, kind=type(error).__name__, exit_code=EXIT_OUR_BUG)
    if console.json:
        bug = {**_error_object(error, EXIT_OUR_BUG), "traceback": text}
        console.emit_json({"error": bug})
        return EXIT_OUR_BUG
    message = f"{type(error).__name__}: {error}\n  this is a bug in opkit, not in your operator"
    if console.verbose:
        click.echo(text, err=True, nl=False)
    else:
        message += f"\n  help: {_saved_traceback(text)}"
    _print_error(message)
    return EXIT_OUR_BUG


def _saved_traceback(text: str) -> str:
    """Return where the traceback was saved, as a next step."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="opkit-traceback-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return "run again with -v for the traceback, and report it"
    return f"report it with the traceback in {name}"


def _error_object(error: Exception, exit_code: int) -> dict[str, object]:
    """Return an error as JSON fields: its class, its message, and the values that it carries."""
    message = error.message if isinstance(error, OpkitError) else str(error)
    carried = {
        name: to_json(value)
        for name, value in vars(error).items()
        if not name.startswith("_") and name != "message"
    }
    return {"kind": type(error).__name__, "message": message, **carried, "exit_code": exit_code}


def _print_error(text: str) -> None:
    head = click.style("error: ", fg="red", bold=True)
    click.echo(head + text, err=True, color=wants_colour(sys.stderr))


def _diagnostic_text(diagnostic: Diagnostic) -> str:
    colour = {"error": "red", "warning": "yellow"}.get(diagnostic.severity)
    head = click.style(f"{diagnostic.severity}: ", fg=colour, bold=True)
    # Linkers and command lines have no line to show.
    place = f":{diagnostic.line}" if diagnostic.line else ""
    place += f":{diagnostic.column}" if diagnostic.line and diagnostic.column else ""
    lines = [head + diagnostic.message, f"  --> {_shown_path(diagnostic.file)}{place}"]
    if diagnostic.source_line:
        gutter = f"{diagnostic.line:>5} | "
        before = diagnostic.source_line[: max(diagnostic.column - 1, 0)]
        # Tabs keep their width, so that the caret stands under its column.
        indent = "".join("\t" if character == "\t" else " " for character in before)
        lines.append(gutter + diagnostic.source_line.rstrip())
        caret = click.style("^", fg=colour, bold=True)
        if diagnostic.column:
            lines.append(" " * (len(gutter) - 2) + "| " + indent + caret)
    return "\n".join(lines)


def _shown_path(path: Path) -> str:
    """Return `path` relative to the working directory where it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
