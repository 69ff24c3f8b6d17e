"""Faults injected into whole runs: whether a value is ever wrong, lost, waited for in vain or answered by a traceback.

    python -m benchmarks.faults                 # thousands of faults, in pools of every kind (an hour at most)
    python -m benchmarks.faults --minutes 20    # as many runs as that allows
    python -m benchmarks.faults --quick         # a few runs (minutes)

The log-likelihood is known in closed form, and writes down every value that it returns; at many points something goes
wrong instead: it raises, returns what is no number, forks, hangs, crashes, leaves simulators behind. Drivers are
killed, asked to end, robbed of their store or of room for it; then the same command goes on. After each life of a
driver, its store is compared with what was written down:

- a value at the wrong point is one that differs from the closed form at the point that it is stored with;
- a lost value was returned and is not in the store, beyond one for each worker of a driver that was killed;
- a hang is a driver that does not end in time;
- a raw traceback is an exception that is no `BasqError`, or one in a thread.

The exit code is 1 if there is any of these. Each run is a row of ``benchmarks/results/faults.csv`` (``--quick``: of
``faults-quick.csv``, here), and is not made again while it is there: delete the file to begin anew.
"""

import argparse
import csv
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import cloudpickle

import basq
from basq.evaluation import rest
from basq.evaluation.store import Store
from benchmarks import faulty
from benchmarks.faulty import Faulty, FaultyMany, truth

cloudpickle.register_pickle_by_value(faulty)  # workers elsewhere cannot import it

RESULTS = Path(__file__).parent / "results" / "faults.csv"
PRIOR = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
WORKERS = 2
BATCH_SIZE, QUICK = 64, 16
LIMIT = 900.0
"""Seconds that one life of a driver may take, also on a machine that does much else."""
TIMEOUT = 3.0
"""Seconds that a call may take where there is a time limit."""


# --- one life of a driver ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """A run and what goes wrong in it.

    Attributes
    ----------
    pool : str
    kinds : tuple of str
        Of faults in calls.
    strike : str
        What happens to the driver: nothing, a signal, or to its store.
    n_strikes : int
    share : float
        Of the points at which something goes wrong.
    """

    pool: str
    kinds: tuple[str, ...]
    seed: int
    asynchronous: bool = False
    vectorized: bool = False
    strike: str = ""
    n_strikes: int = 0
    share: float = 0.5


@contextmanager
def pool_of(name: str) -> Iterator[Any]:
    """A pool of this name."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        if name == "threads":
            yield stack.enter_context(ThreadPoolExecutor(WORKERS))
        elif name == "executor":
            yield stack.enter_context(ProcessPoolExecutor(WORKERS, mp_context=spawn))
        elif name == "multiprocessing":
            yield stack.enter_context(spawn.Pool(WORKERS))
        elif name == "dask":
            from distributed import Client, LocalCluster

            cluster = stack.enter_context(
                LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, silence_logs=50)
            )
            yield stack.enter_context(Client(cluster))
        elif name == "ray":
            import ray

            ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            stack.callback(ray.shutdown)
            yield ray
        elif name == "mpi":
            from mpi4py.futures import MPIPoolExecutor

            yield stack.enter_context(MPIPoolExecutor())
        else:
            yield {"here": None, "processes": WORKERS, "map": Mapper()}[name]


class Mapper:
    """Something that has a map and nothing else."""

    def map(self, function: Callable[..., Any], points: list[Any]) -> list[Any]:
        return list(map(function, points))


def live(spec: dict[str, Any]) -> None:
    """Run in this process, and say how it ended as the last line."""
    scenario = Scenario(**spec["scenario"])
    function = (FaultyMany if scenario.vectorized else Faulty)(
        spec["log"], list(scenario.kinds), scenario.share, scenario.seed
    )
    rest.ROOM = 1.0
    try:
        with pool_of(scenario.pool) as pool:
            function.note("up", os.getpid())
            basq.infer(
                function, PRIOR, pool=pool, store=spec["store"], seed=scenario.seed, dlogz=0.0,
                batch_size=spec["batch_size"], max_evals=3 * spec["batch_size"],
                asynchronous=scenario.asynchronous, vectorized=scenario.vectorized,
                timeout=TIMEOUT if "hang" in scenario.kinds else None, progress=False,
                callback=striker(scenario.strike if spec["strikes"] else "", Path(spec["store"])),
            )  # fmt: skip
        said = "a result"
    except basq.BasqError as error:
        said = f"BasqError: {str(error)[:300]}"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        said = f"raw: {type(error).__name__}: {str(error)[:300]}"
    function.note("ended", said)


