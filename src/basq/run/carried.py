"""Objects that are pickled with a result between processes, and do not stand in its way; no file holds them."""

import pickle
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Carried(Generic[T]):
    """An object that is pickled on its own, by value where it has to be, and read again only when it is asked for.

    So a result can travel whatever the user's functions hold, also to where they cannot be imported.
    """

    def __init__(self, value: T) -> None:
        self._value: T | None = value
        self._blob: bytes | None = None

    def __getstate__(self) -> dict[str, Any]:
        import cloudpickle

        blob = self._blob
        if blob is None and self._value is not None:
            try:
                blob = cloudpickle.dumps(self._value)
            except Exception:  # locks, open files: whoever reads it is asked for the object then
                blob = None
        return {"_value": None, "_blob": blob}

    def get(self) -> T | None:
        """The object; None if it could not be kept, or not be read here."""
        if self._value is None and self._blob is not None:
            try:
                self._value = pickle.loads(self._blob)
            except Exception:  # its modules cannot be imported here
                return None
        return self._value
