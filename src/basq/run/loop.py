"""Algorithm 1."""

from collections.abc import Iterator

from basq.evaluation.evaluator import Evaluator
from basq.run.sampler import Sampler
from basq.run.steps import State


def run(sampler: Sampler, evaluator: Evaluator, *, asynchronous: bool = False) -> Iterator[State]:
    """Yield the state after every batch, until the stopping rule speaks or the user interrupts.

    The numbers are the lines of Algorithm 1. An asynchronous run asks for points while others are under way: as many as
    workers come free while the next points are chosen, so that none of them waits.
    """
    reserve = 1
    evaluator.start(sampler.pending())  # what an interrupted run has left
    while evaluator.finish(leave=evaluator.n_workers + reserve if asynchronous and sampler.n_left else 0):  # 11
        if sampler.learn(at_least=sampler.enough if asynchronous and evaluator.outstanding else 1):  # 12-15
            yield sampler.known  # 16
        if sampler.verdict.stop or (evaluator.interrupted() and not evaluator.outstanding):  # 3
            return
        size = min(reserve + 1, sampler.n_left) if asynchronous and evaluator.outstanding else None
        evaluator.start(sampler.choose(size))  # 4-10
        reserve = max(evaluator.poll(), reserve // 2, 1)
