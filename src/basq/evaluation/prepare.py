"""Opening the file of a store: a new one gets its tables, an old one is migrated, and a damaged one is found."""

import json
import sqlite3
from itertools import islice
from typing import TYPE_CHECKING

from basq.errors import DamagedError, StoreError, counted
from basq.evaluation import seals
from basq.evaluation.schema import APPLICATION_ID, FORMAT, KEPT, MIGRATIONS, OUTPUTS, SCHEMA

if TYPE_CHECKING:
    from basq.evaluation.store import Store

NOTHING_OF_OURS = "file is not a database"
"""What SQLite says of a file whose head is another one."""
SHOWN = 3
"""Damages that are named."""


def prepare(store: "Store", connection: sqlite3.Connection, n_dim: int | None) -> None:
    """Have a connection to a store's file ready for use; with n_dim, a new file becomes one."""
    try:
        connection.execute("PRAGMA synchronous = EXTRA")  # a committed call survives a crash of the machine
        seals.register(connection)
        if _format(connection) != (APPLICATION_ID, FORMAT):  # or else nothing is written: it may be only for reading
            with store.transaction():
                _renew(store, connection, n_dim)
        if store.path is not None:
            _check(store, connection)
        seals.install(connection)
    except sqlite3.OperationalError as error:
        raise StoreError(f"{store} cannot be opened: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise _damaged(store, str(error)) from error


def _format(connection: sqlite3.Connection) -> tuple[int, int]:
    """Whose file it is, and in which version."""
    numbers = (connection.execute(f"PRAGMA {key}").fetchone() for key in ("application_id", "user_version"))
    (application,), (version,) = numbers
    return application, version


def _renew(store: "Store", connection: sqlite3.Connection, n_dim: int | None) -> None:
    """Make the tables of a new file; check and migrate an old one."""
    application, version = _format(connection)  # as it is now: another process may just have made the file
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not tables and n_dim is not None:
        for statement in (*SCHEMA.split(";\n"), OUTPUTS.format(", seal INTEGER"), KEPT):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        _note(connection, n_dim=int(n_dim), format=FORMAT)
        return
    if not tables:
        raise StoreError(f"{store} holds no run yet.")
    noted = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() if "meta" in tables else None
    if noted is not None and (application, str(version)) != (APPLICATION_ID, noted[0]):
        raise _damaged(store, "its header has changed")
    if application != APPLICATION_ID:
        raise StoreError(f"{store} is not a store of basq; give another file name.")
    if version > FORMAT:
        raise StoreError(f"{store} has format {version}, made by a newer basq; this one reads up to {FORMAT}.")
    if not set(range(version, FORMAT)) <= set(MIGRATIONS):
        raise StoreError(f"{store} has format {version}, made by an older basq; this one reads format {FORMAT}.")
    for old in range(version, FORMAT):
        MIGRATIONS[old](connection)
        connection.execute(f"PRAGMA user_version = {old + 1}")
    _note(connection, format=FORMAT)


def _note(connection: sqlite3.Connection, **numbers: int) -> None:
    """Write settings before there is anything that seals them."""
    for key, number in numbers.items():
        row = (key, json.dumps(number))
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (*row, seals.seal("meta", *row)))


def _check(store: "Store", connection: sqlite3.Connection) -> None:
    """Refuse a file that does not hold what was written, or that does more than hold it."""
    active = "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%'"
    strange = connection.execute(active).fetchone()
    if strange is not None:
        raise StoreError(f"{store} is not a store of basq: {strange[0]!r} in it is more than a table. Do not use it.")
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise _damaged(store, found)
    broken = list(islice(seals.broken(connection), SHOWN + 1))
    if broken:
        rows = ", ".join(f"{table} {key!r:.30}" for table, key in broken[:SHOWN])
        raise _damaged(store, f"{rows}{' and more' if len(broken) > SHOWN else ''} not as written")


def _damaged(store: "Store", what: str) -> StoreError:
    """The error that says what can be saved."""
    from basq.evaluation.rescue import salvage

    assert store.path is not None
    n_calls = len(salvage(store.path).calls)
    if not n_calls and what == NOTHING_OF_OURS:
        return StoreError(f"{store} cannot be opened: {what}.")
    return DamagedError(
        f"{store} is damaged ({' '.join(what.split())}). {counted(n_calls, 'call')} of it can be saved: "
        f"basq rescue {store.path} -o new.sqlite"
    )
