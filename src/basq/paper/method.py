"""The paper's method, with every switch of its ablations (Adachi et al., NeurIPS 2022)."""

from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np

from basq.errors import InputError
from basq.gp.gp import GP
from basq.gp.kernels import KernelFactory, KernelName
from basq.gp.kernels.base import Differentiable, Spectral
from basq.method import Batch
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.stopwatch import Stopwatch
from basq.observations import Observations
from basq.paper.fitted import PaperFit, curvature, integrate
from basq.paper.fourier import fourier_features
from basq.paper.local_penalisation import local_penalisation
from basq.paper.models import Model, ModelName, Surrogate, Vanilla
from basq.paper.options import as_kernel, as_model, as_proposal, check_choice, shown
from basq.paper.proposals import SUPERSAMPLES, Candidates, Proposal, ProposalName, over_prior, propose, resample
from basq.paper.target import Target
from basq.paper.training import Data, Training
from basq.prior import Prior
from basq.selection.herding import herd
from basq.selection.nystrom import Features, nystrom_features
from basq.selection.recombination import recombine
from basq.types import FloatArray, IntArray, is_number

MeanName = Literal["zero", "constant"]
SelectionName = Literal["recombination", "herding", "local-penalisation", "samples"]
RecombinationName = Literal["tree", "lp"]
TestFunctions = Literal["nystrom", "nystrom-exact", "fourier"]
InitialName = Literal["even", "recombination"]

MIN_CANDIDATES, MIN_NYSTROM = 20_000, 200
MAX_CANDIDATES, MAX_NYSTROM = 200_000, 2_000
PROPORTION = 100
"""N over M in the paper."""
N_EMPIRICAL = 2**14
"""Points of the empirical measure where no closed form exists."""


