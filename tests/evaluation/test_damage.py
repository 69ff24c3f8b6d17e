"""Stores that were damaged on a disk: found at once, said in one sentence, and saved as far as possible."""

import shutil
import sqlite3
import struct

import numpy as np
import pytest
from scipy import stats

import basq
from basq import Sampler
from basq.cli import main
from basq.errors import BasqError, DamagedError, StoreError
from basq.evaluation.rescue import rebuild, salvage
from basq.evaluation.store import Store
from helpers.small import gauss

PRIOR = {"a": (-3.0, 3.0), "b": stats.norm(0.0, 1.0)}
OPTIONS = {"seed": 1, "batch_size": 8, "max_evals": 150, "dlogz": 0.0}
N_DAMAGES = 100


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A run in progress: learned, new, failed and pending calls."""
    path = tmp_path_factory.mktemp("whole") / "run.sqlite"
    sampler = Sampler(PRIOR, store=path, **OPTIONS)
    for _ in range(2):
        batch = sampler.ask(24)
        sampler.tell(batch.ids[1:], [gauss(x) for x in batch.x[1:]])
        sampler.tell(batch.ids[:1], state="failed", error="a long story " * 900)  # over several pages
    sampler.learn()
    sampler.ask(8)
    sampler.store.close()
    return path


@pytest.fixture(scope="module")
def rows(original):
    with Store(original) as store:
        return {row["id"]: row for row in store.rows()}


@pytest.fixture
def copy(original, tmp_path):
    return shutil.copy(original, tmp_path / "copy.sqlite")


def damaged(data, rng):
    """The bytes of a file after one of the accidents that happen to files."""
    data, kind, size = bytearray(data), rng.integers(5), len(data)
    if kind == 0:
        data[rng.integers(size)] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        for place in rng.integers(size, size=20):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        start = rng.integers(size)
        data[start : start + 40] = rng.bytes(len(data[start : start + 40]))
    elif kind == 3:
        start = 4096 * rng.integers(size // 4096)
        data[start : start + 4096] = bytes(4096)
    else:
        del data[rng.integers(size) :]
    return bytes(data)


def same(row, whole):
    """Whether a saved call is one of the run: where it was, with its value or its failure."""
    value = (row["log_likelihood"], row["state"])
    known = (whole["log_likelihood"], whole["state"])
    return np.array_equal(row["x"], whole["x"]) and np.array_equal(row["u"], whole["u"]) and value == known


def read(path):
    """Everything that a reader of a store reads."""
    sampler = Sampler.open(path)
    with sampler.store as store:
        store.steps(), store.counts(), store.times(), store.last_record(), sampler.pending()
        return store.rows()


def test_no_damage_gives_a_wrong_value_or_anything_but_a_clear_error(original, rows, tmp_path):
    rng, path = np.random.default_rng(11), tmp_path / "damaged.sqlite"
    said, n_lost = [], []
    for i in range(N_DAMAGES):
        path.write_bytes(damaged(original.read_bytes(), rng))
        try:
            found = read(path)
        except BasqError as error:
            said.append(str(error))
        else:
            assert len(found) == len(rows)
            assert all(same(row, rows[row["id"]]) for row in found), i
        saved = salvage(path)
        if not saved.calls and not saved.steps:
            continue
        new = tmp_path / f"new-{i}.sqlite"
        with rebuild(saved, new) as store:
            kept = store.rows()
        new.unlink()
        assert all(same(row, rows[row["id"]]) for row in kept), i
        n_lost.append(len(rows) - len(kept))
    assert len(said) > 0.5 * N_DAMAGES  # the others hit what is not used
    assert all(text.startswith("The store '") and "\n" not in text for text in said)
    assert np.mean(n_lost) < 0.25 * len(rows)
    assert np.median(n_lost) <= 2


def flip(path, pattern, which=0):
    """Flip one bit inside a value."""
    data = bytearray(path.read_bytes())
    start = -1
    for _ in range(which + 1):
        start = data.index(pattern, start + 1)
    data[start + 3] ^= 1
    path.write_bytes(bytes(data))


def test_a_bit_that_has_flipped_inside_a_value_is_found_and_the_value_saved(copy, rows, tmp_path, capsys):
    number, value = next(
        (i, row["log_likelihood"]) for i, row in rows.items() if row["step"] is not None and row["log_likelihood"]
    )
    flip(copy, struct.pack(">d", value))
    with sqlite3.connect(copy) as raw:
        assert raw.execute("PRAGMA quick_check").fetchone() == ("ok",)  # SQLite sees nothing
    for use in Store, Sampler.open, lambda path: basq.infer(gauss, PRIOR, store=path, progress=False, **OPTIONS):
        with pytest.raises(
            DamagedError, match=rf"damaged \(calls {number} not as written\)\. 55 calls of it can be saved: basq rescue"
        ):
            use(copy)
    new = tmp_path / "new.sqlite"
    assert main(["rescue", str(copy), "-o", str(new)]) == 0
    assert f"{new}: 56 calls saved, 46 with a value; none is missing." in capsys.readouterr().out
    with Store(new) as store:  # the step that has learned from it has it still
        assert store.rows()[number]["log_likelihood"] == value


def test_a_run_goes_on_from_what_was_saved(copy, original, tmp_path):
    flip(copy, b"a long story")
    saved = salvage(copy)
    assert len(saved.calls) == 55
    new = tmp_path / "new.sqlite"
    rebuild(saved, new).close()
    found, whole = Sampler.open(new).result(), Sampler.open(original).result()
    assert found.log_evidence == whole.log_evidence
    # which of the two lies first in the file is the database's business
    assert sorted(str(f.error)[:25] for f in found.failures) == ["a long story a long story", "its record was lost"]
    result = basq.infer(gauss, PRIOR, store=new, progress=False, **OPTIONS | {"max_evals": 64})
    assert result.n_evals + result.n_failed == 64


def test_damage_of_what_can_be_learned_again_is_no_damage(copy, original):
    with Store(copy) as store:
        before = store.kept()
        assert before is not None
        store._connection.execute("UPDATE kept SET bytes = zeroblob(length(bytes))")
        assert store.kept() is None
    assert Sampler.open(copy).result().log_evidence == Sampler.open(original).result().log_evidence


def test_rows_that_something_else_has_changed_are_found(copy):
    with sqlite3.connect(copy) as raw:
        raw.execute("UPDATE calls SET log_likelihood = 0.0 WHERE id = 7")
    with pytest.raises(DamagedError, match="calls 7 not as written"):
        Store(copy)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "CREATE TRIGGER more AFTER UPDATE ON calls BEGIN DELETE FROM calls; END",
    ],
)
def test_a_file_that_does_more_than_hold_data_is_refused(copy, statement):
    with sqlite3.connect(copy) as raw:
        raw.execute(statement)
    with pytest.raises(StoreError, match="'more' in it is more than a table"):
        Store(copy)


def test_a_header_that_has_changed_is_damage_and_no_other_format(copy):
    with sqlite3.connect(copy) as raw:
        raw.execute("PRAGMA user_version = 36")
    with pytest.raises(DamagedError, match="its header has changed"):
        Store(copy)
    with sqlite3.connect(copy) as raw:
        raw.execute("PRAGMA application_id = 7")
    with pytest.raises(DamagedError, match="56 calls of it can be saved"):
        Store(copy)


def test_rescue_says_what_it_cannot_do(copy, tmp_path, capsys):
    other = tmp_path / "other.txt"
    other.write_text("no store")
    for arguments, text in [
        ([copy, "-o", copy], "exists already; name a new file"),
        ([tmp_path / "nothing.sqlite", "-o", tmp_path / "new.sqlite"], "There is no store"),
        ([other, "-o", tmp_path / "new.sqlite"], "Nothing of the store can be saved"),
    ]:
        assert main(["rescue", *map(str, arguments)]) == 2
        assert text in capsys.readouterr().err
    assert not (tmp_path / "new.sqlite").exists()


def test_without_its_prior_a_run_asks_for_it(copy, tmp_path, capsys):
    saved = salvage(copy)
    for key in "problem", "prior":
        del saved.meta[key]
    new = tmp_path / "new.sqlite"
    rebuild(saved, new).close()
    with pytest.raises(StoreError, match=r"The prior in .* is lost; build it again and go on with Sampler\(prior"):
        Sampler.open(new)
    assert Sampler(PRIOR, store=new, **OPTIONS).result().n_evals == 46
    assert Sampler.open(new).result().n_evals == 46
    saved.meta.clear()
    rebuild(saved, tmp_path / "bare.sqlite").close()
    sampler = Sampler(PRIOR, store=tmp_path / "bare.sqlite", **OPTIONS)
    assert sampler.result().n_evals == 46
