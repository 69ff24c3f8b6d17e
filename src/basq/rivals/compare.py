"""Rival models run together: each next batch goes to the one whose calls settle the most."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from basq.errors import EvaluationError, InputError, StoreError
from basq.evaluation.crew import Crew, OnError
from basq.inference import staffed
from basq.method import Fit, Method
from basq.observations import Failure
from basq.prior import as_prior
from basq.results.result import Result
from basq.rivals.comparison import Comparison, as_prior_odds
from basq.rivals.standing import Standing, spread
from basq.run.arguments import as_budget, as_seed
from basq.run.interrupt import Interrupt
from basq.run.progress import shown
from basq.run.sampler import Points, Sampler
from basq.run.stopping import Stopping
from basq.types import is_number

IDLE = 0.05
"""Share of the largest part in the probabilities' variance below which a converged model is not to blame for it."""

LAGGING = 0.5
"""Share of the calls of the most worthy model below which another one comes first: the former may be beyond help."""


def compare(
    models: Mapping[str, Any],
    *,
    prior_odds: Mapping[str, float] | None = None,
    method: Method[Any] | str = "auto",
    batch_size: int = 16,
    max_evals: int | None = None,
    max_time: float | None = None,
    dprob: float = 0.05,
    dlogz: float = 0.1,
    vectorized: bool = False,
    pass_dict: bool = False,
    pool: Any = None,
    timeout: float | None = None,
    retries: int = 0,
    on_error: OnError = "record",
    store: str | os.PathLike[str] | None = None,
    seed: Any = None,
    progress: bool = True,
) -> Comparison:
    """Compare rival models by their evidence: those that have been run, and those that are run here.

    Models that have not been run share the calls. Each next batch goes to the one whose log-evidence contributes most
    to the uncertainty of the model probabilities, unless another that needs calls has had less than half as many; one
    that is out of the race gets no more. The comparison ends when all probabilities are known to ``dprob`` and the
    models still in the race have converged as far as that needs.

    Parameters
    ----------
    models : dict
        By name: a `Result`, the path of a store, a pair (log_likelihood, prior), or an object with these two
        attributes, such as the problems of `basq.problems`.
    prior_odds : dict, optional
        Positive numbers, relative to each other; one for models that are not named.
    max_evals : int, optional
        Most likelihood calls of all models together; by default 50 (d + 2) for each.
    max_time : float, optional
        Most seconds, looked at between batches.
    dprob : float
        Target standard deviation of the model probabilities.
    dlogz : float
        Target standard deviation of log Z for a model to count as converged.
    store : path, optional
        A folder with one SQLite file a model, made if it is missing; or a file name, to which the models' names are
        added. A comparison that is there already is taken up where it was left.
    method, batch_size, vectorized, pass_dict, pool, timeout, retries, on_error, seed, progress
        As in `infer`, for every model that is run.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, basq
    >>> prior = {"a": (-3, 3)}
    >>> models = {
    ...     "narrow": (lambda x: -0.5 * (x[0] / 0.1) ** 2, prior),
    ...     "wide": (lambda x: -0.5 * x[0] ** 2, prior),
    ... }
    >>> print(basq.compare(models, seed=1, progress=False).verdict)
    Positive evidence for wide against narrow (ln B = 2.30 ± 0.01).
    """
    if not isinstance(models, Mapping) or len(models) < 2 or not all(isinstance(n, str) and n for n in models):
        raise InputError("compare: give a dict of at least two models by name.")
    odds = as_prior_odds(prior_odds, tuple(models))
    if not (is_number(dprob) and dprob > 0.0):
        raise InputError(f"dprob={dprob!r}: give the standard deviation of the model probabilities to reach, above 0.")
    given = {name: known for name, model in models.items() if (known := _as_result(model)) is not None}
    todo = {name: _as_model(name, model) for name, model in models.items() if name not in given}
    if not todo:
        return Comparison(given, odds, f"{len(given)} runs with {sum(r.n_evals for r in given.values())} calls.")
    budget = sum(as_budget(None, prior) for _, prior in todo.values()) if max_evals is None else max_evals
    number, files = as_seed(seed), _files(store, list(todo))
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt.watched(stored=store is not None))
        teams = {
            name: stack.enter_context(
                staffed(
                    log_likelihood, prior, method=method, batch_size=batch_size, max_evals=budget, dlogz=dlogz,
                    vectorized=vectorized, pass_dict=pass_dict, pool=pool, timeout=timeout, retries=retries,
                    on_error=on_error, store=files[name], seed=_seed(number, name), interrupt=interrupt,
                )
            )
            for name, (log_likelihood, prior) in todo.items()
        }  # fmt: skip
        race = Race(teams, given, odds, Stopping(dlogz, budget, max_time), dprob)
        try:
            with shown(budget, race.n_done, progress) as view:
                for _, crew in teams.values():
                    crew.finished = view.finished
                for _ in race.run():
                    view.learned(race.n_done, race.news)
        except BaseException as error:
            with suppress(StoreError):  # which may be the error itself
                race.keep(error)
            raise
        return race.comparison(tuple(models), interrupted=interrupt())


