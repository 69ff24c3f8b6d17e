"""The paper's method, with every switch of its ablations (Adachi et al., NeurIPS 2022)."""

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import logsumexp

from basq.errors import InputError
from basq.gp.fit import fit, profiled_mean, still_right
from basq.gp.gp import GP
from basq.gp.kernels.stationary import Kernel, KernelName, make_kernel
from basq.method import Batch, Fit, Posterior
from basq.numerics.gaussians import GaussianMixture
from basq.observations import Observations
from basq.paper.evidence import Evidence, closed_form_evidence, empirical_evidence, has_closed_form
from basq.paper.fourier import fourier_features
from basq.paper.local_penalisation import local_penalisation
from basq.paper.models import Bbq, Surrogate, Vanilla, Wsabi, log_difference
from basq.paper.posterior import closed_form_posterior
from basq.paper.proposals import Candidates, ProposalName, propose, resample
from basq.paper.target import Target
from basq.paper.warps import ShiftedLog, SquareRoot
from basq.posterior.sampled import SampledPosterior
from basq.prior import Prior
from basq.selection.herding import herd
from basq.selection.nystrom import Features, nystrom_features
from basq.selection.recombination import recombine
from basq.types import FloatArray, IntArray, is_number

ModelName = Literal["vanilla", "wsabi-l", "wsabi-m", "bbq"]
MeanName = Literal["zero", "constant"]
SelectionName = Literal["recombination", "herding", "local-penalisation", "samples"]
RecombinationName = Literal["tree", "lp"]
TestFunctions = Literal["nystrom", "nystrom-exact", "fourier"]

MIN_CANDIDATES, MIN_NYSTROM = 20_000, 200
MAX_CANDIDATES, MAX_NYSTROM = 200_000, 2_000
SHIFT = 0.01
"""BBQ's γ, relative to the largest likelihood seen (Osborne et al. 2012 use a hundredth)."""
INITIAL_NOISE = 1e-4
"""Relative noise variance where it would be learned, but hyperparameters are not updated."""
N_BETWEEN = 200
"""Most points between the data that BBQ's third process learns from."""
N_EMPIRICAL = 2**14
"""Points of the empirical measure where no closed form exists."""


@dataclass(frozen=True)
class SurrogateDensity:
    """Log posterior density of a surrogate in standard space, (m, d) -> (m,); a class, so that it can be pickled."""

    surrogate: Surrogate
    measure: GaussianMixture
    log_z: float

    def __call__(self, u: FloatArray) -> FloatArray:
        mean = self.surrogate.mean(self.surrogate.gp.predict(u))
        log_mean = np.log(mean, out=np.full_like(mean, -np.inf), where=mean > 0)
        out: FloatArray = log_mean + self.measure.log_pdf(u) - self.log_z
        return out


@dataclass(frozen=True)
class LikelihoodBand:
    """What a surrogate of the likelihood itself believes about its logarithm."""

    surrogate: Surrogate
    log_scale: float

    def band(self, u: FloatArray) -> FloatArray:
        """Log of mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m); −inf where they are not positive."""
        p = self.surrogate.gp.predict(u)
        mean, sd = self.surrogate.mean(p), np.sqrt(np.maximum(self.surrogate.var(p), 0.0))
        values = np.stack([mean - 2.0 * sd, mean, mean + 2.0 * sd])
        return self.log_scale + np.log(values, out=np.full_like(values, -np.inf), where=values > 0.0)


@dataclass(frozen=True)
class PaperFit(Fit):
    """The surrogate after a batch, with what follows from it.

    Attributes
    ----------
    surrogate : Surrogate
        Of the likelihood scaled by exp(−log_scale), over ``measure`` in standard space.
    measure : GaussianMixture
    log_scale : float
        −inf while every value seen is zero.
    points : (N, d) array
        Empirical measure; used only where no closed form exists.
    seed : int
        Of the posterior's sampling.
    """

    surrogate: Surrogate
    measure: GaussianMixture
    log_scale: float
    points: FloatArray
    seed: int

    @cached_property
    def evidence(self) -> Evidence:
        """Moments of Z: closed form for RBF kernels, else over the empirical measure."""
        if has_closed_form(self.surrogate):
            return closed_form_evidence(self.surrogate, self.measure, self.log_scale)
        p = self.surrogate.gp.predict(self.points)
        return empirical_evidence(self.surrogate, p, np.ones(len(self.points)), self.log_scale)

    @property
    def log_evidence(self) -> float:
        """Log E[Z]; −inf while every value seen is zero, NaN where the surrogate integrates to less than zero."""
        return -np.inf if self.log_scale == -np.inf else self.evidence.log_mean

    @property
    def log_evidence_std(self) -> float:
        return np.inf if self.log_scale == -np.inf else self.evidence.log_std

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior in standard space."""
        if self.log_scale == -np.inf:
            raise InputError("Every likelihood value so far is zero (−inf): there is no posterior yet.")
        if has_closed_form(self.surrogate):
            return closed_form_posterior(self.surrogate, self.measure)
        log_z = float(np.log(max(self.evidence.scaled_mean, 1e-300)))
        log_density = SurrogateDensity(self.surrogate, self.measure, log_z)
        log_w = log_density(self.points) - self.measure.log_pdf(self.points)
        if not np.isfinite(logsumexp(log_w)):
            raise InputError("The surrogate's likelihood is nowhere positive: there is no posterior yet.")
        return SampledPosterior.build(log_density, self.points, log_w, np.random.default_rng(self.seed))

    @property
    def log_surrogate(self) -> LikelihoodBand | None:
        """What is believed about the log-likelihood; nothing while every value seen is zero."""
        return None if self.log_scale == -np.inf else LikelihoodBand(self.surrogate, self.log_scale)

    def converged(self, dlogz: float) -> tuple[bool, str]:
        """Apply the paper's criterion, var[Z|y] below a threshold, on the scale of log Z."""
        if self.log_scale == -np.inf:
            return False, "every likelihood value so far is zero (−inf)"
        if not np.isfinite(self.log_evidence):
            return False, "the surrogate's evidence is not positive"
        if self.log_evidence_std <= dlogz and dlogz > 0.0:  # a variance clipped at zero is no reason to stop at 0
            return True, f"the surrogate's sd of log Z, {self.log_evidence_std:.3g}, is below dlogz = {dlogz:g}"
        return False, f"the surrogate's sd of log Z, {self.log_evidence_std:.3g}, is not below dlogz = {dlogz:g}"


