"""Which problem a store belongs to: recognised again, and refused when it is another one."""

import hashlib
import logging
import platform
import time
from typing import Any

import numpy as np

from basq.cheap.model import Model
from basq.errors import AbsentError, StoreError
from basq.evaluation.store import Store
from basq.method import Method
from basq.plain import Absent, NotPlainError, pack, unpack
from basq.prior import Prior
from basq.run.arguments import installed_method
from basq.run.ingredients import bare, code_of, essence, ingredients
from basq.types import LogLikelihood
from basq.version import __version__

LIKELIHOOD = "log_likelihood"
"""The part of a model that judges outputs, and makes none."""
WAY_OUT = (
    "Give another file name (on the command line, another --store) or, if it is not needed any more, delete this file. "
    "If its values are still good, reuse them with evaluations={path!r} next to a new store."
)


def save(store: Store, prior: Prior, method: Method[Any], seed: int, *, cheap: Prior | None) -> None:
    """Write into a new store what makes the problem, readable and as plain data."""
    if cheap is not None:
        store.set(cheap=repr(cheap), cheap_fingerprint=fingerprint(cheap))
    store.set(
        basq=__version__,
        names=list(prior.names),
        prior=repr(prior),
        fingerprint=fingerprint(prior),
        method=repr(method),
        seed=str(seed),  # more digits than an SQLite integer
        problem=_as_data(prior, method, cheap),
        started=time.time(),
    )


def settings(store: Store) -> dict[str, Any]:
    """How a run was made and how far it is, as far as its store knows."""
    keys = ("basq", "method", "seed", "batch_size", "max_evals", "dlogz", "on_error", "n_given", "started", "command")
    out = {key: store.get(key) for key in keys}
    function = store.get("function")
    path = None if store.path is None else str(store.path)
    first, last, seconds = store.times()
    return out | {
        "log_likelihood": function and function["name"],
        "not_compared": function and path and _not_compared(function),
        "store": path,
        "started": out["started"] or first,
        "last_call": last,
        "seconds": seconds,
        "pending": store.counts()["pending"],
        "shared": store.n_shared,
    }


def is_new(store: Store) -> bool:
    """Whether a store does not know its problem yet."""
    return store.get("fingerprint") is None


def _as_data(prior: Prior, method: Method[Any], cheap: Prior | None) -> bytes:
    """What makes the problem, as bytes for a store; of functions, and a method of somebody else's, only the names."""
    try:
        pack(method)
        known: Any = method
    except NotPlainError:
        known = Absent(f"the method {method!r}")
    return pack((prior, known, cheap), strict=False)


def load(store: Store, *, allow_pickle: bool = False) -> tuple[Prior, Method[Any], Prior | None]:
    """The prior and the method of a store, and the prior of its cheap parameters.

    Functions that are not in the file are `Absent`. With ``allow_pickle``, those of a store of old are read as it has
    them, and written anew as plain data.
    """
    blob = store.get("problem")
    if blob is None and is_new(store):
        raise StoreError(f"{store} holds no run yet.")
    if blob is None:
        prior, method, cheap = _unpickled(store, allow_pickle=allow_pickle)
        migrate(store, prior, method, cheap)
        return prior, method, cheap
    try:
        prior, method, cheap = unpack(blob)
        assert isinstance(prior, Prior)
        assert isinstance(cheap, Prior | None)
    except (NotPlainError, AssertionError, TypeError, ValueError) as error:
        raise StoreError(
            f"The prior in {store} cannot be read by this version of basq ({error}); "
            f"build it again and open the store with Sampler(prior, store={str(store.path)!r})."
        ) from error
    return prior, installed_method(store.get("method")) or method if isinstance(method, Absent) else method, cheap


def _unpickled(store: Store, *, allow_pickle: bool) -> tuple[Prior, Method[Any], Prior | None]:
    """What a store of old holds as pickled objects."""
    import pickle

    path = str(store.path)
    if store.get("objects") is None:
        raise StoreError(f"The prior in {store} is lost; build it again and go on with Sampler(prior, store={path!r}).")
    if not allow_pickle:
        raise StoreError(
            f"{store} was written by an older basq, as pickled objects, which can run any code when they are read. "
            f"Give the prior, as Sampler(prior, store={path!r}); or, if you trust whoever gave you the file, "
            f"Sampler.open({path!r}, allow_pickle=True), on the command line --trust. It holds plain data from then on."
        )
    try:
        prior, method, cheap = pickle.loads(store.get("objects"))
    except Exception as error:
        raise StoreError(
            f"The prior in {store} cannot be read here ({type(error).__name__}: {error}); "
            f"build it again and open the store with Sampler(prior, store={path!r})."
        ) from error
    return prior, method, cheap


def migrate(store: Store, prior: Prior, method: Method[Any], cheap: Prior | None) -> None:
    """Write the problem of a store of old as plain data, in the place of pickled objects."""
    if store.get("problem") is None:
        with store.transaction():
            store.set(problem=_as_data(prior, method, cheap))
            store.drop("objects")


def chosen(store: Store, own: Method[Any], given: Method[Any] | None) -> Method[Any]:
    """The method of a store: its own, or the one that is given in the place of one that it cannot hold."""
    if given is None:
        if isinstance(own, Absent):
            raise AbsentError(
                f"{store} was made with {own.name}, which is no part of basq, and stores hold no code: give it again, "
                f"as Sampler.open({str(store.path)!r}, method=…)."
            )
        return own
    if store.get("method") != repr(given):
        _refuse(store, f"method={store.get('method')}", f"method={given!r}")
    return given


