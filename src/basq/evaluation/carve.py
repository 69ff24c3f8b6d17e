"""Rows of an SQLite file, page by page: what is left where the tree above them is damaged.

Only leaf pages of tables are read, and what they point to; which rows belong to which table, and whether they are as
they were written, is for their seals to say. The format is described in https://www.sqlite.org/fileformat2.html.
"""

import struct
from collections.abc import Iterator
from typing import Any

LEAF = 0x0D
"""First byte of a page with rows of a table."""
HEADER = 100
"""Bytes before the first page's own content."""
SIZES = tuple(2**k for k in range(9, 17))
USUAL = 4096
"""Bytes of a page, if the file does not say."""
WIDTHS = (0, 1, 2, 3, 4, 6, 8)
"""Bytes of a whole number, by its type."""


def rows(data: bytes) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Row id and values of everything in the file that has the form of a row."""
    (size,) = struct.unpack(">H", data[16:18]) if len(data) > HEADER else (0,)
    size = 65536 if size == 1 else size if size in SIZES else USUAL
    for start in range(0, len(data), size):
        top = start + (HEADER if start == 0 else 0)
        if data[top : top + 1] != bytes([LEAF]):
            continue
        n_cells = int.from_bytes(data[top + 3 : top + 5], "big")
        for k in range(min(n_cells, size // 4)):
            offset = int.from_bytes(data[top + 8 + 2 * k : top + 10 + 2 * k], "big")
            try:
                yield _cell(data, start + offset, size)
            except (IndexError, ValueError, struct.error, UnicodeDecodeError):  # not a row, or not one any more
                continue


def _cell(data: bytes, at: int, size: int) -> tuple[int, tuple[Any, ...]]:
    length, at = _varint(data, at)
    row_id, at = _varint(data, at)
    if not 0 < length <= len(data):
        raise ValueError("longer than the file")
    most = size - 35
    local = length
    if length > most:
        least = (size - 12) * 32 // 255 - 23
        local = least + (length - least) % (size - 4)
        local = local if local <= most else least
    payload = data[at : at + local]
    following = int.from_bytes(data[at + local : at + local + 4], "big") if local < length else 0
    while len(payload) < length:
        page = (following - 1) * size
        if following < 1 or page >= len(data):
            raise ValueError("the chain of pages is broken")
        following = int.from_bytes(data[page : page + 4], "big")
        payload += data[page + 4 : page + size][: length - len(payload)]
    return row_id, tuple(_record(payload))


def _record(payload: bytes) -> Iterator[Any]:
    """The values of a record."""
    at, kinds = 0, []
    end, at = _varint(payload, at)
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    for kind in kinds:
        value, at = _value(payload, at, kind)
        yield value


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return (None if kind == 0 else kind - 8), at
    width = WIDTHS[kind] if kind < 7 else 8 if kind == 7 else (kind - 12) // 2
    data = payload[at : at + width]
    if len(data) < width or kind in (10, 11):
        raise ValueError("a value reaches beyond its row")
    if kind < 7:
        return int.from_bytes(data, "big", signed=True), at + width
    if kind == 7:
        return struct.unpack(">d", data)[0], at + width
    return (data if kind % 2 == 0 else data.decode()), at + width


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for k in range(9):
        byte = data[at + k]
        if k == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + k + 1
    raise ValueError("no number")  # which cannot be
