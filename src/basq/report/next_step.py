"""What to do next about an answer that is not final: a command or a line of Python, to be copied."""

import re
import shlex
from typing import TYPE_CHECKING

from basq.status import Status

if TYPE_CHECKING:
    from basq.results.result import Result

REACHABLE = re.compile(r"give dlogz = ([\d.e-]+) or more")
"""How a run says that its target is out of reach, where that is all that is missing."""


def next_step(result: "Result") -> str | None:
    """The next step; None where there is none, or where it is to look for a mistake."""
    if result.converged or result.certificate is not None:
        return None
    if result.status.is_open:
        return _going_on(result, {})
    most = result.settings.get("max_evals")
    if result.status is not Status.NOT_CONVERGED or not most:
        return None
    reachable = REACHABLE.search(result.why)
    return _going_on(result, {"dlogz": reachable[1]} if reachable else {"max_evals": str(2 * most)})


def _going_on(result: "Result", changes: dict[str, str]) -> str | None:
    """How the same run goes on, with changes."""
    store, python = result.settings.get("store"), "".join(f", {key}={value}" for key, value in changes.items())
    if store and result.settings.get("command"):
        options = [f"--{key.replace('_', '-')} {value}" for key, value in changes.items()]
        return " ".join(["basq resume", shlex.quote(store), *options])
    if store:
        return f"basq.infer(log_likelihood, prior, store={store!r}{python})"
    if "max_evals" in changes:
        function = "" if result.outputs is not None else "log_likelihood=log_likelihood, "
        return f"result.again({function}max_evals={changes['max_evals']})"
    return f"basq.infer(log_likelihood, prior{python})" if changes else None
