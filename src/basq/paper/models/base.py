"""What the paper's method asks of a model of the likelihood.

A model is one file: how it is fitted (`Model`), and what it then says of ℓ, of Z and of the posterior (`Surrogate`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from basq.gp.gp import GP, Moments, Prediction
from basq.numerics.gaussians import GaussianMixture
from basq.paper.training import Data, Training
from basq.posterior.mixture import Group
from basq.types import FloatArray


@dataclass(frozen=True)
class Surrogate(ABC):
    """A Gaussian process and a warp, seen as a model of the (scaled) likelihood ℓ itself.

    A model has to say what ℓ is at a point. One whose integrals are known gives evidence and expansion too; for others
    Z is integrated over a point set, and the posterior is sampled.

    Attributes
    ----------
    gp : GP
        The process that selection works with.
    """

    gp: GP

    needs_gaussian: ClassVar[bool] = False
    """Whether the model works with a Gaussian kernel only."""

    is_square: ClassVar[bool] = False
    """Whether ℓ − α is half the square of the process.

    If so, the factorisation trick holds (eq. 11 of the paper), and the variance of ℓ is about the square of the
    process's mean times its variance. If not, selection looks at the variance of the process alone.
    """

    @abstractmethod
    def mean(self, p: Moments) -> FloatArray:
        """Expected likelihood at predicted points: (m,)."""

    @abstractmethod
    def var(self, p: Moments) -> FloatArray:
        """Variance of the likelihood at predicted points: (m,)."""

    @abstractmethod
    def cov(self, p: Prediction, q: Prediction) -> FloatArray:
        """Covariance of the likelihood between two sets of predicted points: (m_p, m_q)."""

    @property
    def has_closed_form(self) -> bool:
        """Whether evidence and posterior are Gaussian integrals that the model knows."""
        return False

    def evidence(self, measure: GaussianMixture) -> tuple[float, float]:
        """Mean and variance of Z = ∫ ℓ over the measure (eqs. 3a and 3b of the paper), where there is a closed form."""
        raise TypeError(f"no closed form for {type(self).__name__}")

    def neglected(self, measure: GaussianMixture) -> float:
        """What linearising a square leaves out of the mean of Z, ½∫C̃π; nothing for other models."""
        return 0.0

    def expansion(self, measure: GaussianMixture) -> Iterable[list[Group]]:
        """Mean of ℓ times each component of the measure, as Gaussians, where there is a closed form."""
        raise TypeError(f"no closed form for {type(self).__name__}")


class Model(Protocol):
    """How a model is fitted: a surrogate class with ``fit`` as a class method, or an object with settings."""

    @property
    def needs_gaussian(self) -> bool:
        """Whether the model works with a Gaussian kernel only."""
        ...

    def fit(
        self, data: Data, train: Training, previous: Any, measure: GaussianMixture, rng: np.random.Generator
    ) -> Surrogate:
        """Warp the data and train.

        Parameters
        ----------
        data : Data
            Everything seen, scaled so that the largest value is one.
        train : Training
            ``train(u, y, previous_gp, noise_sd)`` makes a process of warped values.
        previous : Surrogate or None
            What this model made of the data before the last batch, to begin with.
        measure : GaussianMixture
            The prior in standard space.
        rng : numpy.random.Generator
        """
        ...
