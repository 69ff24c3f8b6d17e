"""The engine on circles: it works where they are cut at an empty place, and answers where the prior cuts them."""

from dataclasses import dataclass

from basq.method import LogSurrogate
from basq.numerics.fold import SignedPermutation
from basq.prior.periodic import Turn
from basq.types import FloatArray


@dataclass(frozen=True)
class TurnedBand:
    """What is believed about the log-likelihood, from what is believed at turned points."""

    inner: LogSurrogate
    turn: Turn

    def band(self, u: FloatArray) -> FloatArray:
        """Mean − 2 sd, mean and mean + 2 sd at points u (m, d): (3, m)."""
        return self.inner.band(self.turn.of(u))


@dataclass(frozen=True)
class TurnedImage:
    """An image of the posterior, for turned points."""

    image: SignedPermutation
    turn: Turn

    def of(self, u: FloatArray) -> FloatArray:
        """Images of points (n, d)."""
        return self.turn.of(self.image.of(self.turn.back(u)))

    def origin(self, u: FloatArray) -> FloatArray:
        """Points (n, d) of which these are the images."""
        return self.turn.of(self.image.origin(self.turn.back(u)))
