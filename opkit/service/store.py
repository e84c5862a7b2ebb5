"""What a service keeps on disk: versions by content, every state that was deployed, times.

A change is one SQLite transaction with `synchronous=FULL`: once it is acknowledged it survives the
end of the process and of the machine, and before that nobody sees any of it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic import command as alembic_command
from alembic.config import Config as AlembicConfig
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine, event, insert, select, text
from sqlalchemy.exc import DatabaseError

from opkit.errors import SetupError, UsageError, cannot_write
from opkit.service.contents import digest_of_folder, keep_folder
from opkit.service.deployment import Deployment
from opkit.service.interface import Interface
from opkit.service.tables import DEPLOYMENTS, MODELLED, VERSIONS
from opkit.service.workers import Modelled

__all__ = ["Revision", "Store", "Version"]

_MIGRATIONS = Path(__file__).with_name("migrations")
_DATABASE = "service.db"


@dataclass(frozen=True)
class Version:
    """One version of an operator; it never changes."""

    operator: str
    label: str
    digest: str
    kind: str
    interface: Interface
    has_reference: bool
    source: str
    added_at: float
    folder: Path

    @property
    def short(self) -> str:
        """The first 12 letters of its digest, as logs and pages show it."""
        return self.digest[:12]


@dataclass(frozen=True)
class Revision:
    """One state that was deployed."""

    revision: int
    deployment: Deployment
    reason: str
    changed_at: float
    copied_from: int | None = None
    """The revision that it rolled back to."""


class Store:
    """A folder with `service.db` and `versions/DIGEST/`; one process has it at a time."""

    def __init__(self, folder: Path) -> None:
        """Open or make a store, and bring its tables to what this opkit knows.

        Raises:
            SetupError: another process has it, it is damaged, or a newer opkit has written it.
            UsageError: the folder cannot be made or written.
        """
        self.folder = folder
        try:
            (folder / "versions").mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("a")
        except OSError as err:
            raise cannot_write(folder, err) from err
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            self._lock.close()
            raise SetupError(
                f"{folder} is in use by another service", help="stop that one, or use another store"
            ) from err
        self._remove_unfinished()
        self._engine = create_engine(f"sqlite:///{folder / _DATABASE}")
        event.listen(self._engine, "connect", _prepare)
        event.listen(self._engine, "begin", _begin)
        try:
            with self._engine.begin() as connection:
                _migrate(connection)
            with self._engine.connect() as connection:
                found = connection.execute(text("PRAGMA quick_check")).scalar()
            if found != "ok":
                raise SetupError(f"{folder / _DATABASE} is damaged: {found}")
        except CommandError as err:
            self.close()
            raise SetupError(
                f"{folder / _DATABASE} was written by a newer opkit: {err}",
                help="install that version of opkit, or use another store",
            ) from err
        except DatabaseError as err:
            self.close()
            raise SetupError(f"{folder / _DATABASE} cannot be used: {err.orig}") from err
        except SetupError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the store."""
        self._engine.dispose()
        self._lock.close()

    def add_version(
        self, operator: str, label: str, *, source: str, fill: Callable[[Path], tuple[Any, ...]]
    ) -> Version:
        """Keep a version; `fill` writes its files and returns (kind, interface, has_reference).

        A label that has the same content already is that version.

        Raises:
            UsageError: the label has another content, or the content another label.
            OpkitError: what `fill` raises.
        """
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".aside-") as name:
            aside = Path(name) / "content"
            aside.mkdir()
            kind, interface, has_reference = fill(aside)
            digest = digest_of_folder(aside)
            for version in self.versions(operator):
                same = (version.label == label, version.digest == digest)
                if all(same):
                    return version
                if same[0]:
                    raise UsageError(
                        f"{operator} {label} is {version.short} already, and {source} is"
                        f" {digest[:12]}: versions never change",
                        help="give the new one a label of its own",
                    )
                if same[1]:
                    raise UsageError(
                        f"{operator}: {source} is the content of {version.label} already",
                        help=f"deploy {version.label}, or look whether it is what you built",
                    )
                interface.refuse_unless_alike(version.interface, operator, label)
            try:
                keep_folder(aside, self.folder / "versions" / digest)
            except OSError as err:
                raise cannot_write(self.folder, err) from err
        row = {
            "operator": operator,
            "digest": digest,
            "label": label,
            "kind": kind,
            "interface": interface.to_json(),
            "has_reference": int(has_reference),
            "source": source,
            "added_at": time.time(),
        }
        with self._engine.begin() as connection:
            connection.execute(insert(VERSIONS).values(row))
        return self._version(row)

    def versions(self, operator: str) -> list[Version]:
        """Return an operator's versions, oldest first."""
        query = select(VERSIONS).where(VERSIONS.c.operator == operator).order_by(text("rowid"))
        with self._engine.connect() as connection:
            return [self._version(dict(row._mapping)) for row in connection.execute(query)]

    def operators(self) -> list[str]:
        """Return the operators that have a version."""
        with self._engine.connect() as connection:
            query = select(VERSIONS.c.operator).distinct().order_by(VERSIONS.c.operator)
            return list(connection.execute(query).scalars())

    def deploy(
        self,
        operator: str,
        deployment: Deployment,
        reason: str,
        *,
        copied_from: int | None = None,
    ) -> Revision:
        """Make a state the one that counts; acknowledged when this returns."""
        with self._engine.begin() as connection:
            revision = len(self._revisions(connection, operator)) + 1
            row = Revision(revision, deployment, reason, time.time(), copied_from)
            connection.execute(
                insert(DEPLOYMENTS).values(
                    operator=operator,
                    revision=revision,
                    state=deployment.to_json(),
                    reason=reason,
                    changed_at=row.changed_at,
                    copied_from=copied_from,
                )
            )
        return row

    def history(self, operator: str) -> list[Revision]:
        """Return every state that was deployed, oldest first."""
        with self._engine.connect() as connection:
            return self._revisions(connection, operator)

    def modelled(self, digest: str, op: str) -> dict[str, Modelled]:
        """Return what the timing model has said of a version, by signature."""
        query = select(MODELLED).where(MODELLED.c.digest == digest, MODELLED.c.op == op)
        with self._engine.connect() as connection:
            return {
                row.signature: Modelled(row.task_us, row.band_percent, row.energy_uj)
                for row in connection.execute(query)
            }

    def keep_modelled(self, digest: str, op: str, signature: str, modelled: Modelled) -> None:
        """Remember what the timing model said."""
        values = {"digest": digest, "op": op, "signature": signature, **vars(modelled)}
        with self._engine.begin() as connection:
            connection.execute(insert(MODELLED).prefix_with("OR REPLACE").values(values))

    def damaged_versions(self) -> list[str]:
        """Return the digests whose folders no longer have that content."""
        with self._engine.connect() as connection:
            digests = sorted(set(connection.execute(select(VERSIONS.c.digest)).scalars()))
        folders = {digest: self.folder / "versions" / digest for digest in digests}
        return [d for d, folder in folders.items() if digest_of_folder(folder) != d]

    def _revisions(self, connection: Connection, operator: str) -> list[Revision]:
        query = select(DEPLOYMENTS).where(DEPLOYMENTS.c.operator == operator)
        rows = connection.execute(query.order_by(DEPLOYMENTS.c.revision))
        return [
            Revision(
                row.revision,
                Deployment.from_json(row.state),
                row.reason,
                row.changed_at,
                row.copied_from,
            )
            for row in rows
        ]

    def _version(self, row: Mapping[str, Any]) -> Version:
        folder = self.folder / "versions" / str(row["digest"])
        values = {**row, "interface": Interface.from_json(row["interface"]), "folder": folder}
        return Version(**{**values, "has_reference": bool(row["has_reference"])})

    def _remove_unfinished(self) -> None:
        """Remove what an earlier process had begun to add when it was ended."""
        for folder in (self.folder, self.folder / "versions"):
            for path in folder.glob(".aside-*"):
                shutil.rmtree(path, onerror=_make_writable)


def _make_writable(function: Callable[..., object], path: str, _: object) -> None:
    parent = Path(path).parent
    parent.chmod(0o700)
    if os.path.lexists(path):
        function(path)


def _prepare(connection: Any, _: object) -> None:
    # Python's own module would begin no transaction before a change of tables.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA busy_timeout=5000")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _migrate(connection: Connection) -> None:
    config = AlembicConfig()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    alembic_command.upgrade(config, "head")
