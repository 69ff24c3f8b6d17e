"""Known objects as bytes and back; and bytes that are something else."""

import json
from collections import OrderedDict
from types import MappingProxyType

import numpy as np
import pytest

from basq.auto.settings import Settings
from basq.errors import AbsentError
from basq.method import Audit
from basq.numerics.gaussians import GaussianMixture
from basq.plain import Absent, NotPlainError, pack, unpack
from basq.plain.codec import HEAD, LENGTH
from basq.plain.known import KNOWN, class_of
from basq.results.record import Record
from basq.status import Status


def tree(blob):
    return json.loads(blob[len(HEAD) + LENGTH :][: int.from_bytes(blob[len(HEAD) :][:LENGTH], "little")])


def made_of(nodes, tables=(), data=b""):
    """Bytes with a tree of one's own."""
    text = json.dumps([nodes, tables]).encode()
    return HEAD + len(text).to_bytes(LENGTH, "little") + text + data


def test_every_known_class_is_there():
    assert len(KNOWN) > 100
    for name in KNOWN:
        assert class_of(name).__qualname__ == name.partition(":")[2]


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2**80, -0.1, float("inf"), "text", (1, (2.5, "a")), [1, [2]], {"a": 1, 2: (3,)},
        frozenset({1, 2}), {1}, Status.CONVERGED, Audit(1, 2, 0.5, 0.1, -0.0, True, (0.3,)), Settings(),
    ],
)  # fmt: skip
def test_values_come_back_as_they_were(value):
    found = unpack(pack(value))
    assert found == value
    assert type(found) is type(value)


def test_mappings_come_back_as_dicts():
    assert unpack(pack([MappingProxyType({"a": 1}), OrderedDict(b=2)])) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "bool", "c16", "U3", ">f8"])
def test_arrays_come_back_bit_for_bit_in_the_same_order(dtype, order):
    array = np.asarray(np.arange(6).reshape(2, 3).astype(dtype), order=order)
    found = unpack(pack({"a": array}))["a"]
    assert found.dtype == array.dtype
    assert found.tobytes("A") == array.tobytes("A")
    assert found.flags.f_contiguous == array.flags.f_contiguous
    assert found.flags.writeable


def test_views_and_empty_arrays():
    table = np.arange(24.0).reshape(4, 6)
    for part in table[::2, 1:4], table[:, 0], table[:0], np.array(3.0), np.array([np.nan, -np.inf]):
        assert np.array_equal(unpack(pack(part)), part, equal_nan=True)


def test_numbers_of_numpy_keep_their_type():
    for number in np.float64(0.1), np.intp(3), np.bool_(True), np.float32(0.5):
        found = unpack(pack(number))
        assert found == number
        assert type(found) is type(number)


def test_what_is_met_twice_is_written_once():
    array = np.arange(1000.0)
    record = Record(1, 0.0, 0.1, {"fit": 0.1}, {"a": array})
    blob = pack((array, record, record))
    assert len(blob) < 9000
    one, a, b = unpack(blob)
    assert a is b
    assert a.info["a"] is one


def test_objects_that_are_given_again_are_not_written():
    prior = object()
    blob = pack({"prior": prior}, [prior])
    other = object()
    assert unpack(blob, [other])["prior"] is other
    with pytest.raises(NotPlainError):
        unpack(blob)


def test_cached_properties_are_left_out_unless_they_are_meant_to_be_kept():
    mixture = GaussianMixture.standard(2)
    _ = mixture.roots
    assert "roots" not in unpack(pack(mixture)).__dict__


class Own:
    pass


def helper(x):
    return x


@pytest.mark.parametrize("value", [Own(), Own, helper, lambda x: x, np.array([Own()]), print, object()])
def test_code_and_strange_objects_are_refused(value):
    with pytest.raises(NotPlainError, match="cannot be written as plain data"):
        pack([value])


def test_or_stand_for_themselves_by_name():
    found = unpack(pack({"f": helper}, strict=False))["f"]
    assert found == Absent("the function plain.test_codec.helper")
    for use in (lambda: found(1.0), lambda: found.anything):
        with pytest.raises(AbsentError, match=r"the function plain\.test_codec\.helper is needed .* prior=…"):
            use()
    assert unpack(pack(found, strict=False)) == found  # saved once more


ATTACKS = [
    ["object", "os:system", {}, {}],
    ["object", "cli.model:Model", {"log_likelihood": None, "prior": None, "place": ""}, {}],
    ["object", "builtins:eval", {}, {}],
    ["object", "results.record:Record", {"__class__": 1}, {}],
    ["object", "results.record:Record", {"n_evals": 1}, {}],
    ["object", "gp.gp:GP", {}, {"_weighted_sum": 1}],
    ["object", ["tuple"], {}, {}],
    ["law", ["tuple", "frozen", "rv_histogram", ["tuple"], ["dict"]]],
    ["law", ["tuple", "frozen", "__builtins__", ["tuple"], ["dict"]]],
    ["law", ["tuple", "newer", "make_distribution", ["dict"]]],
    ["law", ["tuple", "frozen", "norm", ["tuple"], ["dict", ["__class__", 1]]]],
    ["law", ["tuple", "os"]],
    ["member", "results.record:Record", 1],
    ["member", "status:Status", "nonsense"],
    ["array", 0],
    ["number", "O", 0],
    ["given", 0],
    ["same", -1],
    ["same", 7],
    ["call", "os.system", "true"],
    {"py/object": "os.system"},
    ["dict", [["list"], 1]],
    [],
]


@pytest.mark.parametrize("nodes", ATTACKS, ids=str)
def test_nothing_but_known_classes_with_their_own_fields_is_made(nodes):
    with pytest.raises(NotPlainError):
        unpack(made_of(nodes))


@pytest.mark.parametrize(
    "table",
    [
        ["|O", [1], "C", 0], ["<f8", [3], "C", 0], ["<f8", [-1], "C", 0], ["<f8", [1], "C", -8], ["<f8", [1], "C", 9],
        ["<f8", [2**62, 4], "C", 0], ["<f8", [1], "K", 0], ["<f8", 1, "C", 0], ["<f8", [1.0], "C", 0],
        3, ["<V8", [1], "C", 0],
    ],
    ids=str,
)  # fmt: skip
def test_arrays_that_are_none(table):
    with pytest.raises(NotPlainError):
        unpack(made_of(["array", 0], [table], b"8 bytes."))


def test_damage_of_any_kind_is_one_error():
    blob = pack({"a": np.arange(9.0), "settings": Settings(), "audit": [Audit(1, 2, 0.5, 0.1, 0.0, True)]})
    rng, n_wrong = np.random.default_rng(5), 0
    for _ in range(400):
        damaged = bytearray(blob)
        for place in rng.integers(len(blob), size=rng.integers(1, 4)):
            damaged[place] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.3:
            del damaged[rng.integers(len(blob)) :]
        try:
            unpack(bytes(damaged))
        except NotPlainError:
            n_wrong += 1
    assert n_wrong > 200  # the others are other numbers: what a checksum is for
    deep = made_of(0).replace(b"[0, []]", b"[" * 100_000)
    with pytest.raises(NotPlainError):
        unpack(deep)
