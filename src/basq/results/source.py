"""Asking a result again: another likelihood, other data, other priors, and not one new call."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from basq.errors import InputError
from basq.results.sensitivity import Sensitivity
from basq.settings import CERTIFY, RETRIES, Shown

if TYPE_CHECKING:
    from basq.results.result import Result


class Source(Protocol):
    """Where a result comes from: what is needed to make another one of the same calls. It can be pickled."""

    def again(
        self,
        *,
        log_likelihood: Any,
        cheap: Any,
        prior: Any,
        model: Any,
        max_evals: int | None,
        store: Any,
        **going: Any,
    ) -> "Result":
        """The answer under these changes; see `Askable.again`."""
        ...

    def certify(self, result: "Result", log_likelihood: Any, **options: Any) -> "Result":
        """The result with its certificate; see `Askable.certify`."""
        ...


class Askable:
    """What a result can be asked once more, and what of it is needed for that."""

    source: Source | None

    def again(
        self,
        *,
        log_likelihood: Callable[..., Any] | None = None,
        cheap: Any = None,
        prior: Any = None,
        model: Any = None,
        max_evals: int | None = None,
        pool: Any = None,
        timeout: float | None = None,
        retries: int = RETRIES,
        store: str | os.PathLike[str] | None = None,
        vectorized: bool = False,
        pass_dict: bool = False,
        progress: Shown = True,
    ) -> "Result":
        """The answer under another likelihood or other priors, from what was evaluated already.

        Nothing is simulated anew. The calls are learned from in their old order, so that every batch tests the
        surrogate of those before it, and the verdict is as honest as that of a run of its own. Where the new posterior
        lies outside what was explored, ``why`` says so, and about how many calls are missing.

        Parameters
        ----------
        log_likelihood : callable, optional
            ``log_likelihood(output, **cheap)``, another noise model or one of other data: judges every stored output.
            Only for runs of a `Model`; for others, the function that has been run, to go on with.
        cheap : Prior or dict, optional
            All cheap parameters of the new likelihood; ``{}`` for none. Those of the run by default.
        prior : Prior or dict, optional
            Of the expensive parameters. A dict may name some of them, and the priors of the others stay. Calls outside
            the new support are left out.
        model : Model, optional
            The model of the run, or another one with the same simulator, where this result does not know it: read from
            a store, for example.
        max_evals : int, optional
            Go on, with new calls, up to so many in all; those there are count.
        pool, timeout, retries, store, vectorized, pass_dict, progress
            Of going on, as in `basq.infer`; a store is written in any case if it is given.

        Raises
        ------
        InputError
            If names do not agree, or something would have to be called that is not known.
        """
        if self.source is None:
            raise InputError("This result has no calls that it could be asked again from.")
        return self.source.again(
            log_likelihood=log_likelihood, cheap=cheap, prior=prior, model=model, max_evals=max_evals, pool=pool,
            timeout=timeout, retries=retries, store=store, vectorized=vectorized, pass_dict=pass_dict,
            progress=progress,
        )  # fmt: skip

    def certify(
        self,
        log_likelihood: Any = None,
        n: int = CERTIFY,
        *,
        error: float | None = None,
        pool: Any = None,
        timeout: float | None = None,
        retries: int = RETRIES,
        store: str | os.PathLike[str] | None = None,
        vectorized: bool = False,
        pass_dict: bool = False,
        progress: Shown = True,
    ) -> "Result":
        """The result with a certificate: an estimate of log Z that does not rest on the surrogate.

        Points are drawn independently of all that was evaluated: some from the surrogate's posterior, most from
        broader laws and the prior, where it may be wrong. Their likelihoods give an unbiased estimate, with the
        surrogate as control variate. ``result.certificate`` says whether it certifies the answer, contradicts it or
        cannot decide; where it decides, ``log_evidence`` and ``log_evidence_std`` are its own.

        Parameters
        ----------
        log_likelihood : callable or Model
            The function of the run; a result of this session knows its `Model` itself.
        n : int
            Calls; the first repeats one of the run, to see whether the likelihood is still the same.
        error : float, optional
            Stop earlier, once the standard deviation of log Z is below this.
        store : path, optional
            The store of the run, which the calls are written to; a run that goes on from there learns from them.
        pool, timeout, retries, vectorized, pass_dict, progress
            As in `basq.infer`.

        Raises
        ------
        EvaluationError
            If the likelihood is not the one of the run any more.
        """
        if self.source is None:
            raise InputError("This result has no calls that it could be certified with.")
        return self.source.certify(
            self,  # type: ignore[arg-type]  # which every result is
            log_likelihood, n=n, error=error, pool=pool, timeout=timeout, retries=retries, store=store,
            vectorized=vectorized, pass_dict=pass_dict, progress=progress,
        )  # fmt: skip

    def sensitivity(self, family: Mapping[str, Any]) -> Sensitivity:
        """How evidence and posterior depend on the prior, or on the noise model; nothing is called.

        Parameters
        ----------
        family : dict
            ``{label: changes}`` with the changes as in `again`, such as ``{"wide": {"prior": {"k": (0, 9)}}}``; or
            ``{parameter: [priors]}``, with other priors of one parameter, such as ``{"k": [(0, 3), (0, 9)]}``.

        Examples
        --------
        ``print(result.sensitivity({"k": [(0, 3), (0, 9)]}))`` shows log Z, log Bayes factors and posterior means.
        """
        return Sensitivity.of(self, family)