@dataclass(frozen=True)
class Paper:
    """Configuration of the paper's method: ``basq.infer(..., method=basq.Paper())``.

    The defaults are the paper's own. Its zero mean and WSABI-L's linearisation bias the evidence low; a constant mean
    repairs most of it (``benchmarks/paper_method.py`` measures all configurations). docs/method.md lists where they
    depart from it, each with the switch that goes back.

    Attributes
    ----------
    model : "wsabi-l", "wsabi-m", "vanilla", "bbq" or Model
        A model of your own is a subclass of ``basq.paper.Surrogate`` with a class method ``fit``.
    mean : "zero" or "constant"
        Prior mean of the Gaussian process; a constant is learned.
    kernel : "rbf", "rbf-iso", "matern12", "matern32", "matern52", "rq", "polynomial" or callable
        Closed forms exist for the RBF; the others integrate over an empirical measure. A kernel of your own is given by
        its class, or by any function that makes it of a variance and lengthscales (d,).
    proposal : "ivr", "ub", "igb", "prior", "optimal" or callable
        Where candidates are drawn. One of your own is a function of (target, measure, r, n, rng) that gives
        ``basq.paper.Candidates``.
    r : float
        Share of the uncertain (ivr) or local (igb) part of the proposal.
    factorised : bool
        The paper's factorisation trick (WSABI only).
    selection : "recombination", "herding", "local-penalisation" or "samples"
    recombination : "tree" or "lp"
    proper : bool
        Also keep Σ w √residual from growing (Theorem 1's inequality).
    test_functions : "nystrom" (randomised), "nystrom-exact" or "fourier"
    n_candidates, n_nystrom : int or "auto"
        N and M; "auto" grows them with the ratio of likelihood time to selection time, which makes a run depend on
        the machine's speed. ``n_nystrom="proportional"`` is a hundredth of N, as in the paper.
    supersamples : int
        Prior draws for each candidate that is resampled from them; 100 in the paper.
    initial : "even" or "recombination"
        The first batch: a Sobol sequence of the prior; or as in the paper an initial guess, the prior's mean, and
        points that recombine draws of the prior.
    noise : float or "fit"
        Noise variance of the warped data relative to the kernel variance.
    update_kernel : bool
        Learn hyperparameters after each batch; False keeps the initial ones (an ablation of the paper).
    audited : bool
        Calibrate the error of log Z by how well the batches were predicted, and converge only where they agree; False
        is the paper's way, the surrogate's own variance, which is too small by a factor of several.
    """

    model: ModelName | Model = "wsabi-l"
    mean: MeanName = "zero"
    kernel: KernelName | KernelFactory = "rbf"
    proposal: ProposalName | Proposal = "ivr"
    r: float = 0.5
    factorised: bool = True
    selection: SelectionName = "recombination"
    recombination: RecombinationName = "tree"
    proper: bool = False
    test_functions: TestFunctions = "nystrom"
    n_candidates: int | Literal["auto"] = MIN_CANDIDATES
    n_nystrom: int | Literal["auto", "proportional"] = MIN_NYSTROM
    supersamples: int = SUPERSAMPLES
    initial: InitialName = "even"
    noise: float | Literal["fit"] = 1e-6
    update_kernel: bool = True
    audited: bool = True

    def __post_init__(self) -> None:
        check_choice("mean", self.mean, get_args(MeanName))
        check_choice("selection", self.selection, get_args(SelectionName))
        check_choice("recombination", self.recombination, get_args(RecombinationName))
        check_choice("test_functions", self.test_functions, get_args(TestFunctions))
        check_choice("initial", self.initial, get_args(InitialName))
        for name in ("factorised", "proper", "update_kernel", "audited"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"Paper({name}={getattr(self, name)!r}): allowed are True and False.")
        if not (is_number(self.r) and 0.0 <= self.r <= 1.0):
            raise InputError(f"Paper(r={self.r!r}): r is a share and must lie in [0, 1].")
        for name, words in (("n_candidates", ("auto",)), ("n_nystrom", ("auto", "proportional")), ("supersamples", ())):
            value = getattr(self, name)
            if value not in words and not (is_number(value, Integral) and value >= 2):
                others = "".join(f", or {word!r}" for word in words)
                raise InputError(f"Paper({name}={value!r}): give an integer of at least 2{others}.")
        if self.noise != "fit" and not (is_number(self.noise) and 0.0 <= self.noise < np.inf):
            raise InputError(f"Paper(noise={self.noise!r}): give a non-negative number, or 'fit'.")
        self._check_parts()

    def _check_parts(self) -> None:
        """Refuse parts that are none, and those that do not fit together."""
        model, make, _ = as_model(self.model), as_kernel(self.kernel), as_proposal(self.proposal)
        kernel, name = make(1.0, np.ones(2)), shown(self.kernel)
        if model.needs_gaussian and not kernel.gaussian:
            raise InputError(f"Paper(model={shown(self.model)}, kernel={name}): this model needs an RBF kernel.")
        if self.test_functions == "fourier" and not isinstance(kernel, Spectral):
            raise InputError(
                f"Paper(test_functions='fourier', kernel={name}): the kernel must be stationary, with "
                "sample_frequencies(n, rng); use test_functions='nystrom'."
            )
        if self.selection == "local-penalisation" and not isinstance(kernel, Differentiable):
            raise InputError(
                f"Paper(selection='local-penalisation', kernel={name}): the kernel must have input_gradient(point, x)."
            )

    def __repr__(self) -> str:
        options = ", ".join(f"{field.name}={shown(getattr(self, field.name))}" for field in fields(self))
        return f"Paper({options})"

    def check(self, batch_size: int) -> None:
        """Refuse a batch that the candidates cannot fill."""
        if self.n_candidates != "auto" and batch_size > self.n_candidates:
            raise InputError(
                f"batch_size={batch_size} is above n_candidates={self.n_candidates}; a batch is chosen among the "
                "candidates, so give fewer points a batch or more candidates."
            )

    def initial_size(self, n_dim: int) -> int:
        """Points of the initial design."""
        return 2 * (n_dim + 1)

    # --- Algorithm 1, lines 4-10: choose the next batch -----------------------------------------------------------

    def select(
        self,
        fitted: PaperFit,
        batch_size: int,
        rng: np.random.Generator,
        *,
        cost_ratio: float = 0.0,
        taken: FloatArray | None = None,
    ) -> Batch:
        """Choose a batch: candidates, test functions, recombination."""
        target = Target(_expecting(fitted.surrogate, taken), self.factorised)
        if self.selection == "local-penalisation":
            return Batch(local_penalisation(target, fitted.measure, batch_size, rng))
        n, m = self.sizes(batch_size, cost_ratio)
        # line 5: N weighted points; those of line 4 are M of them
        candidates = propose(target, fitted.measure, self.proposal, self.r, n, rng, supersamples=self.supersamples)
        chosen, weights, info = self._choose(target, candidates, batch_size, m, rng)
        info |= {"sampler": candidates.sampler, "acceptance": candidates.acceptance, "n_candidates": n, "n_nystrom": m}
        return Batch(candidates.prediction.x[chosen], over_prior(target, candidates, chosen, weights), info=info)

    def design(self, measure: GaussianMixture, n: int, rng: np.random.Generator, *, seen: FloatArray) -> Batch | None:
        """Choose n points before there is a value, lines 4-10 without data; None for an even spread over the prior."""
        if self.initial == "even":
            return None
        guess = measure.weights @ measure.means
        first = seen if len(seen) else guess[None]
        kernel = self._training().first_kernel(np.ones(1), measure.means.shape[1])
        gp = GP.condition(first, np.zeros(len(first)), kernel, noise=1e-6 * kernel.variance)
        target, own = Target(Vanilla(gp), False), first[: 0 if len(seen) else 1]
        if n == len(own):
            return Batch(own, np.zeros(1), explores=True)
        n_candidates, m = self.sizes(n, 0.0)
        candidates = propose(target, measure, "prior", self.r, n_candidates, rng)
        chosen, weights, info = self._choose(target, candidates, n - len(own), m, rng)
        u = np.concatenate([own, candidates.prediction.x[chosen]])
        return Batch(u, np.concatenate([np.zeros(len(own)), weights]), explores=True, info=info)

    def _choose(
        self, target: Target, candidates: Candidates, batch_size: int, m: int, rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray, dict[str, Any]]:
        """Pick batch_size candidates by the configured kernel quadrature (lines 7 to 10)."""
        if self.selection == "samples":
            chosen = resample(candidates.weights, batch_size, rng)
            return chosen, np.full(len(chosen), 1.0 / len(chosen)), {}
        features = self._features(target, candidates, batch_size, m, rng)
        if self.selection == "herding":
            chosen = herd(features.values, candidates.weights, batch_size)
            return chosen, np.full(len(chosen), 1.0 / len(chosen)), {}
        objective = np.sqrt(features.residual) if self.proper else None
        found = recombine(
            features.values[:, : batch_size - 1], candidates.weights, objective=objective, method=self.recombination
        )
        return (*_fill(found.index, found.weights, candidates.weights, batch_size, rng), {"fallback": found.fallback})

    def _features(
        self, target: Target, candidates: Candidates, batch_size: int, m: int, rng: np.random.Generator
    ) -> Features:
        """Define n − 1 test functions (line 6)."""
        n_features = max(batch_size - 1, 1)
        if self.test_functions == "fourier":
            return fourier_features(target, candidates.prediction, n_features, m, rng)
        exact = self.test_functions == "nystrom-exact"
        return nystrom_features(target, candidates.prediction, n_features, m, rng, randomised=not exact)

    def sizes(self, batch_size: int, cost_ratio: float) -> tuple[int, int]:
        """N and M for a batch.

        ``cost_ratio`` is the time of a batch of likelihood calls over that of a selection. The paper's guideline is
        M = ratio · M_min, N = ratio/3 · N_min; never below the minimum, nor above what is worth its memory.
        """
        least_m = max(MIN_NYSTROM, 2 * batch_size)
        m = self.n_nystrom if not isinstance(self.n_nystrom, str) else _grown(least_m, cost_ratio, MAX_NYSTROM)
        least_n = max(MIN_CANDIDATES, 10 * m)
        n = _grown(least_n, cost_ratio / 3.0, MAX_CANDIDATES) if self.n_candidates == "auto" else self.n_candidates
        if self.n_nystrom == "proportional":
            m = n // PROPORTION
        return n, max(m, batch_size)

    # --- Algorithm 1, lines 12-13: train the Gaussian process -----------------------------------------------------

    def fit(
        self, observations: Observations, prior: Prior, previous: PaperFit | None, rng: np.random.Generator
    ) -> PaperFit:
        """Fit the surrogate to everything seen."""
        data, log_scale = _scaled(observations)
        last, clock = None if previous is None else previous.surrogate, Stopwatch()
        with clock("fit"):
            surrogate: object = as_model(self.model).fit(data, self._training(), last, prior.measure, rng)
        if not isinstance(surrogate, Surrogate):
            gave = shown(type(surrogate))
            raise InputError(f"Paper(model={shown(self.model)}): fit gave a {gave}, which is no basq.paper.Surrogate.")
        closed = surrogate.has_closed_form
        points = np.empty((0, prior.n_dim)) if closed else prior.measure.sample_quasi(N_EMPIRICAL, rng)
        with clock("integrate"):
            evidence = integrate(surrogate, prior.measure, log_scale, points)
            neglected = curvature(surrogate, prior.measure, points) if self.audited else 0.0
        seed, more = int(rng.integers(2**31)), (len(observations), (), neglected, self.audited)
        fitted = PaperFit(surrogate, prior.measure, log_scale, points, evidence, seed, clock.seconds, *more)
        return fitted.tested(previous, observations) if self.audited else fitted

    def _training(self) -> Training:
        noise = None if self.noise == "fit" else float(self.noise)
        return Training(as_kernel(self.kernel), self.mean == "constant", noise, self.update_kernel)


