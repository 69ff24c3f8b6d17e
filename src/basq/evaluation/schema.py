"""The tables of a store, and how older ones become those of today."""

import sqlite3
from collections.abc import Callable
from typing import Any

from basq.evaluation.seals import SEALED, seal_all

APPLICATION_ID = 0x62617371  # "basq"
FORMAT = 4
"""Version of the file format; older ones are migrated when they are opened, as far as there is a way."""
OUTPUTS = "CREATE TABLE outputs (id INTEGER PRIMARY KEY, output BLOB NOT NULL{})"
"""Of simulators, packed, by call."""
KEPT = """
CREATE TABLE kept (
    part INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,       -- how many steps it has learned from
    bytes BLOB NOT NULL,         -- what is known after them: a copy, which the steps can make again
    seal INTEGER NOT NULL
)
"""


def _sealed(connection: sqlite3.Connection) -> None:
    """Give all rows a checksum, and what was learned a place."""
    for table in SEALED:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN seal INTEGER")
    connection.execute(KEPT)
    seal_all(connection)


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], Any]] = {
    2: lambda connection: connection.execute(OUTPUTS.format("")),
    3: _sealed,
}
"""From each version to the next; none from 1, in which steps had no status and which was never released."""
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value, seal INTEGER);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL,      -- asked for together
    explores INTEGER NOT NULL,   -- 1: looks for something new; 0: integrates
    x BLOB NOT NULL,             -- the user's parameters, float64
    u BLOB NOT NULL,             -- the same point in standard space
    state TEXT NOT NULL,         -- pending, done or failed
    log_likelihood REAL,
    noise REAL,
    extra TEXT,                  -- further outputs, JSON
    attempt INTEGER NOT NULL,    -- how often it has been tried
    error TEXT,                  -- why the last failed attempt failed
    traceback TEXT,
    worker TEXT,
    seconds REAL,
    finished REAL,               -- seconds since 1970
    -- the step of the run that learned from it; checksum of the row, as in all tables
    step INTEGER, seal INTEGER
);
CREATE INDEX batches ON calls (batch);
CREATE INDEX unlearned ON calls (id) WHERE step IS NULL;
CREATE INDEX failed ON calls (id) WHERE state = 'failed';
CREATE TABLE steps (
    step INTEGER PRIMARY KEY,
    calls BLOB NOT NULL,         -- the calls it learned from, as the rows of a float64 table
    -- what came out, JSON
    record TEXT NOT NULL, seal INTEGER
);
"""
