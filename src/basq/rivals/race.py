"""Rival models that share a budget: each next call goes to the one whose calls settle the most."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from basq.errors import EvaluationError, InputError
from basq.method import Fit
from basq.results.result import Result
from basq.rivals.comparison import Comparison
from basq.rivals.shared import Shared
from basq.rivals.standing import Standing, spread
from basq.run.driver import Driver
from basq.run.sampler import Sampler
from basq.run.stopping import Stopping
from basq.status import Status

IDLE = 0.05
"""Share of the largest part in the probabilities' variance below which a converged model is not to blame for it."""

LAGGING = 0.5
"""Share of the calls of the most worthy model below which another one comes first: the former may be beyond help."""

PATIENCE = 0.01
"""Seconds to wait for the calls of one model before looking at those of the next, where several are under way."""


class Race:
    """Models that share a budget of calls.

    Parameters
    ----------
    drivers : dict of Driver
        The models that run.
    given : dict of Result
        Those that have been run.
    prior_odds : dict of float
    stopping : Stopping
        For all of them together; its ``dlogz`` is for each.
    dprob : float
    """

    def __init__(
        self,
        drivers: dict[str, Driver],
        given: dict[str, Result],
        prior_odds: dict[str, float],
        stopping: Stopping,
        dprob: float,
    ) -> None:
        self.drivers, self.given, self.odds, self.stopping, self.dprob = drivers, given, prior_odds, stopping, dprob
        self.shared = Shared.of(drivers)
        first = sum(driver.sampler.n_given for driver in drivers.values())
        for group in self.shared.groups:  # the first look of one is that of all
            sampler = drivers[group[0]].sampler
            first += sampler.recipe.design_size(sampler.n_given)
        if stopping.max_evals < first:
            raise InputError(f"max_evals={stopping.max_evals}: a first look at all models takes {first} calls.")

    def asked(self, name: str) -> int:
        """Calls of a model, finished or not, those simulated for a rival included."""
        return self.drivers[name].sampler.store.n_calls

    @property
    def n_done(self) -> int:
        """Calls that have ended, failed ones included."""
        counts = [driver.sampler.store.counts() for driver in self.drivers.values()]
        return sum(c["done"] + c["failed"] for c in counts) - self._n_shared

    @property
    def n_left(self) -> int:
        return max(self.stopping.max_evals - sum(map(self.asked, self.drivers)) + self._n_shared, 0)

    @property
    def _n_shared(self) -> int:
        """Calls that were simulated for a rival, and paid for there."""
        return sum(driver.sampler.store.n_shared for driver in self.drivers.values())

    # --- the two ways to run ------------------------------------------------------------------------------------------

    def run(self, *, asynchronous: bool = False) -> Iterator[str]:
        """Yield the name of the model that has learned, batch after batch, until there is nothing to gain."""
        return self._as_workers_come_free() if asynchronous else self._batch_by_batch()

    def _batch_by_batch(self) -> Iterator[str]:
        """One model after the other: its next batch, all of it, and what that teaches."""
        for name in self.drivers:
            self._resume(name)
            if not self._finish(name):
                return
            yield from self._learn([name])
        while self.n_left and not self.stopping.out_of_time:
            chosen = self.choose()
            if chosen is None:
                return
            sampler = self.drivers[chosen].sampler
            self._start(chosen, sampler.n_first or sampler.recipe.batch_size)
            if not self._finish(chosen):
                return
            yield from self._learn([chosen])

    def _as_workers_come_free(self) -> Iterator[str]:
        """All models at once: as soon as a worker is free, a point of the one that is worth most by then.

        There are never more calls under way than workers: the models do not take the machine from each other. A model
        learns from a batch at least, in the end from what there is.
        """
        for name in self.drivers:
            self._resume(name)
            if not self._wait(0):
                return
        most = 0
        while self._wait(most):
            yield from self._learn(list(self.drivers), batches=True)
            chosen = self.choose() if self.n_left and not self.stopping.out_of_time else None
            if chosen is not None:
                self._start(chosen, max(self.n_workers - self.n_under_way, 1))
                most = self.n_workers - 1
            elif self.n_under_way:
                most = self.n_under_way - 1  # what comes in next may change that
            else:
                learned = list(self._learn(list(self.drivers)))
                yield from learned
                if not learned:
                    return

    # --- their parts --------------------------------------------------------------------------------------------------

    def _resume(self, name: str) -> None:
        """Hand over the calls of a model that an interrupted run has left."""
        driver = self.drivers[name]
        driver.evaluator.start(driver.sampler.pending())

    def _start(self, name: str, n: int) -> None:
        """Hand over a model's next n points, as far as the calls go."""
        driver = self.drivers[name]
        driver.evaluator.start(driver.sampler.choose(min(n, self.n_left)))

    def _finish(self, name: str) -> bool:
        """Wait for all calls of a model; False if the user has interrupted."""
        with _named(name):
            return self.drivers[name].evaluator.finish()

    def _wait(self, most: int) -> bool:
        """Wait until at most so many calls of all models are under way; False if the user has interrupted."""
        while self.n_under_way > most and not self.interrupted:
            for name, driver in self.drivers.items():
                if driver.evaluator.outstanding:
                    with _named(name):
                        driver.evaluator.wait(PATIENCE)
        if self.interrupted:
            for name in self.drivers:
                self._finish(name)
        return not self.interrupted

    def _learn(self, names: list[str], *, batches: bool = False) -> Iterator[str]:
        """Have models learn what they have not learned yet, or only what makes a batch: the names of those that did."""
        reached = [other for name in names for other in self.shared.pass_on(name)]
        for name in dict.fromkeys([*names, *reached]):
            sampler = self.drivers[name].sampler
            if sampler.learn(at_least=sampler.enough if batches else 1):
                yield name

    @property
    def n_workers(self) -> int:
        return max(driver.evaluator.n_workers for driver in self.drivers.values())

    @property
    def n_under_way(self) -> int:
        return sum(driver.evaluator.outstanding for driver in self.drivers.values())

    @property
    def interrupted(self) -> bool:
        return any(driver.evaluator.interrupted() for driver in self.drivers.values())

    # --- which model is worth most ------------------------------------------------------------------------------------

    def choose(self) -> str | None:
        """The model whose next calls are worth most; None if all that matters is known."""
        unseen = [name for name, driver in self.drivers.items() if not driver.sampler.has_learned]
        if unseen:
            return min(unseen, key=self.asked)
        standing = self.standing()
        gains, unsure = standing.gain(), not standing.known_to(self.dprob)
        blame = IDLE * gains[standing.known].max(initial=0.0)
        worth = {}
        for name, in_race, p, gain in zip(self.odds, standing.in_race, standing.probability, gains, strict=True):
            if self._closed(name) or not in_race:
                continue
            needed = max(self.stopping.dlogz, 0.5 * self.dprob / max(p * (1.0 - p), 1e-9))
            if not self._converged(name, needed) or (unsure and gain > blame):
                worth[name] = gain, p
        if not worth:
            return None
        first, behind = max(worth, key=lambda name: worth[name]), min(worth, key=self.asked)
        return behind if self.asked(behind) < LAGGING * self.asked(first) else first

    def _converged(self, name: str, dlogz: float) -> bool:
        return self.drivers[name].sampler.known.fitted.converged(dlogz)[0]

    def _closed(self, name: str) -> bool:
        """Whether a model gets no more calls whatever happens: it was given, or nearly all of its calls fail."""
        return name in self.given or self.drivers[name].sampler.verdict.status is Status.FAILED

    def standing(self) -> Standing:
        """How the models stand now."""
        log_evidence, errors = [], []
        for name in self.odds:
            known: Result | Fit
            if name in self.given:
                known = self.given[name]
                converged, seen = known.converged, known.observations
            else:
                state = self.drivers[name].sampler.known
                known, seen, converged = state.fitted, state.observations, self._converged(name, self.stopping.dlogz)
            log_evidence.append(known.log_evidence)
            errors.append(spread(known.log_evidence_std, converged, seen.log_values, seen.u.shape[1]))
        return Standing(np.array(log_evidence), np.array(errors), np.log(list(self.odds.values())))

    @property
    def news(self) -> str:
        """The models' probabilities, in a few words."""
        if not self._all_known:
            return "a first look at every model"
        standing = self.standing()
        figures = zip(self.odds, standing.probability, standing.probability_std, strict=True)
        return ", ".join(f"{name} {p:.3f} ± {sd:.3f}" for name, p, sd in figures)

    def comparison(self, names: tuple[str, ...], *, interrupted: bool) -> Comparison:
        """What is known in the end."""
        results = dict(self.given)
        in_race = dict(zip(self.odds, self.standing().in_race, strict=True)) if self._all_known else {}
        for name, driver in self.drivers.items():
            ended = Status.ENDED if in_race.get(name, True) else Status.OUT
            results[name] = _result(driver.sampler, Status.INTERRUPTED if interrupted else ended, fresh=interrupted)
        return Comparison({n: results[n] for n in names}, self.odds, *self._outcome(interrupted))

    @property
    def _all_known(self) -> bool:
        return all(driver.sampler.has_learned for driver in self.drivers.values())

    def _outcome(self, interrupted: bool) -> tuple[Status, str]:
        """How the comparison has ended, and what to say about it."""
        calls = f"{self.n_done} calls"
        if interrupted:
            return Status.INTERRUPTED, f"Interrupted after {calls}."
        if self.choose() is None:
            standing = self.standing()
            left = [n for n, racing in zip(self.odds, standing.in_race, strict=True) if racing and self._closed(n)]
            if left and not standing.known_to(self.dprob):
                whose = ", ".join(left)
                said = f"{calls}: the errors that are left are those of {whose}, not given any more calls."
                return Status.NOT_CONVERGED, said
            return Status.CONVERGED, f"{calls}: more would not change the probabilities by more than {self.dprob:g}."
        unsure = "and the probabilities are not as sure as asked for"
        if self.n_left == 0:
            return Status.NOT_CONVERGED, f"All {self.stopping.max_evals} calls are spent, {unsure}."
        return Status.NOT_CONVERGED, f"The time is over after {calls}, {unsure}."

    def keep(self, error: BaseException) -> None:
        """Hang everything that was paid for on an error that leaves the race."""
        seen = error.observations = {}  # type: ignore[attr-defined]  # whatever error it is
        error.add_note("The evaluations of every model are in this error's attribute `observations`.")
        for name, driver in self.drivers.items():
            seen[name] = driver.rescue(error)
            if driver.sampler.store.path is not None:
                path = driver.sampler.store.path
                error.add_note(f"The evaluations of {name} are in {path}: the same command goes on.")


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say in errors of calls which of the models it is."""
    try:
        yield
    except EvaluationError as error:
        error.args = (f"{name}: {error}",)
        raise


def _result(sampler: Sampler, ended: Status, *, fresh: bool) -> Result:
    """What is known of a model in the end; that may be nothing, which is no reason to lose what the others know."""
    if len(sampler.observations()):
        found = sampler.result(ended=ended, fresh=fresh)
        sampler.keep(found)
        return found
    return Result.nothing(sampler.recipe.prior, ended, "no call has succeeded yet", sampler.store.failures())