def check(store: Store, prior: Prior, method: Method[Any], seed: int | None, *, cheap: Prior | None) -> None:
    """Refuse a store of another problem, saying what differs."""
    known = store.get("cheap_fingerprint")
    same = (known is None) == (cheap is None)
    if same and cheap is not None:
        same = np.shape(known) == np.shape(fingerprint(cheap)) and np.allclose(known, fingerprint(cheap), rtol=1e-7)
    if not same:
        _refuse(store, f"cheap parameters {store.get('cheap')}", f"cheap parameters {cheap!r}")
    names = tuple(store.get("names"))
    if names != prior.names:
        _refuse(store, f"parameters {', '.join(names)}", f"parameters {', '.join(prior.names)}")
    here, there = (np.array(f, dtype=float) for f in (fingerprint(prior), store.get("fingerprint")))
    if here.shape != there.shape or not np.allclose(here, there, rtol=1e-7, atol=1e-12, equal_nan=True):
        _refuse(store, store.get("prior"), repr(prior), _difference(prior, here, there))
    if store.get("method") != repr(method):
        _refuse(store, f"method={store.get('method')}", f"method={method!r}")
    if seed is not None and store.get("seed") != str(seed):
        _refuse(store, f"seed={store.get('seed')}", f"seed={seed} (leave it out to go on with the old one)")


def check_function(store: Store, function: LogLikelihood | Model) -> None:
    """Refuse a store whose values come from other code, as far as the code can be seen.

    Without such a value nothing can be mixed up: a function that has always failed may be mended, and its calls are
    made again.
    """
    mine, known = describe(function), store.get("function")
    hidden = _not_compared(mine)
    if hidden and store.path is not None:
        logging.getLogger("basq").info("%s: not compared when the run is resumed: %s", store, hidden)
    if known is None:
        store.set(function=mine)
    elif (change := difference(mine, known)) is not None:
        if store.has_own_values():
            raise StoreError(f"{store} holds values of another log-likelihood: {change}. {_way_out(store)}")
        with store.driving():  # nobody is about to write a value of the old one
            store.begin_again(simulate=_simulator(mine) != _simulator(known))
            store.set(function=mine)


def _not_compared(function: dict[str, Any]) -> str | None:
    """What of a described function cannot be seen, for people."""
    return ", ".join(f"{name} ({why})" for name, why in function.get("unseen", {}).items()) or None


def _simulator(function: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The part of a described model that makes its outputs; of a log-likelihood, all of it."""
    simulate, *rest = function["code"].split(" and ")
    data = function.get("data", {})
    return [simulate, *rest[1:]], {n: value for n, value in data.items() if not n.startswith(f"{LIKELIHOOD}: ")}


def _refuse(store: Store, there: str, here: str, detail: str = "") -> None:
    said = " ".join(filter(None, [f"now given: {here}.", detail, _way_out(store)]))
    raise StoreError(f"{store} is of another problem: it has {there}; {said}")


def _way_out(store: Store) -> str:
    return WAY_OUT.format(path=str(store.path))


def fingerprint(prior: Prior) -> list[list[float]]:
    """Where the prior maps fixed points of standard space, and how it weighs them: equal for equal priors only."""
    u = np.random.default_rng(20220607).standard_normal((6, prior.n_dim))
    columns = [prior.from_standard(u), prior.measure.log_pdf(u)[:, None], prior.log_weight(u)[:, None]]
    if prior.periodic.any():  # a box has the same map
        columns.append(np.tile(prior.periodic, (len(u), 1)))
    table: list[list[float]] = np.concatenate(columns, axis=1).tolist()
    return table


def _difference(prior: Prior, here: np.ndarray, there: np.ndarray) -> str:
    if here.shape != there.shape:
        return ""
    differs = ~np.isclose(here, there, rtol=1e-7, atol=1e-12, equal_nan=True).all(axis=0)
    names = [name for name, d in zip(prior.names, differs, strict=False) if d]
    return f"They differ in {', '.join(names)}." if names else "They differ in their density."


def describe(function: LogLikelihood | Model) -> dict[str, Any]:
    """Name, compiled code and data of a function, or of those of a model; comments and layout do not count."""
    if isinstance(function, Model):
        functions = {"simulate": function.simulate, LIKELIHOOD: function.log_likelihood, "keep": function.keep}
        parts = {role: describe(f) for role, f in functions.items() if f is not None}
        joined = {key: " and ".join(part[key] for part in parts.values()) for key in ("name", "code")}
        data, unseen = (
            {f"{role}: {name}": value for role, part in parts.items() for name, value in part[key].items()}
            for key in ("data", "unseen")
        )
        return joined | {"python": parts["simulate"]["python"], "data": data, "unseen": unseen}
    body = bare(function)
    code = code_of(body)
    data, unseen = ingredients(function)
    return {
        "name": getattr(body, "__qualname__", type(body).__qualname__),
        "code": hashlib.sha256(repr(essence(code)).encode()).hexdigest() if code else "",
        "python": ".".join(platform.python_version_tuple()[:2]),  # compiled code differs between versions
        "data": data,
        "unseen": unseen,
    }


def difference(mine: dict[str, Any], known: dict[str, Any]) -> str | None:
    """What differs between two described functions, as far as both can be seen; None if nothing."""
    if mine["python"] != known["python"]:
        return None
    if mine["code"] != known["code"]:
        same = mine["name"] == known["name"]
        return f"the code of {mine['name']} has changed" if same else f"it was {known['name']}, not {mine['name']}"
    if "data" not in known:  # a store of before, when code was all that was known
        return None
    here, there, hidden = mine["data"], known["data"], {*mine["unseen"], *known["unseen"]}
    names = sorted(n for n in here.keys() | there.keys() if n not in hidden and here.get(n) != there.get(n))
    return f"in {mine['name']}, {' and '.join(f'{name} has changed' for name in names)}" if names else None
