"""Engines of more than one machine, for real: Dask, Ray, MPI, executors and pools of the standard library."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from basq.errors import EvaluationError, InputError
from basq.evaluation import worker
from basq.evaluation.backends import open_pool
from basq.evaluation.call import Call
from basq.evaluation.evaluator import Evaluator
from basq.evaluation.store import Store
from helpers import small
from helpers.commands import run
from helpers.small import OPTIONS, PRIOR, Heavy, gauss, infer

for module in (small, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(module)  # workers elsewhere cannot import the tests


@pytest.fixture(scope="module")
def plain():
    return infer(gauss)


# --- the engines ----------------------------------------------------------------------------------------------------


@contextmanager
def threads():
    with ThreadPoolExecutor(3) as pool:
        yield pool


@contextmanager
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def standard_pool():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        yield pool


class Mapper:
    def map(self, function, points):
        return list(map(function, points))


@contextmanager
def mapper():
    yield Mapper()


@contextmanager
def dask_client():
    """A scheduler and three worker processes, started from the command line as a user would."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install basq[dask])")
    directory = Path(os.environ["BASQ_TEST_DIRECTORY"])
    common = ["--scheduler-file", str(directory / "scheduler.json"), "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *common]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", *common]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen(command, cwd=directory, **quiet) for command in (scheduler, worker, worker, worker)]
    try:
        with distributed.Client(scheduler_file=str(directory / "scheduler.json"), timeout=60) as client:
            client.wait_for_workers(3, timeout=60)
            yield client
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:  # a nanny that was just replacing its worker may never end
                process.kill()
                process.wait()


@contextmanager
def ray_session():
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install basq[ray])")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield ray
    finally:
        ray.shutdown()


ENGINES = {
    "threads": threads,
    "processes": processes,
    "multiprocessing": standard_pool,
    "map": mapper,
    "dask": dask_client,
    "ray": ray_session,
}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, tmp_path_factory):
    os.environ["BASQ_TEST_DIRECTORY"] = str(tmp_path_factory.mktemp("engine"))
    with ENGINES[request.param]() as pool:
        yield pool


@pytest.mark.filterwarnings("default")  # what the engines themselves warn of is theirs
def test_the_same_run_on_every_engine(engine, plain, tmp_path):
    result = infer(Heavy(tmp_path), pool=engine)
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)
    assert result.log_evidence == plain.log_evidence
    marks = [path.name.split("-")[0] for path in tmp_path.iterdir()]
    assert len(marks) == len(set(marks)) <= 4  # the function travels to each worker once


@pytest.mark.filterwarnings("default")
def test_failures_and_time_limits_on_every_engine(engine):
    def awkward(x):
        if x[0] > 2.5:
            raise ArithmeticError("no solution")
        if x[1] > 2.5:
            time.sleep(3600.0)
        return gauss(x)

    result = infer(awkward, pool=engine, timeout=0.7, max_evals=32)
    assert result.n_evals + result.n_failed == 32
    errors = [f.error for f in result.failures]
    assert any("ArithmeticError: no solution" in e for e in errors)
    assert any("took longer than timeout = 0.7 s" in e for e in errors)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("timeout", [None, 30.0])
def test_children_that_a_call_has_forked_on_every_engine(engine, plain, timeout):
    def forks(x):
        if os.fork() == 0:
            sys.exit()
        return gauss(x)

    result = infer(forks, pool=engine, timeout=timeout)
    np.testing.assert_array_equal(result.observations.x, plain.observations.x)
    assert result.log_evidence == plain.log_evidence


@pytest.mark.filterwarnings("default")
def test_asynchronous_on_every_engine(engine):
    result = infer(gauss, pool=engine, asynchronous=True)
    assert result.n_evals == 48
    truth = np.log(2 * np.pi * 0.1 / 36)
    assert abs(result.log_evidence - truth) < max(0.1, 3.0 * result.log_evidence_std)


@pytest.mark.filterwarnings("default")
def test_values_are_on_the_disk_while_the_driver_is_busy_on_every_engine(engine, tmp_path):
    if isinstance(engine, Mapper):
        pytest.skip("a map gives nothing while nobody looks")
    path, x = tmp_path / "run.sqlite", np.random.default_rng(0).standard_normal((8, 2))
    with Store(path, 2) as store, open_pool(Call(gauss, ("a", "b")), engine) as pool:
        evaluator = Evaluator(pool, store, vectorized=False, retries=0, raises=False, interrupted=lambda: False)
        arrived = 0
        while not arrived:  # a worker that has had no call asks for the function first, and knows it next time
            before = store.counts()["done"]
            assert before < 8 * len(x), "no value arrives while nobody looks"
            evaluator.start(store.of(store.add(x, x, False, before)))
            for _ in range(50):  # the driver thinks, and collects nothing
                arrived = store.counts()["done"] - before
                if arrived:
                    break
                time.sleep(0.1)
            evaluator.finish()
        done = store.done()
        np.testing.assert_array_equal(done.log_likelihood, [gauss(row) for row in done.x])


