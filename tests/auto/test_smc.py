"""Sequential Monte Carlo: from the prior to the posterior."""

from dataclasses import dataclass

import numpy as np
import pytest

from basq.auto.settings import Samples
from basq.auto.smc import temper
from basq.numerics.gaussians import GaussianMixture

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