def striker(what: str, store: Path) -> Callable[[Any], None]:
    """What happens to the store after the first batch."""

    def strike(_: Any) -> None:
        if what == "deletion":
            store.unlink(missing_ok=True)
        elif what == "full disk":
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (store.stat().st_size + 4096, hard))

    return strike


# --- all of them ------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What was counted in the runs of a pool."""

    runs: int = 0
    faults: int = 0
    values: int = 0
    wrong: int = 0
    lost: int = 0
    hangs: int = 0
    raw: int = 0


class Run:
    """One run, life after life, compared with what its function has written down."""

    def __init__(self, scenario: Scenario, folder: Path, batch_size: int) -> None:
        self.scenario, self.tally = scenario, Tally(runs=1)
        self.store, self.log = folder / "run.sqlite", folder / "log"
        self.folder = folder
        self.spec = {"scenario": asdict(scenario), "store": str(self.store), "log": str(self.log),
                     "batch_size": batch_size}  # fmt: skip
        self.rng = random.Random(scenario.seed)

    def complete(self) -> Tally:
        """Live until it ends by itself, or too often."""
        for life in range(self.scenario.n_strikes + 1 + 12 * ("die" in self.scenario.kinds)):
            strikes = life < self.scenario.n_strikes
            killed = self._live(strikes)
            self._compare(killed)
            self.tally.faults += strikes
            if not strikes and not killed:
                break
        self.tally.faults += sum(line[0] == "fault" for line in self._lines())
        return self.tally

    def _lines(self) -> list[list[Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def _live(self, strikes: bool) -> bool:
        """One life of the driver; whether it died before it could put things in order."""
        n_before = len(self._lines())
        command = [sys.executable, "-m", "benchmarks.faults", "--live", json.dumps(self.spec | {"strikes": strikes})]
        if self.scenario.pool == "mpi":
            mpiexec = str(Path(sys.executable).with_name("mpiexec"))
            command = [mpiexec, "-n", str(WORKERS + 1), sys.executable, "-m", "mpi4py.futures", *command[1:]]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(self.folder),
            "BASQ_FAULTS": str(self.folder),
        }
        out = (self.folder / "out").open("a+b")
        with subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True) as driver:
            try:
                if strikes and self.scenario.strike.startswith("SIG"):
                    self._strike(driver, n_before)
                driver.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.tally.hangs += 1
            end_all(str(self.folder))
        out.close()
        ended = [line[1] for line in self._lines()[n_before:] if line[0] == "ended"]
        self.tally.raw += any(said.startswith("raw") for said in ended)
        said = (self.folder / "out").read_text(errors="replace")
        self.tally.raw += said.count("Exception in thread") + (not ended and driver.returncode == 1)
        (self.folder / "out").unlink()
        return not ended and driver.returncode not in (129, 130, 143)

    def _strike(self, driver: "subprocess.Popen[bytes]", n_before: int) -> None:
        """Send the driver a signal, some time after it is up."""
        end = time.monotonic() + LIMIT
        while not self._lines()[n_before + 1 :] and driver.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(self.rng.uniform(0.0, 3.0))
        if driver.poll() is None:
            driver.send_signal(getattr(signal, self.scenario.strike))

    def _compare(self, killed: bool) -> None:
        """Look for values that are wrong, and for those that are missing."""
        returned = {tuple(line[1]) for line in self._lines() if line[0] == "value"}
        kept = [*([self.store] if self.store.exists() else []), *self.folder.glob("run-*.sqlite")]
        if self.store.exists():
            for second in self.folder.glob(f"run-*{rest.ENDING}"):
                subprocess.run([Path(sys.executable).with_name("basq"), "tell", self.store, second], check=False)
                second.unlink()
        found = set()
        for path in kept:
            try:
                with Store(path) as store:
                    done = store.done()
            except basq.StoreError:  # killed before there was a run in it
                continue
            self.tally.wrong += sum(bool(truth(x) != v) for x, v in zip(done.x, done.log_likelihood, strict=True))
            found |= {tuple(x) for x in done.x.tolist()}
        lost = len(returned - found)
        self.tally.lost += max(lost - (WORKERS if killed else 0), 0)
        self.tally.values = max(self.tally.values, len(found))