@pytest.mark.filterwarnings("default")
def test_a_killed_dask_worker_costs_one_call_which_is_run_again(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("BASQ_TEST_DIRECTORY", str(tmp_path))

    def once(x):
        mark = tmp_path / "killed"
        if x[0] > 1.5 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return gauss(x)

    with dask_client() as client:
        result = infer(once, pool=client)
    assert (tmp_path / "killed").exists()
    assert result.log_evidence == plain.log_evidence
    assert result.failures == ()


@pytest.mark.filterwarnings("default")
def test_workers_of_a_dask_cluster_may_come_later():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install basq[dask])")
    options = {"n_workers": 0, "processes": False, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        timer = threading.Timer(1.0, cluster.scale, [2])
        timer.start()
        result = infer(lambda x: np.array([gauss(row) for row in x]), pool=client, vectorized=True)
        timer.join()
    assert result.n_evals == 48
    with pytest.raises(InputError, match=r"this Dask client has no connection \(it is closed\)"):
        infer(gauss, pool=client)


@pytest.mark.filterwarnings("default")
def test_ctrl_c_waits_for_the_calls_that_run_on_a_cluster():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install basq[dask])")
    begun, ended = [], []

    def presses(x):
        begun.append(x)
        if len(begun) >= 8 and begun[7] is x:  # one thread alone: a second Ctrl-C would leave at once
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.8)
        ended.append(x)
        return gauss(x)

    options = {"n_workers": 1, "processes": False, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        result = infer(presses, pool=client)
        assert result.message.startswith("Interrupted")
        assert 7 <= result.n_evals <= 12  # those that ran, perhaps those that were about to
        time.sleep(1.0)
        # Dask does not say what runs: a call that began in the moment of the interrupt may have been taken back
        assert result.n_evals <= len(ended) <= result.n_evals + 2


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("pool", [processes, standard_pool])
def test_a_pool_that_does_not_survive_its_worker_is_an_error_not_a_wait(pool, tmp_path):
    def dies(x):
        if x[0] > 1.5:
            os.kill(os.getpid(), signal.SIGKILL)
        return gauss(x)

    with pool() as given, pytest.raises(EvaluationError, match=r"died.*pool=8") as caught:
        infer(dies, pool=given, store=tmp_path / "run.sqlite")
    assert "the same command goes on from there" in "".join(caught.value.__notes__)
    # nothing is lost, and a pool that survives finishes the run
    before = len(caught.value.observations)
    result = infer(dies, pool=2, store=tmp_path / "run.sqlite")
    assert result.n_evals >= before


@pytest.mark.filterwarnings("default")
def test_a_call_of_a_pool_is_in_the_store_while_an_earlier_one_runs(tmp_path):
    path = tmp_path / "run.sqlite"

    def waits_for_the_others(x):
        mark = tmp_path / "first"
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return gauss(x)
        for _ in range(100):
            with Store(path) as store:
                if store.counts()["done"] == 31:
                    return gauss(x)
            time.sleep(0.1)
        return np.nan

    with standard_pool() as pool:
        assert infer(waits_for_the_others, pool=pool, store=path).n_failed == 0


def test_pools_that_cannot_be_used_say_so():
    with standard_pool() as pool:
        pool.close()
        with pytest.raises(EvaluationError, match=r"takes no more calls .*Pool not running"):
            infer(gauss, pool=pool)
    with pytest.raises(InputError, match="allowed are None, a number"):
        infer(gauss, pool=ThreadPoolExecutor)

    class Forgetful:
        def map(self, function, points):
            return list(map(function, points))[:-1]

    with pytest.raises(EvaluationError, match="gave no answer for 1 of its calls"):
        infer(gauss, pool=Forgetful())


def test_workers_that_live_on_keep_no_process_of_an_earlier_run():
    with ThreadPoolExecutor(1) as pool:  # as far as children are concerned, a worker elsewhere is such a thread
        for _ in range(3):
            outcomes = pool.submit(elsewhere, cloudpickle.dumps(Call(gauss, ("a",)))).result()
            assert outcomes[0].error is None
        children = [child for _, child in worker._CHILDREN.values()]
    assert len(children) == 1
    worker.forget(next(iter(worker._CHILDREN.values()))[0])
    assert not worker._CHILDREN


def elsewhere(payload):
    return worker.remote(uuid.uuid4().hex, payload, np.zeros((1, 1)), 10.0)


class Breaking(Executor):
    """An executor whose futures are all there when they are looked at: some calls, then it is broken."""

    def __init__(self, n_calls):
        self.left = n_calls

    def submit(self, function, *args):
        future = Future()
        self.left -= 1
        if self.left >= 0:
            future.set_result(function(*args))
        else:
            future.set_exception(BrokenExecutor("gone"))
        return future


def test_calls_that_finished_when_the_pool_broke_are_kept(tmp_path):
    with pytest.raises(EvaluationError, match="died and took the pool with it") as caught:
        infer(gauss, pool=Breaking(20), store=tmp_path / "run.sqlite")
    assert len(caught.value.observations) == 20


def test_calls_that_finished_when_a_pool_takes_no_retry_are_kept(tmp_path):
    class Closing(Breaking):
        def submit(self, function, *args):
            if self.left == 0:
                raise RuntimeError("shut down")
            return super().submit(function, *args)

    with pytest.raises(EvaluationError, match="takes no more calls") as caught:
        infer(lambda x: np.nan if x[0] > 2.0 else gauss(x), pool=Closing(32), retries=1)
    assert len(caught.value.observations) > 20


def test_mpi(tmp_path, plain):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed (pip install basq[mpi])")
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if mpiexec is None:
        pytest.skip("there is no mpiexec (pip install basq[mpi])")
    script = tmp_path / "model.py"
    script.write_text(
        textwrap.dedent(f"""
        import numpy as np, basq
        from mpi4py.futures import MPIPoolExecutor

        def gauss(x):
            return float(-0.5 * np.sum((np.asarray(x) - 0.3) ** 2) / 0.1)

        if __name__ == "__main__":
            with MPIPoolExecutor() as pool:
                result = basq.infer(gauss, {PRIOR!r}, pool=pool, store="run.sqlite", **{OPTIONS!r})
            print(repr(float(result.log_evidence)))
        """)
    )
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)]
    assert float(run(command, cwd=tmp_path)[0]) == plain.log_evidence
    with Store(tmp_path / "run.sqlite") as store:
        assert len({row["worker"] for row in store.rows()}) == 2
