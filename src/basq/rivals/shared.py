"""Rivals with one simulator: what was simulated for one is judged under the likelihoods of the others, too."""

from dataclasses import dataclass, replace

from basq.cheap.call import judged
from basq.cheap.model import Model
from basq.evaluation.store import SHARED
from basq.outputs.outputs import unpack
from basq.run.driver import Driver
from basq.run.identity import fingerprint


@dataclass(frozen=True)
class Shared:
    """Which rivals give each other their outputs.

    Attributes
    ----------
    drivers : dict of Driver
    groups : tuple of tuples of str
        Names of models with the same simulator and prior.
    """

    drivers: dict[str, Driver]
    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, drivers: dict[str, Driver]) -> "Shared":
        """Group models by their simulator."""
        groups: list[list[str]] = []
        models = {name: driver.sampler.model for name, driver in drivers.items()}
        for name, model in models.items():
            group = next((group for group in groups if _same(models[group[0]], model)), None)
            if group is None:
                groups.append([name])
            else:
                group.append(name)
        return cls(drivers, tuple(tuple(group) for group in groups))

    def others(self, name: str) -> list[str]:
        """Models that get what is simulated for this one."""
        return [other for group in self.groups if name in group for other in group if other != name]

    def pass_on(self, name: str) -> list[str]:
        """Give outputs of a model to those that do not have them yet: the names of those that got some."""
        return [other for other in self.others(name) if self._give(name, other)]

    def _give(self, giver: str, taker: str) -> bool:
        """Judge outputs of one model under the likelihood of another; recognised by their points, also in old files."""
        source, sampler = self.drivers[giver].sampler.store, self.drivers[taker].sampler
        assert sampler.model is not None
        calls, known = source.with_outputs(), {x.tobytes() for x in sampler.store.with_outputs().x}
        new = [i for i, x in enumerate(calls.x) if x.tobytes() not in known]
        outcomes = [
            replace(judged(sampler.model, unpack(blob)[0], calls.x[i]), worker=SHARED)
            for i, blob in zip(new, source.outputs(calls.ids[new]), strict=True)
            if blob is not None
        ]
        sampler.store.take(calls.x[new], calls.u[new], outcomes, calls.explores[new])
        return bool(new)


def _same(one: Model | None, other: Model | None) -> bool:
    """Whether two models get the same outputs at the same points."""
    if one is None or other is None or one.prior.names != other.prior.names:
        return False
    how = [(m.simulate, m.keep, m.pass_dict) for m in (one, other)]
    return how[0] == how[1] and fingerprint(one.prior) == fingerprint(other.prior)
