"""All tuned numbers of the default engine, grouped by the steps of docs/engine.md.

What each was measured by stands in brackets:

- [ablation "…"]: `benchmarks.engine_ablation` has a variant without it;
- [tried]: other values or designs lost (docs/engine.md, "What lost");
- [theory]: it follows from an argument that is given;
- nothing: it was set while the families of `benchmarks.engine` were looked at, and never varied by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from basq.auto.dotted import described, items_of, with_value
from basq.gp.classifier import ClassifierSettings
from basq.gp.kernels.trend import TrendPrior
from basq.numerics.student import MixtureSettings


@dataclass(frozen=True)
class Start:
    """Before there is a model."""

    least: int = 32  # Points of the first design.
    least_1d: int = 16  # The same for a single parameter.
    per_dim: int = 4  # The same per parameter, if that is more: a quadratic's scale is to be seen in each.
    abyss: float = 1e12  # Nats below the best that count as zero likelihood: people write −1e100 for −inf.

    def size(self, n_dim: int) -> int:
        """Points of the first design."""
        return max(self.least if n_dim > 1 else self.least_1d, self.per_dim * n_dim)


@dataclass(frozen=True)
class Recognition:
    """Before all steps: noise scales are recognised, and integrated out of every call."""

    step: float = 1.0  # Distance of the calls along a parameter, in its logarithm, [theory]
    farthest: float = 4.0  # within so many standard deviations of its prior.
    # Slope of a misfit's logarithm that suggests a parameter to be a logarithm: in errors, and in units of κ. [tried]
    suspect: tuple[float, float] = (2.0, 0.33)
    narrow: float = 0.2  # Least range of κs: any smooth function is like any other on a shorter one.
    tolerance: float = 1e-9  # Most that may be left of the contrast of four values, [tried]
    resolution: float = 0.005  # and most that noise may leave of it: others leave more than 0.006.
    whole: float = 0.1  # Largest error of a number of data that is known to be whole,
    vague: float = 0.03  # and largest relative error of one that is not.
    known: float = 0.1  # Largest relative error of an A that is used, and error of a c that a point has for itself.
    contradiction: float = 6.0  # Errors by which a call may miss its prediction.
    tests: tuple[int, int] = (2, 64)  # Calls that test the form: at first, and one for so many further points.
    wide: float = 0.7  # Standard deviation of κs under its prior from which two calls a point are worth while.
    leap_more: int = 3  # Points of a quadratic through the least misfits, beyond its coefficients.
    leap_farthest: float = 1.5  # Longest leap to its bottom, in distances of the farthest of them.
    leap_deepest: float = 0.01  # Least misfit that is believed, in that of the best point: else the leap is halved.
    leap_rise: float = 1.0  # Nats that a leap has to promise.
    leap_exact: float = 0.1  # Relative residual up to which a quadratic is good enough to draw about its bottom,
    leap_share: float = 0.5  # this share of a batch.


@dataclass(frozen=True)
class Charts:
    """Step 1: coordinates in which the posterior is an O(1) function."""

    follows: bool = True  # Whether charts follow the posterior, or leave standard space as it is. [ablation "no chart"]
    flat: bool = True  # Whether probabilities of flat parameters compete with u. [ablation "standard space only"]
    first_share: float = 0.5  # Share of the design, the better part, that the first chart is drawn from.
    first_per_dim: int = 2  # At least so many points of it per parameter.
    natural: float = 10.0  # Nats by which u has to predict better than probabilities of flat parameters. [tried]
    compared_again: float = 1.25  # Growth of the number of observations after which the two are compared again.
    central: float = 0.9  # Share of the samples, the central ones, that a Gaussian is fitted to: far ones weigh most.
    least_curvature: float = 0.1  # In units of the samples' covariance: below it a direction is not like a Gaussian.
    per_coefficient: int = 3  # Samples for every coefficient of that Gaussian.


@dataclass(frozen=True)
class Values:
    """Step 2: how log-likelihoods become data, and what is believed between them."""

    depth: float = 10.0  # Nats below the best that are in play.
    depth_per_dim: float = 4.0  # The same per parameter: a posterior's bulk spans a few times d.
    noise_floor: float = 1e-3  # Least noise sd of a value, in scaled nats.
    noise_slope: float = 0.1  # Noise sd per nat below what is in play. [ablation "no noise shaping"]
    bends: tuple[float, float] = (8.0, 0.1)  # Ratio of gaps to compress from that compete; the least, in windows.
    noisy_bend: float = 30.0  # The least again, in squared noises: log Z is too low by up to 1.5 / so much. [theory]
    unbent: float = 3.0  # Nats by which compressed values have to be predicted better than plain ones.
    deepest: float = 1e6  # Scaled nats below the best at which values end: lower ones tell nothing more.
    unknown_noise: tuple[float, ...] = (0.1, 1.0)  # First guesses of a noise that is not known, in nats,
    unknown_spread: float = 3.0  # and spread of its logarithm about that of one nat in a prior.
    penalty_slope: float = 1.5  # Pessimism: nats taken off per nat of sd, [tried]
    penalty_from: float = 2.0  # beyond this sd (both in scaled nats). [tried]
    bonus_cap: float = 2.0  # Largest sd, in nats, whose C/2 is believed: a larger one says only that nothing is known.
    headroom: float = 1.0  # Nats above the best value seen that are believed possible. [ablation "no ceiling"]
    headroom_per_dim: float = 0.25  # The same per parameter: the best of some dozen draws is d/4 below a peak. [theory]
    # Largest factor on a variance for the freedom of the fit; 1 for none. [ablation "no widened variances", tried]
    most_overfit: float = 2.0

    def window(self, n_dim: int) -> float:
        """Nats below the best point that are in play."""
        return self.depth + self.depth_per_dim * n_dim

    def room(self, n_dim: int) -> float:
        """Nats above the best value seen that are believed possible.

        Without it, the mean may rise without end along a ridge, beyond the last observation.
        """
        return self.headroom + self.headroom_per_dim * n_dim

    def overfit(self, n: int, n_dim: int, n_bends: float) -> float:
        """Factor by which the variance of a process fitted to n values is too small.

        As in a regression, whose squared residuals are too small by (n − q)/n for q coefficients: (d + 1)(d + 2)/2 of
        a quadratic, and the bends of a shear. Exponentiated, a variance that is too small becomes a bias of log Z.
        """
        return n / max(n - quadratic(n_dim) - n_bends, n / self.most_overfit)


def quadratic(n_dim: int) -> int:
    """Coefficients of a quadratic."""
    return (n_dim + 1) * (n_dim + 2) // 2


@dataclass(frozen=True)
class Hyperparameters:
    """Step 3: the process and its hyperparameters."""

    # Where hyperparameters begin, and what is believed of them. [ablation "no quadratic trend", "no bends"; tried]
    trend: TrendPrior = field(default_factory=TrendPrior)
    shear: float = 0.6  # Standard deviation in the prior of all bends of a coordinate together; [ablation "no shear"]
    sheared_from: float = 2.0  # values in play per coefficient of a quadratic, and one for each bend, suffice. [tried]
    classifier: ClassifierSettings = field(default_factory=ClassifierSettings)  # Of zero likelihood. [tried]
    first_steps: int = 30  # Most steps of the first search, [tried]
    next_steps: int = 8  # and of one that goes on from the last batch. [tried]
    astray: float = 3.0  # Mean square standardised datum from which a short search has lost its way; one at an optimum.
    rescue: float = 6.0  # Mean square residual, in sd, of a batch from which a fresh start is tried as well, [tried]
    rescue_least: tuple[float, float] = (1e-2, 1.0)  # of a squared radius and spread of at least this,
    rescue_points: tuple[int, int] = (3, 10)  # read off the best points, so many per parameter and at least so many:
    # logarithms of the variances of departures, trend (three) and bends, in units of the spread of values.
    rescue_first: tuple[float, float, float, float, float] = (-1.0, 2.0, 1.0, 1.0, -2.0)


@dataclass(frozen=True)
class Samples:
    """Step 4: tempered sequential Monte Carlo."""

    particles: int = 1000  # Samples of a cell's posterior.
    moves: int = 3  # Metropolis moves per stage,
    last_moves: int = 8  # and at the last one; [tried]
    posterior_moves: int = 10  # and of the samples that a result has.
    steps: tuple[float, float] = (1.0, 0.3)  # Lengths of a difference, in units of the best for a Gaussian.
    turns: tuple[float, ...] = (1.0, 0.5, 0.25)  # Sines of the angles of a turn: from a new draw to a small step.
    kept: float = 0.5  # Share of the effective sample size that is kept from one stage to the next. [tried]
    least_growth: float = 1.1  # Of the inverse temperature, so that it ends.
    fewer: int = 2  # So many times fewer samples at the stages on the way, which only have to lead to the last one.
    max_stages: int = 60  # On the way to the posterior.
    unresolved: float = 3.0  # Tempering stops where inverse temperature × sd of the log-likelihood exceeds this.
    looked_at: int = 150  # Samples that this sd is the median of.
    warmer: int = 300  # Samples kept of the stages before the last,
    warmer_stages: int = 8  # so many of them.


@dataclass(frozen=True)
class Integration:
    """Step 5: importance sampling from a mixture of t distributions."""

    draws_per_dim: int = 500  # Draws of the integrand in full: the more dimensions, the fewer carry weight;
    least_dims: int = 8  # as many as for so many dimensions at least.
    most_draws: int = 20_000  # Most further draws.
    monte_carlo: float = 0.01  # Nats: error of the sampling, reached by further draws once little else is uncertain.
    settled_var: float = 0.02  # Surrogate variance of log Z below which little else is uncertain.
    hopeless: float = 0.3  # Error from which further draws are in vain: a few carry all the weight.
    spare: float = 1.5  # Times as many draws as needed, since what uncertainty adds has an error of its own.
    heavy: float = 5.0  # Mean weights from which a draw is heavy: its like may be too rare to be among the first draws.
    most_heavy: int = 50  # Heavy draws that are kept.
    pairs: int = 300  # Draws whose covariances give the surrogate's variance of log Z.
    mixture: MixtureSettings = field(default_factory=MixtureSettings)  # The proposal.

    def draws(self, n_dim: int) -> int:
        """Draws at which the integrand is computed in full."""
        return self.draws_per_dim * max(n_dim, self.least_dims)


@dataclass(frozen=True)
class Cells:
    """Step 6: one surrogate per separated mode."""

    most: int = 8  # Cells. [ablation "no cells"]
    draws: int = 100  # Of the prior, for each one that is asked for inside a cell.
    tries: int = 3  # Surrogates of a cell that are tried until one can be sampled, where the last one could be.
    empty_border: float = 3.0  # Margin of log-densities that nearly all samples keep where a population is separated.
    thin_border: float = 1.0  # The same for two modes that one surrogate describes, but that are counted as two.
    nearly_all: float = 0.01  # Share of the samples that need not keep it.
    apart: float = 4.0  # Standard deviations between the centres of two separated parts.
    least_part: float = 0.02  # Share of the samples that is a part.
    part_steps: int = 5  # In which two parts settle.
    pairs: int = 250  # Pairs of samples between which directions are looked along.
    # Share of the largest distance along the direction of most kurtosis from which a sample belongs to the far part.
    peaked: float = 0.5
    touching: float = 1.0  # Margin below which a sample lies on a border,
    touched: float = 0.05  # and the share of such samples from which two cells are one.
    lost: float = 10.0  # Effective draws of the evidence below which a surrogate has collapsed.
    unhealthy: float = 100.0  # The same below which other hyperparameters are tried,
    unhealthy_var: float = 0.7  # or where the mean variance of log ℓ is above this.
    least_need: float = 0.02  # Share of the evidence that every cell counts with when points are divided,
    needs: tuple[float, float] = (0.03, 1.0)  # and bounds of the sd of log Z that it is multiplied with.


@dataclass(frozen=True)
class Audits:
    """Step 7: every batch tests the surrogate that chose it."""

    counts: bool = True  # Whether audits calibrate the error. [ablation "no audit"]
    samples: int = 400  # Posterior samples that say what is common and what is rare.
    common: float = 0.01  # Quantile of their log-density above which a point matters.
    rare: float = 0.0025  # The same above which a surprise is one.
    surprise: float = 3.0  # Nats above its prediction that make a point of the posterior a surprise,
    surprise_noise: float = 3.0  # and standard deviations of its noise on top.
    floor: float = 0.01  # Nats: residuals below this are as good as none, whatever the process claims.
    largest_z2: float = 25.0  # Cap on squared standardised residuals: one disaster would rule for batches. [tried]
    largest: float = 20.0  # Cap on residuals in nats.
    zero: float = 50.0  # Nats that a likelihood of zero is taken to lie below its prediction.
    negligible: float = 0.01  # Share of the evidence below which a cell has nothing to say.
    memory: int = 3  # Batches that the calibration looks back on, [tried]
    long_memory: int = 6  # Batches that tell whether variances are too large,
    forgetting: float = 0.7  # and the weight of each against the one after it. [tried]
    agrees: float = 6.0  # Mean square standardised residual up to which the last batches agree with their prediction.


@dataclass(frozen=True)
class Scouts:
    """Step 8: observations that no cell explains."""

    sent: bool = True  # [ablation "no scouts"]
    far: float = 0.5  # Share of the window beyond which an observation is far, if it lies so low by extrapolation.
    least_far: int = 8  # Far observations that show what is usual.
    explained: float = 0.97  # Share of the gap by a Gaussian extrapolation below which it explains no observation.
    outlying: float = 4.5  # Median absolute deviations,
    margin: float = 0.03  # and relative difference on top, below the usual gap that make a far observation stand out.
    least_gap: float = 0.1  # Nats: smaller gaps count as this.
    slopes: tuple[float, float] = (0.2, 1.1)  # Of the usual line: that of a saturating tail, of a Gaussian. [theory]
    line_steps: int = 20  # In which the line of least absolute residuals is found.
    dip: float = 0.1  # Depth of a valley, on the explorer's scale, that is worth a look.
    ways: int = 8  # Straight ways to each cell on which a valley is looked for, [tried]
    way_points: int = 7  # at so many points of each,
    way_ends: float = 0.1  # so far from its ends.
    probes: int = 2  # Valleys that are tested in a batch.
    particles: int = 500  # Samples of the model of strange observations.
    cloud: float = 0.5  # Radius of a cloud about the best of too few of them, in distances to the nearest other one.


@dataclass(frozen=True)
class Batches:
    """Step 9: the part of a batch that integrates."""

    recombined: bool = True  # Or plain samples of the same measure. [ablation "samples, not recombination"; tried]
    broad: float = 0.3  # Share of the selection measure that is broadened beyond the posterior, [tried]
    broad_points: int = 1000  # by so many points,
    broad_steps: tuple[float, ...] = (0.3, 0.7, 1.2)  # so many standard deviations from samples,
    broad_sd: float = 3.0  # judged by their mean plus a standard deviation of at most so many nats.
    least_left: float = 0.1  # Share of these that must be left to choose from: else the samples have collapsed.
    nystrom: int = 100  # Nyström points,
    nystrom_each: int = 3  # and for every point of the batch, if that is more.
    tail: float = 0.3  # Share of the points that go to the tails, [ablation "no tails"; tried]
    optimism: float = 1.5  # judged at so many standard deviations above their mean. [tried]
    summit: float = 0.1  # Share of the points that may go to the summit, and no more than one. [ablation "no summit"]
    seen: float = 0.5  # Standard deviations of the samples within which a summit counts as seen.
    summit_steps: int = 6  # In which the summit is found,
    summit_best: int = 20  # each with so many of the best
    summit_cloud: int = 100  # of so many points.
    climb: float = 0.5  # Share of the points on the way up from the best one, [ablation "no climbs"; tried]
    climb_rise: float = 0.4  # while it rises by more than so many times the headroom,
    climb_radii: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)  # no farther than this, in the chart's standard deviations,
    climb_apart: float = 0.1  # and so far from everything seen, in that distance,
    climb_optimism: tuple[float, ...] = (0.0, 1.0, 2.0)  # judged at so many standard deviations above the mean.
    edge: int = 3  # One of so many points goes to the edge of zero likelihood, where there is one.
    cloud: float = 2.0  # Width of the cloud about a new cell, in that of its gate,
    cloud_points: int = 3  # until it has so many points more than parameters.


@dataclass(frozen=True)
class Exploration:
    """Step 9: the part of a batch that looks for other modes."""

    share: float = 0.125  # Of a batch. [ablation "no exploration"]
    share_only: float = 0.875  # The same when nothing but exploration is left to do, [ablation "no exploration"]
    generous: float = 0.1  # at a standard deviation of log Z below this, whatever the user's target.
    quota: float = 16.0  # Points without a surprise that make "no other mode" believable, [ablation "no exploration"]
    quota_per_dim: float = 2.0  # and per parameter. [ablation "no exploration"]
    kept: float = 0.5  # Share of them that still counts after a surprise: most are a ridge that goes on.
    patience: float = 2.0  # Quotas after which signs of a second mode are no reason to go on. [tried]
    images: float = 0.6  # Images of the best point that are looked at, in quotas.
    ends: tuple[float, float] = (8.0, 1.0)  # Nats below the samples where the posterior ends; sd in which it was seen.
    symmetries: tuple[int, int] = (8, 4)  # Images tried as symmetries, a last time at so many times the first points.
    unsure: float = 0.3  # Share, when nothing else is left to do, to ends and where the surrogate is unsure,
    optimism: float = 2.0  # judged at so many standard deviations above its mean.
    searches: float = 0.75  # Largest share of the points that are searches; the others lie far from everything. [tried]
    valley: float = 3.0  # Nats that a midpoint must lie below a suspect to prove a valley on the way. [tried]
    matters: float = 4.0  # Nats below the best from which an observation may be a suspect,
    matters_per_dim: float = 1.5  # and per parameter.
    rise: float = 1.0  # Nats above its basin's best from which a search is climbing,
    rise_windows: float = 2.0  # if it ends no farther than so many windows below the best.
    offset: float = 5.0  # The explorer's values are −√(offset + d + gap). [tried]
    noise: float = 1e-2  # Noise sd of its standardised values.
    # Logarithms of the variances that it begins with: departures, trend (three), bends.
    first: tuple[float, float, float, float, float] = (0.0, -1.0, -2.0, -8.0, -12.0)
    fit_steps: int = 10  # Of its search for hyperparameters,
    growth: float = 1.5  # which is done again when it has so many times the points: it only points the way.
    climb_steps: int = 20  # Of an ascent,
    climb_first: float = 0.3  # the first so long,
    climb_faster: float = 1.3  # each so many times longer than the last, if that went up,
    climb_slower: float = 0.4  # or shorter,
    climb_short: float = 0.01  # until it is this short: what is asked of its end is which basin it lies in;
    climb_edge: float = 0.9999  # it stays within so much of the prior.
    starts: int = 200  # Ascents from draws of the prior.
    same_basin: float = 0.3  # Squared distance, in lengthscales, below which two ends of ascents count as one.
    fresh: float = 0.05  # Distance, in lengthscales, from everything seen below which an end is no search.
    strange: int = 3  # Strange observations that get an explorer of their own.
    bulk: int = 400  # Posterior samples that stand for what is known.
    neighbour: float = 1.2  # A point is outside if farther from them than this times
    neighbour_quantile: float = 0.99  # this quantile of their own nearest-neighbour distances.
    spread: int = 3000  # Draws of the prior among which points far from all others are chosen,
    spread_edge: float = 0.995  # half of them within so much of the prior.

    def enough(self, n_dim: int) -> float:
        """Exploration points without a surprise that make "no other mode" believable."""
        return self.quota + self.quota_per_dim * n_dim


@dataclass(frozen=True)
class Errors:
    """The error of log Z."""

    jensen: float = 0.4  # Share of the C/2 correction that counts as error, [tried]
    taken_off: float = 0.2  # and of that part of it that audits have taken off.
    # Standard deviation of log Z per mass that may lie where the likelihood is zero: a wall is shifted as a whole.
    wall: float = 1.5
    drift: float = 0.5  # Share of the last change. [tried]
    monte_carlo: float = 1.2  # Factor on the error of the sampling, which is itself an estimate.
    floor: float = 0.005  # Of the whole, in nats.
    untested: float = 4.0  # Calibration before the first audit.
    largest: float = 25.0  # Largest calibration.
    unseen: bool = True  # Whether modes not found yet count. [ablation "no exploration"; tried]
    starts: int = 2  # A point is one of d − 2 starts: it shows a basin only where it lies well inside. [tried]


@dataclass(frozen=True)
class Verdicts:
    """When it says "converged"."""

    negligible: float = 0.01  # Share of the evidence below which a cell need not be resolved.
    effective: float = 200.0  # Effective draws of the evidence integral that it needs.
    last_z2: float = 8.0  # Largest mean square standardised residual of the last batch,
    last_rms: float = 1.5  # and root mean square residual, in nats.
    moved: float = 0.3  # Nats by which log Z may move with the last batch,
    moved_sd: float = 2.5  # and standard deviations of both values.


@dataclass(frozen=True)
class Settings:
    """All tuned numbers of the default engine; `print` shows them.

    Examples
    --------
    >>> from basq.auto import Settings
    >>> Settings().changed({"batch.tail": 0.0, "cells.most": 1}).batch.tail
    0.0
    """

    start: Start = field(default_factory=Start)
    recognition: Recognition = field(default_factory=Recognition)
    chart: Charts = field(default_factory=Charts)
    values: Values = field(default_factory=Values)
    kernel: Hyperparameters = field(default_factory=Hyperparameters)
    samples: Samples = field(default_factory=Samples)
    evidence: Integration = field(default_factory=Integration)
    cells: Cells = field(default_factory=Cells)
    audit: Audits = field(default_factory=Audits)
    scouts: Scouts = field(default_factory=Scouts)
    batch: Batches = field(default_factory=Batches)
    exploration: Exploration = field(default_factory=Exploration)
    error: Errors = field(default_factory=Errors)
    verdict: Verdicts = field(default_factory=Verdicts)

    def changed(self, values: Mapping[str, Any]) -> "Settings":
        """The same with other values, by their dotted names."""
        out = self
        for name, value in values.items():
            out = with_value(out, name.split("."), value, name)
        return out

    def items(self) -> dict[str, Any]:
        """All values by their dotted names."""
        return items_of(self)

    def differences(self) -> dict[str, Any]:
        """Those that are not the usual ones."""
        usual = Settings().items()
        return {name: value for name, value in self.items().items() if value != usual[name]}

    def __str__(self) -> str:
        return described(self)
