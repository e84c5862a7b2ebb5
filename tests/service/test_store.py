"""The store: whole after any end, migrated from older ones, one process at a time."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from opkit.errors import SetupError, UsageError
from opkit.service.deployment import Deployment
from opkit.service.interface import Interface, Parameter
from opkit.service.store import Store
from opkit.service.workers.modelled import Modelled

INTERFACE = Interface("Op", "op", (Parameter("x"),), (Parameter("y"),), (("float32",) * 2,), "chip")
MIGRATIONS = Path(__file__).parents[2] / "opkit" / "service" / "migrations"


def add(store: Store, label: str, text: str | None = None) -> None:
    def fill(folder: Path) -> tuple[str, Interface, bool]:
        (folder / "content").write_text(label if text is None else text)
        return "operator", INTERFACE, False

    store.add_version("op", label, source="test", fill=fill)


def test_versions_and_deployments_are_there_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, "v1")
    add(store, "v2")
    store.deploy("op", Deployment("v2", shares={"v1": 0.25}), "a test")
    store.keep_modelled("digest", "op", "float32[4]", Modelled(1.5, None, 2.0))
    store.close()
    again = Store(tmp_path)
    assert [version.label for version in again.versions("op")] == ["v1", "v2"]
    (revision,) = again.history("op")
    assert revision.deployment == Deployment("v2", shares={"v1": 0.25})
    assert again.modelled("digest", "op") == {"float32[4]": Modelled(1.5, None, 2.0)}
    assert again.damaged_versions() == []
    again.close()


def test_the_same_content_under_its_label_is_the_same_version(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, "v1")
    add(store, "v1")
    assert len(store.versions("op")) == 1
    with pytest.raises(UsageError, match="versions never change"):
        add(store, "v1", "other")
    store.close()


def test_a_version_that_was_tampered_with_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, "v1")
    (version,) = store.versions("op")
    (version.folder / "content").chmod(0o644)
    (version.folder / "content").write_text("something else")
    assert store.damaged_versions() == [version.digest]
    store.close()


def test_a_store_has_one_service(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(SetupError, match="in use by another service"):
        Store(tmp_path)
    store.close()
    Store(tmp_path).close()


def test_a_store_of_the_first_schema_keeps_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(f"sqlite:///{tmp_path / 'service.db'}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.exec_driver_sql(
            "insert into deployments (operator, revision, state, reason, changed_at)"
            """ values ('op', 1, '{"default": "v1", "retired": []}', 'old', 0)"""
        )
    engine.dispose()
    store = Store(tmp_path)
    assert store.history("op")[0].deployment == Deployment("v1")
    store.keep_modelled("digest", "op", "float32[4]", Modelled(1.5, 14.0, 2.0))
    store.close()


def test_a_store_of_a_newer_opkit_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / "service.db") as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    with pytest.raises(SetupError, match="newer opkit"):
        Store(tmp_path)


def test_a_file_that_is_no_database_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "service.db").write_bytes(b"not a database" * 100)
    with pytest.raises(SetupError, match="cannot be used"):
        Store(tmp_path)


KILLED = """
import sys
from pathlib import Path
from opkit.service.deployment import Deployment
from opkit.service.store import Store
store = Store(Path(sys.argv[1]))
n = len(store.history("op"))
while True:
    n += 1
    store.deploy("op", Deployment(f"v{n}"), "x" * 3000)
    print(n, flush=True)
"""


def test_a_killed_process_leaves_a_whole_store_with_all_it_acknowledged(tmp_path: Path) -> None:
    random.seed(3)
    acknowledged = 0
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        for _ in range(random.randrange(3, 20)):
            acknowledged = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().split()
        process.wait()
        acknowledged = int(rest[-1]) if rest else acknowledged
        store = Store(tmp_path)
        history = store.history("op")
        # At most the one change that was not acknowledged yet is there besides.
        assert len(history) - acknowledged in (0, 1)
        assert [item.deployment.default for item in history] == [
            f"v{n}" for n in range(1, len(history) + 1)
        ]
        acknowledged = len(history)
        store.close()


def test_what_a_killed_process_had_begun_to_add_is_removed(tmp_path: Path) -> None:
    Store(tmp_path).close()
    left = tmp_path / "versions" / ".aside-abc" / "content"
    left.mkdir(parents=True)
    (left / "file").write_text("half")
    (left / "file").chmod(0o444)
    Store(tmp_path).close()
    assert list((tmp_path / "versions").iterdir()) == []