class Race:
    """Models that share a budget of calls.

    Parameters
    ----------
    teams : dict of (Sampler, Crew)
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
        teams: dict[str, tuple[Sampler, Crew]],
        given: dict[str, Result],
        prior_odds: dict[str, float],
        stopping: Stopping,
        dprob: float,
    ) -> None:
        self.teams, self.given, self.odds, self.stopping, self.dprob = teams, given, prior_odds, stopping, dprob
        first = sum(sampler.run.design_size(0) for sampler, _ in teams.values())
        if stopping.max_evals < first:
            raise InputError(f"max_evals={stopping.max_evals}: a first look at all models takes {first} calls.")

    def asked(self, name: str) -> int:
        """Calls of a model, finished or not."""
        return self.teams[name][0].store.extent()[0]

    @property
    def n_done(self) -> int:
        """Calls that have ended, failed ones included."""
        counts = [sampler.store.counts() for sampler, _ in self.teams.values()]
        return sum(c["done"] + c["failed"] for c in counts)

    @property
    def n_left(self) -> int:
        return max(self.stopping.max_evals - sum(map(self.asked, self.teams)), 0)

    def run(self) -> Iterator[str]:
        """Yield the name of the model that has learned, batch after batch, until there is nothing to gain."""
        for name, (sampler, _) in self.teams.items():
            if not self._finish(name, sampler.pending()):  # what an interrupted run has left
                return
        while self.n_left and not self.stopping.out_of_time:
            chosen = self.choose()
            if chosen is None or not self._finish(chosen, self._next(chosen)):
                return
            yield chosen

    def _next(self, name: str) -> Points:
        """A model's next points: all of its first look, then a batch, as far as the calls go."""
        sampler, _ = self.teams[name]
        return sampler.choose(min(sampler.run.batch_size, self.n_left) if self.asked(name) else None)

    def _finish(self, name: str, points: Points) -> bool:
        """Evaluate points, and learn whatever has not been learned yet; False if the user has interrupted."""
        sampler, crew = self.teams[name]
        crew.start(points)
        try:
            if not crew.finish():
                return False
        except EvaluationError as error:
            error.args = (f"{name}: {error}",)  # which of the models it is
            raise
        sampler.learn()
        return True

    def choose(self) -> str | None:
        """The model whose next batch is worth most; None if all that matters is known."""
        unseen = [name for name, (sampler, _) in self.teams.items() if not sampler.has_learned]
        if unseen:
            return min(unseen, key=self.asked)
        standing = self.standing()
        gains, unsure = standing.gain(), self._unsure(standing)
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

    def _unsure(self, standing: Standing) -> bool:
        return bool(standing.probability_std.max() > self.dprob)

    def _converged(self, name: str, dlogz: float) -> bool:
        return self.teams[name][0].known.fitted.converged(dlogz)[0]

    def _closed(self, name: str) -> bool:
        """Whether a model gets no more calls whatever happens: it was given, or nearly all of its calls fail."""
        if name in self.given:
            return True
        verdict = self.teams[name][0].verdict
        return verdict.stop and not verdict.converged and self.n_left > 0  # it stops where no call is left, too

    def standing(self) -> Standing:
        """How the models stand now."""
        log_evidence, errors = [], []
        for name in self.odds:
            known: Result | Fit
            if name in self.given:
                known = self.given[name]
                converged, seen = known.converged, known.observations
            else:
                state = self.teams[name][0].known
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
        for name, (sampler, crew) in self.teams.items():
            crew.salvage()
            ended = "Ended with the comparison" if in_race.get(name, True) else "Out of the race"
            results[name] = _result(sampler, "Interrupted" if interrupted else ended, fresh=interrupted)
        return Comparison({n: results[n] for n in names}, self.odds, self._message(interrupted))

    @property
    def _all_known(self) -> bool:
        return all(sampler.has_learned for sampler, _ in self.teams.values())

    def _message(self, interrupted: bool) -> str:
        calls = f"{self.n_done} calls"
        if interrupted:
            return f"Interrupted after {calls}."
        if self.choose() is None:
            standing = self.standing()
            left = [n for n, racing in zip(self.odds, standing.in_race, strict=True) if racing and self._closed(n)]
            if left and self._unsure(standing):
                return f"{calls}: the errors that are left are those of {', '.join(left)}, not given any more calls."
            return f"{calls}: more would not change the probabilities by more than {self.dprob:g}."
        if self.n_left == 0:
            return f"All {self.stopping.max_evals} calls are spent, and the probabilities are not as sure as asked for."
        return f"The time is over after {calls}, and the probabilities are not as sure as asked for."

    def keep(self, error: BaseException) -> None:
        """Hang everything that was paid for on an error that leaves the race."""
        seen = error.observations = {}  # type: ignore[attr-defined]  # whatever error it is
        error.add_note("The evaluations of every model are in this error's attribute `observations`.")
        for name, (sampler, crew) in self.teams.items():
            crew.salvage()
            seen[name] = sampler.observations()
            if sampler.store.path is not None:
                error.add_note(f"The evaluations of {name} are in {sampler.store.path}: the same command goes on.")


