"""What the last steps of a run have learned, as bytes in its store: a copy of what could be learned again."""

import sqlite3
import zlib

PART = 2**24
"""Bytes in a row: SQLite has no rows of a gigabyte, and writes those of a few megabytes best."""


def write(connection: sqlite3.Connection, step: int, blob: bytes) -> None:
    """Replace what was kept, by what is known after so many steps."""
    forget(connection)
    for part, start in enumerate(range(0, len(blob), PART)):
        data = memoryview(blob)[start : start + PART]
        connection.execute("INSERT INTO kept VALUES (?, ?, ?, ?)", (part, step, data, zlib.crc32(data)))


def read(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
    """After how many steps, and what was known; None if nothing is kept, or if it is damaged."""
    rows = connection.execute("SELECT part, step, bytes, seal FROM kept ORDER BY part").fetchall()
    sound = all(isinstance(data, bytes) and zlib.crc32(data) == own for _, _, data, own in rows)
    if not rows or not sound or [row[0] for row in rows] != list(range(len(rows))):
        return None
    return int(rows[0][1]), b"".join(data for _, _, data, _ in rows)


def forget(connection: sqlite3.Connection) -> None:
    """Forget it."""
    connection.execute("DELETE FROM kept")
