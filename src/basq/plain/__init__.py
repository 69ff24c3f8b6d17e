"""Known objects as plain data and back: names, numbers, texts and arrays, and nothing that is code.

What stores and saved results hold. Reading it makes objects of a fixed list of classes (`known`), with the fields that
they have, and calls nothing: a file of a stranger can be wrong, but not dangerous. Functions of the user's are not
written; an `Absent` stands in their place, and says their names when one of them is needed.
"""

from basq.plain.absent import Absent
from basq.plain.codec import NotPlainError, pack, unpack
from basq.plain.known import UNKEPT

__all__ = ["UNKEPT", "Absent", "NotPlainError", "pack", "unpack"]