def _scaled(observations: Observations) -> tuple[Data, float]:
    """Likelihood values over the largest one, and the logarithm of that; −inf while every value is zero."""
    log_values = observations.log_values
    finite = log_values[np.isfinite(log_values)]
    log_scale = float(finite.max()) if len(finite) else -np.inf
    values = np.exp(log_values - log_scale) if len(finite) else np.zeros(len(log_values))
    return Data(observations.u, values, values * np.nan_to_num(observations.noise)), log_scale


def _expecting(surrogate: Surrogate, taken: FloatArray | None) -> Surrogate:
    """The surrogate as if points (m, d) without a value yet had the ones it expects: nothing is left to learn there."""
    if taken is None or not len(taken):
        return surrogate
    return replace(surrogate, gp=surrogate.gp.expecting(taken, noise=float(surrogate.gp.noise.min())))


def _grown(least: int, factor: float, most: int) -> int:
    """Let a size grow by a factor up to a limit, but never shrink below its minimum."""
    return max(least, round(min(factor * least, most)))


def _fill(
    index: IntArray, weights: FloatArray, candidate_weights: FloatArray, n: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Top a short selection up to n points, so that no worker is left without one."""
    if len(index) >= n:
        return index[:n], weights[:n]
    others = np.setdiff1d(np.arange(len(candidate_weights)), index)
    extra = others[resample(candidate_weights[others], n - len(index), rng)]
    return np.concatenate([index, extra]), np.concatenate([weights, np.zeros(len(extra))])
