"""The method of the paper, with every switch of its ablations, and what its parts are made of."""

from basq.paper.method import Paper
from basq.paper.models import Model, Surrogate
from basq.paper.proposals import Candidates, Proposal
from basq.paper.target import Target
from basq.paper.training import Data, Training

__all__ = ["Candidates", "Data", "Model", "Paper", "Proposal", "Surrogate", "Target", "Training"]
