import numpy as np
import pytest

from basq.numerics.fold import Fold, SignedPermutation, group, keys


def exchange(d, *pairs, reflected=()):
    place, sign = np.arange(d), np.ones(d)
    for i, j in pairs:
        place[[i, j]] = j, i
    sign[list(reflected)] = -1.0
    return SignedPermutation(place, sign)


THREE_LABELS = exchange(6, (0, 1), (3, 4)), exchange(6, (1, 2), (4, 5))
TURNED = exchange(3, (0, 1), reflected=[2])


def test_one_after_the_other():
    rng = np.random.default_rng(0)
    u, (a, b) = rng.normal(size=(4, 6)), THREE_LABELS
    np.testing.assert_array_equal(a.after(b).of(u), a.of(b.of(u)))
    np.testing.assert_array_equal(a.origin(a.of(u)), u)


@pytest.mark.parametrize(("generators", "size"), [(THREE_LABELS, 6), ([TURNED], 2), ([exchange(4, reflected=[1])], 2)])
def test_a_group_is_closed_and_begins_with_the_identity(generators, size):
    found = group(generators)
    assert len(found) == len({m.key for m in found}) == size
    assert {a.after(b).key for a in found for b in found} == {m.key for m in found}
    u = np.random.default_rng(0).normal(size=(3, len(generators[0].place)))
    np.testing.assert_array_equal(found[0].of(u), u)


def test_too_many_labels_are_left_alone():
    assert len(group([exchange(6, (k, k + 1)) for k in range(5)])) == 1


@pytest.mark.parametrize("generators", [THREE_LABELS, [TURNED]])
class TestFold:
    def test_keeps_the_image_that_is_nearest_to_the_centre(self, generators):
        rng = np.random.default_rng(1)
        maps = group(generators)
        d = len(maps[0].place)
        fold, u = Fold(maps, rng.normal(size=d)), rng.normal(size=(50, d))
        every = np.stack([m.of(u) for m in maps])
        nearest = ((every - fold.centre) ** 2).sum(axis=2).argmin(axis=0)
        np.testing.assert_array_equal(fold.of(u), every[nearest, np.arange(50)])
        np.testing.assert_array_equal(fold.inside(u), nearest == 0)
        assert fold.inside(fold.of(u)).all()

    def test_all_images_of_a_point_are_one(self, generators):
        rng = np.random.default_rng(2)
        maps = group(generators)
        d = len(maps[0].place)
        fold, u = Fold(maps, rng.normal(size=d)), rng.normal(size=(200, d))
        unfolded = fold.unfolded(u, rng)
        np.testing.assert_array_equal(fold.of(unfolded), fold.of(u))
        assert len({m.tobytes() for m in fold.inside(unfolded).reshape(-1, 1)}) == 2  # not all are those that are kept

    def test_the_edge_is_half_as_far_as_the_nearest_image(self, generators):
        maps = group(generators)
        fold = Fold(maps, np.random.default_rng(3).normal(size=len(maps[0].place)))
        assert fold.central(fold.centre)
        assert fold.central(2.0 * fold.centre)
        assert not fold.central(maps[1].of(fold.centre[None])[0])


def test_a_point_at_the_edge_is_not_central():
    fold = Fold(group([TURNED]), np.array([1.0, 2.0, 3.0]))
    assert not fold.central(np.array([3.0, 0.0, 0.5]))


def test_same_group():
    a, b = Fold(group([TURNED]), np.ones(3)), Fold(group([exchange(3, (0, 1))]), np.ones(3))
    assert a.same_group(Fold(group([TURNED]), np.zeros(3)))
    assert not a.same_group(b)
    assert not a.same_group(None)


def test_keys_do_not_see_rounding():
    u = np.array([[0.1, -0.0], [0.2, 1.0]])
    assert keys(u) == keys(u + 1e-12)
    assert len(set(keys(u))) == 2
