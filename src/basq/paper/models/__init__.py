"""Models of the likelihood: one file each, and the table of those that have a name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from basq.paper.models.base import Model, Surrogate
from basq.paper.models.bbq import Bbq
from basq.paper.models.vanilla import Vanilla
from basq.paper.models.wsabi import Wsabi, WsabiModel

ModelName = Literal["vanilla", "wsabi-l", "wsabi-m", "bbq"]

MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "vanilla": Vanilla,
        "wsabi-l": WsabiModel(matched=False),
        "wsabi-m": WsabiModel(matched=True),
        "bbq": Bbq,
    }
)

__all__ = ["MODELS", "Bbq", "Model", "ModelName", "Surrogate", "Vanilla", "Wsabi"]
