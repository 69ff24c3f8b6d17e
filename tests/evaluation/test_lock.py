"""The lock beside a store: one holder at a time, and nothing left behind."""

import threading

import pytest

from basq.errors import StoreError
from basq.evaluation.lock import Lock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


def test_it_is_there_only_while_it_is_held(path):
    mine, other = Lock(path), Lock(path)
    assert not mine.taken
    with mine.held(0.0) as first, mine.held(0.0) as again:
        assert first
        assert again
        assert other.taken
        with other.held(0.0) as second:
            assert not second
    assert not list(path.parent.iterdir())
    assert not other.taken


def test_what_a_killed_holder_has_left_is_taken_over_and_removed(path):
    path.with_name("run.sqlite.lock").touch()
    lock = Lock(path)
    assert not lock.taken
    with lock.held(0.0) as held:
        assert held
    assert not list(path.parent.iterdir())


def test_many_that_wait_come_one_after_the_other(path):
    inside, most, done = [], [], []

    def work():
        for _ in range(5):
            with Lock(path).held(60.0) as held:
                assert held
                inside.append(1)
                most.append(len(inside))
                inside.pop()
        done.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    assert max(most) == 1
    assert not list(path.parent.iterdir())


def test_what_stands_in_its_place_is_named(path):
    path.with_name("run.sqlite.lock").write_bytes(b"something else entirely, and long enough " * 20)
    with pytest.raises(StoreError, match=r"run\.sqlite\.lock' stands where the store's lock has to be .*remove it"), \
            Lock(path).held(0.0):  # fmt: skip
        pass
    gone = Lock(path.parent / "gone" / "run.sqlite")
    with pytest.raises(StoreError, match="cannot be made"), gone.held(0.0):
        pass