@dataclass(frozen=True)
class Data:
    """Scaled likelihood values (n,) at points u (n, d), with the standard deviation of their noise (n,)."""

    u: FloatArray
    values: FloatArray
    noise: FloatArray


@dataclass(frozen=True)
class Paper:
    """Configuration of the paper's method: ``basq.infer(..., method=basq.Paper())``.

    The defaults are the paper's own. Its zero mean and WSABI-L's linearisation bias the evidence low; a constant mean
    repairs most of it (``benchmarks/paper_method.py`` measures all configurations). The error is the surrogate's own
    and too small by a factor of several.

    Attributes
    ----------
    model : "wsabi-l", "wsabi-m", "vanilla" or "bbq"
    mean : "zero" or "constant"
        Prior mean of the Gaussian process; a constant is learned.
    kernel : "rbf", "rbf-iso", "matern12", "matern32", "matern52", "rq" or "polynomial"
        Closed forms exist for the RBF; the others integrate over an empirical measure.
    proposal : "ivr", "ub", "igb", "prior" or "optimal"
        Where candidates are drawn.
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
        the machine's speed.
    noise : float or "fit"
        Noise variance of the warped data relative to the kernel variance.
    update_kernel : bool
        Learn hyperparameters after each batch; False keeps the initial ones (an ablation of the paper).
    """

    model: ModelName = "wsabi-l"
    mean: MeanName = "zero"
    kernel: KernelName = "rbf"
    proposal: ProposalName = "ivr"
    r: float = 0.5
    factorised: bool = True
    selection: SelectionName = "recombination"
    recombination: RecombinationName = "tree"
    proper: bool = False
    test_functions: TestFunctions = "nystrom"
    n_candidates: int | Literal["auto"] = MIN_CANDIDATES
    n_nystrom: int | Literal["auto"] = MIN_NYSTROM
    noise: float | Literal["fit"] = 1e-6
    update_kernel: bool = True

    def __post_init__(self) -> None:
        choices = {
            "model": ModelName,
            "mean": MeanName,
            "kernel": KernelName,
            "proposal": ProposalName,
            "selection": SelectionName,
            "recombination": RecombinationName,
            "test_functions": TestFunctions,
        }
        for name, options in choices.items():
            if getattr(self, name) not in get_args(options):
                allowed = ", ".join(map(repr, get_args(options)))
                raise InputError(f"Paper({name}={getattr(self, name)!r}): allowed are {allowed}.")
        for name in ("factorised", "proper", "update_kernel"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"Paper({name}={getattr(self, name)!r}): allowed are True and False.")
        if not (is_number(self.r) and 0.0 <= self.r <= 1.0):
            raise InputError(f"Paper(r={self.r!r}): r is a share and must lie in [0, 1].")
        for name in ("n_candidates", "n_nystrom"):
            value = getattr(self, name)
            if value != "auto" and not (is_number(value, Integral) and value >= 2):
                raise InputError(f"Paper({name}={value!r}): give an integer of at least 2, or 'auto'.")
        if self.noise != "fit" and not (is_number(self.noise) and 0.0 <= self.noise < np.inf):
            raise InputError(f"Paper(noise={self.noise!r}): give a non-negative number, or 'fit'.")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.model == "bbq" and self.kernel not in ("rbf", "rbf-iso"):
            raise InputError(f"Paper(model='bbq', kernel={self.kernel!r}): BBQ needs an RBF kernel.")
        if self.test_functions == "fourier" and self.kernel == "polynomial":
            raise InputError("Paper(test_functions='fourier', kernel='polynomial'): the kernel must be stationary.")

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

    # --- Algorithm 1, lines 12-13: train the Gaussian process -----------------------------------------------------

    def fit(
        self, observations: Observations, prior: Prior, previous: PaperFit | None, rng: np.random.Generator
    ) -> PaperFit:
        """Fit the surrogate to everything seen."""
        log_values = observations.log_values
        finite = log_values[np.isfinite(log_values)]
        log_scale = float(finite.max()) if len(finite) else -np.inf
        values = np.exp(log_values - log_scale) if len(finite) else np.zeros(len(log_values))
        data = Data(observations.u, values, values * np.nan_to_num(observations.noise))
        surrogate = self._surrogate(data, prior.measure, previous, rng)
        closed = has_closed_form(surrogate)
        points = np.empty((0, prior.n_dim)) if closed else prior.measure.sample_quasi(N_EMPIRICAL, rng)
        return PaperFit(surrogate, prior.measure, log_scale, points, int(rng.integers(2**31)))

    def _surrogate(
        self, data: Data, measure: GaussianMixture, previous: PaperFit | None, rng: np.random.Generator
    ) -> Surrogate:
        """Warp the data and train; noise passes through a warp by its slope (the delta method)."""
        old = previous.surrogate if previous else None
        if self.model == "vanilla":
            return Vanilla(self._train(data.u, data.values, old.gp if old else None, data.noise))
        if self.model == "bbq":
            return self._bbq(data, measure, old, rng)
        warp = SquareRoot.below(data.values)
        y = warp.forward(data.values)
        noise = np.divide(data.noise, y, out=np.zeros_like(y), where=y > 0.0)
        gp = self._train(data.u, y, old.gp if old else None, noise)
        return Wsabi(gp, warp.offset, matched=self.model == "wsabi-m")

    def _bbq(self, data: Data, measure: GaussianMixture, old: Surrogate | None, rng: np.random.Generator) -> Bbq:
        """Train the three processes of BBQ."""
        log = ShiftedLog(SHIFT)
        linear = self._train(data.u, data.values, old.linear if isinstance(old, Bbq) else None, data.noise)
        log_noise = data.noise / (data.values + log.shift)
        log_gp = self._train(data.u, log.forward(data.values), old.gp if old else None, log_noise)
        # Δ vanishes at the data, so points between them are what it is learned from
        between = np.concatenate([data.u, measure.sample_quasi(min(2 * len(data.u), N_BETWEEN), rng)])
        difference = log_difference(log_gp, linear, log.shift, between)
        start = old.delta if isinstance(old, Bbq) else None
        delta = replace(self, mean="zero")._train(between, difference, start, np.zeros(len(between)))
        return Bbq(log_gp, linear, delta, log.shift)

    def _train(self, u: FloatArray, y: FloatArray, previous: GP | None, noise_sd: FloatArray) -> GP:
        """Learn the hyperparameters, starting from the last ones; keep those that predicted the new data well."""
        spread = float(np.mean(y**2)) or 1.0
        kernel: Kernel = make_kernel(self.kernel, u.shape[1], lengthscale=np.sqrt(u.shape[1]), variance=spread)
        if previous is not None:
            kernel = previous.kernel
        constant, relative = self.mean == "constant", None if self.noise == "fit" else float(self.noise)
        noise = kernel.variance * (INITIAL_NOISE if relative is None else relative) + noise_sd**2
        gp = previous.grown(u, y, noise) if previous is not None else None
        if self.update_kernel and not (gp is not None and still_right(gp)):
            last = None if previous is None else previous.optimum
            return fit(u, y, kernel, constant_mean=constant, noise=relative, known_noise=noise_sd**2, recalled=last)
        gp = gp or GP.condition(u, y, kernel, noise=noise)
        return replace(gp, mean=profiled_mean(gp.factor, y, kernel.variance)[0]) if constant else gp

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
        surrogate = fitted.surrogate
        if taken is not None and len(taken):
            gp = surrogate.gp.expecting(taken, noise=float(surrogate.gp.noise.min()))
            surrogate = replace(surrogate, gp=gp)  # type: ignore[type-var]  # a protocol; all that meet it are dataclasses
        target = Target(surrogate, self.factorised)
        if self.selection == "local-penalisation":
            return Batch(local_penalisation(target, fitted.measure, batch_size, rng))
        n, m = self.sizes(batch_size, cost_ratio)
        candidates = propose(target, fitted.measure, self.proposal, self.r, n, rng)
        chosen, weights, info = self._choose(target, candidates, batch_size, m, rng)
        info |= {"sampler": candidates.sampler, "acceptance": candidates.acceptance, "n_candidates": n, "n_nystrom": m}
        return Batch(candidates.prediction.x[chosen], weights, info=info)

    def _choose(
        self, target: Target, candidates: Candidates, batch_size: int, m: int, rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray, dict[str, Any]]:
        """Pick batch_size candidates by the configured kernel quadrature."""
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
        m = _grown(least_m, cost_ratio, MAX_NYSTROM) if self.n_nystrom == "auto" else self.n_nystrom
        least_n = max(MIN_CANDIDATES, 10 * m)
        n = _grown(least_n, cost_ratio / 3.0, MAX_CANDIDATES) if self.n_candidates == "auto" else self.n_candidates
        return n, max(m, batch_size)


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
