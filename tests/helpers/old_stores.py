"""Stores as versions of basq before have written them."""

import sqlite3
from contextlib import closing

import cloudpickle

from basq.evaluation.seals import SEALED
from basq.evaluation.store import Store
from basq.plain import unpack


def aged(path, version=3, objects=None):
    """Turn a store into one of an older format, with its problem as pickled objects: those given, or its own."""
    with Store(path) as store:
        own = unpack(store.get("problem"))
    blob = cloudpickle.dumps(own if objects is None else objects)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in SEALED:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN seal")
        connection.execute("DROP TABLE kept")
        connection.execute("DELETE FROM meta WHERE key IN ('format', 'problem')")
        connection.execute("INSERT INTO meta VALUES ('objects', ?)", (blob,))
        if version == 2:
            connection.execute("DROP TABLE outputs")
        connection.execute(f"PRAGMA user_version = {version}")
    return path
