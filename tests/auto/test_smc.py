"""Sequential Monte Carlo: from the prior to the posterior."""

from dataclasses import dataclass

import numpy as np
import pytest

from basq.auto.chart import Chart
from basq.auto.settings import Integration, Samples
from basq.auto.smc import temper, turned
from basq.numerics.gaussians import GaussianMixture
from basq.numerics.student import StudentMixture

PRIOR = GaussianMixture.standard(3)


@dataclass
class Gaussian:
    """A log-likelihood −|u − centre|² / (2 width²), known with some sd; a share of it comes as the correction."""

    centre: float
    width: float
    sd: float = 0.0
    corrected: float = 0.0

    def mean(self, u):
        return -0.5 * (1.0 - self.corrected) * ((u - self.centre) ** 2).sum(axis=1) / self.width**2

    def correction(self, u):
        rest = -0.5 * self.corrected * ((u - self.centre) ** 2).sum(axis=1) / self.width**2
        return 0.1 + rest, np.full(len(u), self.sd)

    def check(self, population, tolerance=0.15):
        """The population has the moments of the posterior under a standard normal prior."""
        precision = 1.0 + 1.0 / self.width**2
        sd = precision**-0.5
        mean = self.centre / self.width**2 / precision
        np.testing.assert_allclose(population.u.mean(axis=0), mean, atol=tolerance * sd)
        np.testing.assert_allclose(np.cov(population.u.T), sd**2 * np.eye(3), atol=tolerance * sd**2)


@pytest.mark.parametrize("width", [1.0, 0.1, 0.01])
def test_from_the_prior_to_the_posterior(width):
    model = Gaussian(1.0, width)
    found = temper(model, PRIOR, 2000, np.random.default_rng(0), Samples())
    assert found.beta == 1.0
    model.check(found)


@pytest.mark.parametrize("corrected", [-0.5, 0.3, 0.6])
def test_the_correction_counts_as_much_as_the_mean(corrected):
    model = Gaussian(1.0, 0.2, corrected=corrected)
    model.check(temper(model, PRIOR, 4000, np.random.default_rng(0), Samples()), tolerance=0.1)


def test_what_the_surrogate_cannot_resolve_stays_tempered():
    assert temper(Gaussian(1.0, 0.01, sd=100.0), PRIOR, 500, np.random.default_rng(0), Samples()).beta < 1.0


def test_warmer_stages_go_from_the_prior_to_the_posterior():
    found = temper(Gaussian(1.0, 0.05), PRIOR, 1000, np.random.default_rng(0), Samples())
    distance = np.abs(found.warmer - 1.0).max(axis=1)
    assert 200 <= len(found.warmer) <= 400
    assert np.median(distance[:30]) > 5.0 * np.median(distance[-30:])
    assert np.median(distance) > 2.0 * np.median(np.abs(found.u - 1.0).max(axis=1))


def test_a_gaussian_accepts_every_turn():
    rng = np.random.default_rng(0)
    about = Chart(np.array([1.0, -2.0]), np.array([[0.5, 0.0], [0.3, 2.0]]))
    density = GaussianMixture(np.ones(1), about.mean[None], (about.root @ about.root.T)[None])
    u = density.sample(4000, rng)
    new, gained = turned(u, about, rng, (1.0, 0.5, 0.25))
    np.testing.assert_allclose(gained, density.log_pdf(new) - density.log_pdf(u), atol=1e-10)
    np.testing.assert_allclose(new.mean(axis=0), about.mean, atol=0.1)
    np.testing.assert_allclose(np.cov(new.T), density.covs[0], rtol=0.1, atol=0.05)


def test_twenty_dimensions_are_sampled_and_integrated():
    """Random walks leave a covariance that is several times too narrow along some direction."""
    prior, model, width = GaussianMixture.standard(20), Gaussian(0.5, 0.02), 0.02
    rng = np.random.default_rng(0)
    found = temper(model, prior, 1000, rng, Samples())
    assert found.beta == 1.0
    spread = np.linalg.eigvalsh(np.cov(found.u.T)) / (width**2 / (1.0 + width**2))
    assert spread.min() > 0.5
    assert spread.max() < 1.6
    proposal = StudentMixture.of(found.u, rng, Integration().mixture)
    u = proposal.sample(10_000, rng)
    log_terms = model.mean(u) + prior.log_pdf(u) - proposal.log_pdf(u)
    terms = np.exp(log_terms - log_terms.max())
    assert terms.sum() ** 2 / (terms @ terms) > 2000.0
    truth = 20 * (np.log(width) - 0.5 * np.log1p(width**2) - 0.5 * 0.5**2 / (1.0 + width**2))
    assert abs(np.log(terms.mean()) + log_terms.max() - truth) < 0.04