def _as_result(model: Any) -> Result | None:
    """A finished run: its result, or the store that holds it; None for a model that has to be run."""
    if isinstance(model, Result):
        return model
    if isinstance(model, str | os.PathLike):
        sampler = Sampler.open(model)
        with sampler.store:
            return sampler.result()
    return None


def _result(sampler: Sampler, reason: str, *, fresh: bool) -> Result:
    """What is known of a model in the end; that may be nothing, which is no reason to lose what the others know."""
    if len(sampler.observations()):
        return sampler.result(reason=reason, fresh=fresh)
    failures = tuple(map(Failure.of, sampler.store.rows("state = 'failed'")))
    return Result.nothing(sampler.run.prior, f"{reason}: no call has succeeded yet.", failures)


def _as_model(name: str, model: Any) -> tuple[Any, Any]:
    """Log-likelihood and prior of a model that has to be run."""
    if isinstance(model, tuple) and len(model) == 2:
        log_likelihood, prior = model
    elif hasattr(model, "log_likelihood") and hasattr(model, "prior"):
        log_likelihood, prior = model.log_likelihood, model.prior
    else:
        raise InputError(
            f"compare: model {name!r} is {type(model).__name__}; give a Result, the path of a store, a pair "
            "(log_likelihood, prior), or an object with these two attributes."
        )
    if not callable(log_likelihood):
        raise InputError(f"compare: the log-likelihood of {name!r} cannot be called.")
    return log_likelihood, as_prior(prior)


def _seed(number: int | None, name: str) -> int | None:
    """Every model its own stream, whichever the others are."""
    if number is None:
        return None
    return int(np.random.SeedSequence(number, spawn_key=tuple(name.encode())).generate_state(1, np.uint64)[0])


def _files(store: str | os.PathLike[str] | None, names: list[str]) -> dict[str, Path | None]:
    """Where each model's calls are kept."""
    if store is None:
        return dict.fromkeys(names)
    if not isinstance(store, str | os.PathLike):
        raise StoreError(f"store={store!r}: give the name of a folder or of a file, or None.")
    path = Path(store)
    safe = {name: "".join(c if c.isalnum() or c in "-_.+" else "_" for c in name) for name in names}
    if len(set(safe.values())) < len(names):
        raise InputError(f"store: the names {', '.join(names)} are too much alike for file names.")
    if path.suffix and not path.is_dir():
        return {name: path.with_name(f"{path.stem}-{safe[name]}{path.suffix}") for name in names}
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store={str(store)!r}: the folder cannot be made: {error}.") from error
    return {name: path / f"{safe[name]}.sqlite" for name in names}
