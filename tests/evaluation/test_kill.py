"""The driver is killed again and again, at random moments, and nothing is lost."""

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import basq
from basq.evaluation.store import Store
from helpers.small import gauss

SCRIPT = textwrap.dedent("""
    import os, sys, time
    import numpy as np
    import basq

    store, log, pool = sys.argv[1], sys.argv[2], int(sys.argv[3]) or None

    def note(text):
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, (text + "\\n").encode())  # one write: whole lines, also from several processes
        os.close(file)

    def gauss(x):
        note(" ".join(map(repr, x.tolist())))
        time.sleep(0.01)
        return float(-0.5 * np.sum((x - 0.3) ** 2) / 0.1)

    note("up")
    result = basq.infer(
        gauss, {"a": (-3, 3), "b": (-3, 3)}, pool=pool, store=store,
        seed=1, batch_size=8, max_evals=160, dlogz=0.0, progress=False,
    )
    note("end")
""")


def done(path):
    """The points in the store that have values."""
    try:
        with Store(path) as store:
            return [tuple(x) for x in store.done().x.tolist()]
    except basq.StoreError:  # killed before there was a run in it
        return []


def begun(log):
    """The points whose evaluation has begun, in order, and whether the run has ended."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [tuple(map(float, line.split())) for line in lines if line[0] in "-0123456789"], "end" in lines, len(lines)


@pytest.mark.parametrize("pool", [0, 2])
def test_a_driver_killed_at_random_moments_loses_nothing(tmp_path, pool):
    path, log, rng = tmp_path / "run.sqlite", tmp_path / "log", np.random.default_rng(pool)
    command = [sys.executable, "-c", SCRIPT, str(path), str(log), str(pool)]
    known: set[tuple[float, ...]] = set()
    n_kills = 10  # with both ways of evaluating: 20
    for _ in range(n_kills):
        n_lines = begun(log)[2]
        with subprocess.Popen(command) as driver:
            while begun(log)[2] == n_lines:  # until it is up
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 1.2))
            driver.kill()
        time.sleep(1.2 if pool else 0.0)  # its workers notice
        points, ended, _ = begun(log)
        assert not ended, "the run ended before it was killed often enough"
        finished = done(path)
        assert known <= set(finished)  # what was there is there
        known = set(finished)
        n_before = len(points)
    subprocess.run(command, check=True, timeout=120)
    points, ended, _ = begun(log)
    assert ended
    assert not known & set(points[n_before:])  # none is evaluated twice
    result = basq.Sampler.open(path).result()
    plain = basq.infer(
        gauss, {"a": (-3, 3), "b": (-3, 3)}, seed=1, batch_size=8, max_evals=160, dlogz=0.0, progress=False
    )
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)
    assert result.log_evidence == plain.log_evidence
    assert result.log_evidence_std == plain.log_evidence_std
    # a call in flight may be begun again, one for each worker and kill
    assert len(points) - len(set(points)) <= max(pool, 1) * n_kills
