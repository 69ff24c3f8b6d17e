"""A checksum in every row of a store, so that a bit that has flipped inside a value is found.

The triggers that write them live in the connection, not in the file: whatever statement changes a row here, its seal
follows, and a row that something else has changed does not fit its seal any more.
"""

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from typing import Any

SEALED = {
    "meta": ("key", "value"),
    "calls": (
        "id", "batch", "explores", "x", "u", "state", "log_likelihood", "noise", "extra", "attempt", "error",
        "traceback", "worker", "seconds", "finished", "step",
    ),
    "outputs": ("id", "output"),
    "steps": ("step", "calls", "record"),
}  # fmt: skip
"""The columns that are sealed, by table; the first is the key."""


def seal(*values: Any) -> int:
    """Checksum of the values of a row, their types and their order."""
    out = 0
    for value in values:
        if isinstance(value, str):
            kind, data = b"s", value.encode("utf-8", "surrogateescape")
        elif isinstance(value, bytes):
            kind, data = b"b", value
        elif isinstance(value, float):
            kind, data = b"f", struct.pack("<d", value)
        else:
            kind, data = (b"n", b"") if value is None else (b"i", str(value).encode())
        out = zlib.crc32(data, zlib.crc32(kind + len(data).to_bytes(8, "little"), out))
    return out


def register(connection: sqlite3.Connection) -> None:
    """Make the function known to a connection."""
    connection.create_function("seal", -1, seal, deterministic=True)


def install(connection: sqlite3.Connection) -> None:
    """Have every row that this connection writes sealed."""
    connection.execute("PRAGMA temp_store = MEMORY")
    for table, columns in SEALED.items():
        body = f"BEGIN UPDATE {table} SET seal = {_seal_of(table)} WHERE {columns[0]} = NEW.{columns[0]}; END"
        connection.execute(f"CREATE TEMP TRIGGER seal_new_{table} AFTER INSERT ON main.{table} {body}")
        changed = ", ".join(columns)  # not of the seal, or it would call itself
        connection.execute(f"CREATE TEMP TRIGGER seal_{table} AFTER UPDATE OF {changed} ON main.{table} {body}")


def seal_all(connection: sqlite3.Connection) -> None:
    """Seal the rows of a store of old."""
    for table in SEALED:
        connection.execute(f"UPDATE {table} SET seal = {_seal_of(table)}")


def broken(connection: sqlite3.Connection) -> Iterator[tuple[str, Any]]:
    """Table and key of every row that does not fit its seal."""
    for table, columns in SEALED.items():
        found = connection.execute(f"SELECT {columns[0]} FROM {table} WHERE seal IS NOT {_seal_of(table)}")
        yield from ((table, key) for (key,) in found)


def _seal_of(table: str) -> str:
    return f"seal('{table}', {', '.join(SEALED[table])})"
