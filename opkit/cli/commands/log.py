"""`opkit log`: the log of the emulator, the toolchain, the runtime and the others."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options, to_json
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.log import Record

__all__ = ["command"]

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TONES = {"ERROR": "red", "WARNING": "yellow", "DEBUG": "bright_black"}


@click.command("log", short_help="Show the log of opkit's components.")
@click.option(
    "--level",
    type=click.Choice(_LEVELS, case_sensitive=False),
    default="DEBUG",
    show_default=True,
    help="The lowest level to show.",
)
@click.option("--component", "components", multiple=True, metavar="NAME", help="Only this one.")
@click.option("--pid", type=int, metavar="N", help="Only this process.")
@click.option("--grep", "pattern", metavar="REGEX", help="Only messages that this matches.")
@click.option("--since", metavar="TIME", help="From then on: 10m, 2h, 1d or a date.")
@click.option(
    "-n", "--last", type=click.IntRange(min=0), metavar="N", help="Only the last N that are left."
)
@click.option("-f", "--follow", is_flag=True, help="Go on with records as they are written.")
@click.option(
    "--path",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The log's folder; $ASCEND_PROCESS_LOG_PATH, or the user's own by default.",
)
@common_options
def command(
    *,
    level: str,
    components: tuple[str, ...],
    pid: int | None,
    pattern: str | None,
    since: str | None,
    last: int | None,
    follow: bool,
    path: Path | None,
    console: Console,
) -> None:
    """Show the log of opkit's components.

    ASCEND_GLOBAL_LOG_LEVEL says what is written: 0 debug, 1 info, 2 warning, 3 error (where it is
    not set), 4 nothing. With --follow, --json prints one object a line.

    Example: opkit log --level ERROR --since 1h
    """
    from opkit.log import follow as follow_log
    from opkit.log import log_folder, read_log

    folder = path or log_folder()
    if path is not None and not path.is_dir():
        raise UsageError(f"--path {path}: there is no such folder")
    wanted = _Filter(level, components, pid, pattern, since)
    fresh = follow_log(folder) if follow else None
    records = [record for record in read_log(folder) if wanted.takes(record)]
    if last is not None:
        records = records[len(records) - min(last, len(records)) :]
    if fresh is None:
        if console.json:
            console.emit_json(records)
        for record in records:
            console.result(_text(record))
        if not records and not console.json:
            console.status("none", f"no such records below {folder}", tone="quiet")
        return
    for record in records:
        _show_followed(record, console)
    for record in fresh:
        if wanted.takes(record):
            _show_followed(record, console)


class _Filter:
    """Which records to show."""

    def __init__(
        self,
        level: str,
        components: tuple[str, ...],
        pid: int | None,
        pattern: str | None,
        since: str | None,
    ) -> None:
        self._levels = _LEVELS[_LEVELS.index(level.upper()) :]
        self._components = {name.upper() for name in components}
        self._pid = pid
        try:
            self._pattern = re.compile(pattern) if pattern is not None else None
        except re.error as err:
            raise UsageError(f"--grep {pattern!r} is no regular expression: {err}") from err
        self._since = _moment(since) if since is not None else ""

    def takes(self, record: Record) -> bool:
        return (
            # The vendor's own files have further levels, such as EVENT.
            (record.level in self._levels or record.level not in _LEVELS)
            and (not self._components or record.component.upper() in self._components)
            and self._pid in (None, record.pid)
            and (self._pattern is None or self._pattern.search(record.message) is not None)
            and record.time >= self._since
        )


def _moment(text: str) -> str:
    """Return a time of --since as records have it."""
    try:
        if re.fullmatch(r"[0-9]+[smhd]", text):
            seconds = int(text[:-1]) * _UNITS[text[-1]]
            moment = datetime.datetime.now() - datetime.timedelta(seconds=seconds)
        else:
            moment = datetime.datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                # Records have the time of this machine.
                moment = moment.astimezone()
    except (ValueError, OverflowError) as err:
        raise UsageError(
            f"--since {text!r} is no time", help="write 10m, 2h, 1d or 2026-01-31T12:00"
        ) from err
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds")


def _text(record: Record) -> str:
    head = f"{record.time} {record.level:<7} {record.component:<9} {record.pid} {record.process}"
    where = f" {record.where}" if record.where else ""
    fields = "".join(f" {key}={value}" for key, value in record.fields.items())
    message = record.message.replace("\n", "\n    ")
    return click.style(f"{head}{where}:", fg=_TONES.get(record.level)) + f" {message}{fields}"


def _show_followed(record: Record, console: Console) -> None:
    if console.json:
        click.echo(json.dumps(to_json(record), ensure_ascii=False))
    else:
        console.result(_text(record))