def end_all(mark: str) -> None:
    """Kill what a run has left: workers of a pool of the user's, whose driver was killed, are not ours to end."""
    wanted = f"\0BASQ_FAULTS={mark}\0".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if wanted in b"\0" + Path(f"/proc/{name}/environ").read_bytes():
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue


SURVIVING = ("processes", "dask", "ray")
"""Pools that a worker may die in."""
ALL = ("here", "processes", "threads", "executor", "multiprocessing", "map", "dask", "ray", "mpi")
BY_SIGNAL = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")


def scenarios(*, quick: bool) -> Iterator[Scenario]:
    """All runs, in an order in which every prefix has a bit of everything."""
    values = ("raise", "give", "odd", "go on")
    pools = ("here", "processes", "threads") if quick else ALL
    for seed in range(1 if quick else 3):
        for pool in pools:
            forks = pool not in ("dask", "ray", "mpi")  # whose libraries do not bear a fork of theirs
            kinds = values if forks else ("raise", "give", "odd")
            yield Scenario(pool, kinds, 10 * seed + 1, asynchronous=seed == 1)
        for pool in ("processes", "executor") if not quick else ("processes",):
            yield Scenario(pool, ("raise", "give"), 10 * seed + 2, vectorized=True)
        for pool in ("here", "processes", "threads") if not quick else ("processes",):
            for number, name in enumerate(BY_SIGNAL):
                yield Scenario(pool, values, 10 * seed + 5 + number, asynchronous=seed == 2, strike=name, n_strikes=2)
        for pool in ("here", "processes"):
            for what in ("deletion", "full disk"):
                yield Scenario(pool, values, 10 * seed + 9, strike=what, n_strikes=1)
        yield Scenario("processes", (*values, "die"), 10 * seed + 3, asynchronous=seed == 1)
        yield Scenario("processes", ("die", "hang"), 10 * seed + 4, asynchronous=seed == 0, share=0.1)
        if not quick:
            # each point kills eight workers: Dask calls it again elsewhere, and so do we
            yield Scenario("dask", ("die",), 10 * seed + 3, asynchronous=seed == 1, share=0.03)
            yield Scenario("multiprocessing", values, 10 * seed + 5, strike="SIGKILL", n_strikes=2, asynchronous=True)
            yield Scenario("executor", values, 10 * seed + 5, strike="SIGTERM", n_strikes=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few runs")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no run after so many (%(default)g)")
    parser.add_argument("--only", help="runs of this pool")
    parser.add_argument("--live", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.live:
        live(json.loads(options.live))
        return
    begun, path = time.monotonic(), Path("faults-quick.csv") if options.quick else RESULTS
    known = rows(path)
    for scenario in scenarios(quick=options.quick):
        name = {field: str(value) for field, value in asdict(scenario).items()}
        if any(name.items() <= row.items() for row in known) or options.only not in (None, scenario.pool):
            continue
        if time.monotonic() - begun > 60.0 * options.minutes:
            print(f"{options.minutes:g} minutes are over")
            break
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            found = Run(scenario, Path(folder), QUICK if options.quick else BATCH_SIZE).complete()
        add(path, name | asdict(found))
        print(f"{time.monotonic() - begun:6.0f} s  {scenario.pool:<16}{scenario.strike:<10}{found}", flush=True)
    sys.exit(report(rows(path)))


def rows(path: Path) -> list[dict[str, str]]:
    """The runs of a file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, row: dict[str, Any]) -> None:
    """Add a run to a file."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row)
        if new:
            writer.writeheader()
        writer.writerow(row)


def report(runs: list[dict[str, str]]) -> int:
    """Print the sums by pool; the exit code."""
    names = [field.name for field in fields(Tally)]
    pools = list(dict.fromkeys(run["pool"] for run in runs))
    print("\n| pool | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for pool in [*pools, "all"]:
        sums = [sum(int(run[name]) for run in runs if pool in (run["pool"], "all")) for name in names]
        print(f"| {pool} | " + " | ".join(map(str, sums)) + " |")
    total = dict(zip(names, sums, strict=True))
    print(f"\nvalues at the wrong point: {total['wrong']}")
    print(f"returned values lost beyond those in flight: {total['lost']}")
    print(f"hangs: {total['hangs']}")
    print(f"raw tracebacks: {total['raw']}")
    return int(any(total[name] for name in ("wrong", "lost", "hangs", "raw")))


if __name__ == "__main__":
    main()
