"""Linear algebra against NumPy and SciPy, and the jitter policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from basq.errors import FitError
from basq.numerics.linalg import (
    JITTERS,
    cho_inverse,
    cho_inverse_upper,
    cho_solve,
    cholesky,
    inverse_lower,
    log_det,
    product_lower,
    solve_lower,
    square_distances,
    upper_blocks,
    whiten,
)


def read_only(a):
    a = np.array(a, dtype=float)
    a.flags.writeable = False
    return a


def positive_definite(n, seed=0):
    root = np.random.default_rng(seed).standard_normal((n, n))
    return read_only(root @ root.T + 0.5 * np.eye(n))


def rank_deficient(n, rank, seed=0):
    root = np.random.default_rng(seed).standard_normal((n, rank))
    return read_only(root @ root.T)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cholesky_of_a_well_conditioned_matrix_adds_nothing(n, order):
    a = np.asarray(positive_definite(n), order=order)
    a.flags.writeable = False
    before = a.copy()
    factor, jitter = cholesky(a)
    assert jitter == 0.0
    np.testing.assert_allclose(factor @ factor.T, a, rtol=1e-13, atol=1e-13 * n)
    np.testing.assert_array_equal(factor, np.tril(factor))
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_cholesky_of_a_singular_matrix_says_how_much_it_added(scale):
    a = read_only(scale * rank_deficient(30, 4))
    before = a.copy()
    factor, jitter = cholesky(a)
    mean_diagonal = np.diag(a).mean()
    assert any(np.isclose(jitter, relative * mean_diagonal, rtol=1e-12) for relative in JITTERS[1:])
    assert jitter <= 1e-8 * mean_diagonal
    np.testing.assert_allclose(factor @ factor.T, a + jitter * np.eye(30), atol=1e-13 * mean_diagonal)
    np.testing.assert_array_equal(a, before)


def test_cholesky_takes_the_least_jitter_that_works():
    a = np.diag([1.0, 1.0, 1.0, -3e-7])
    _, jitter = cholesky(read_only(a))
    assert jitter == pytest.approx(1e-6 * np.diag(a).mean(), rel=1e-12)


@pytest.mark.parametrize(
    "a",
    [
        np.diag([1.0, -1.0]),
        np.diag([1.0, 1.0, -0.01]),
        -np.eye(3),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
    ],
)
def test_cholesky_refuses_an_indefinite_matrix(a):
    with pytest.raises(FitError, match="not positive definite"):
        cholesky(read_only(a))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_cholesky_refuses_what_is_not_finite(bad):
    a = np.array(positive_definite(4))
    a[2, 1] = a[1, 2] = bad
    with pytest.raises(FitError, match="NaN or inf"):
        cholesky(read_only(a))


def test_cholesky_of_an_empty_matrix():
    factor, jitter = cholesky(np.zeros((0, 0)))
    assert factor.shape == (0, 0)
    assert jitter == 0.0


@pytest.mark.parametrize("shape", [(9,), (9, 1), (9, 4)])
def test_solves(shape):
    a = positive_definite(9)
    factor = read_only(cholesky(a)[0])
    b = read_only(np.random.default_rng(1).standard_normal(shape))
    half = solve_lower(factor, b)
    full = cho_solve(factor, b)
    assert half.shape == full.shape == shape
    np.testing.assert_allclose(factor @ half, b, atol=1e-13)
    np.testing.assert_allclose(a @ full, b, atol=1e-12)


def test_inverse():
    a = positive_definite(12)
    factor = read_only(cholesky(a)[0])
    inverse = cho_inverse(factor)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(inverse @ a, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-10, atol=1e-12)


def test_upper_triangle_of_the_inverse():
    a = positive_definite(12)
    upper = cho_inverse_upper(cholesky(a)[0])
    np.testing.assert_array_equal(upper, np.triu(upper))
    np.testing.assert_allclose(upper, np.triu(np.linalg.inv(a)), rtol=1e-10, atol=1e-12)


def test_cholesky_reads_the_upper_triangle_only():
    a = positive_definite(8)
    half = np.triu(a) + np.tril(np.full((8, 8), np.nan), -1)
    np.testing.assert_array_equal(cholesky(read_only(half))[0], cholesky(a)[0])


@pytest.mark.parametrize("n", [0, 1, 30, 700])
def test_upper_blocks_cover_the_upper_triangle(n):
    seen = np.zeros((n, n), dtype=int)
    for rows, columns in upper_blocks(n):
        seen[rows, columns] += 1
        assert rows.start == columns.start
    assert seen.max(initial=0) <= 1
    np.testing.assert_array_equal(np.triu(seen), np.triu(np.ones((n, n))))


def test_inverse_of_a_singular_factor():
    factor = np.eye(3)
    factor[1, 1] = 0.0
    with pytest.raises(FitError, match="singular"):
        cho_inverse(read_only(factor))


def test_log_det():
    a = positive_definite(6)
    assert log_det(a) == pytest.approx(np.log(np.linalg.det(a)), rel=1e-12)
    assert log_det(1e-200 * np.eye(6)) == pytest.approx(-1200 * np.log(10.0), rel=1e-12)


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("centre", [0.0, 1e3, 1e6])
def test_square_distances(d, centre):
    rng = np.random.default_rng(d)
    a = read_only(centre + rng.standard_normal((23, d)))
    b = read_only(centre + 3.0 * rng.standard_normal((17, d)) + 1.0)
    np.testing.assert_allclose(square_distances(a, b), cdist(a, b, "sqeuclidean"), rtol=1e-11, atol=1e-12)


def test_square_distances_to_itself_are_never_negative():
    x = read_only(1e5 + np.random.default_rng(0).standard_normal((50, 3)))
    found = square_distances(x, x)
    assert (found >= 0.0).all()
    assert np.diag(found).max() < 1e-12
    np.testing.assert_allclose(found, cdist(x, x, "sqeuclidean"), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", [((0, 2), (3, 2)), ((3, 2), (0, 2)), ((0, 2), (0, 2))])
def test_square_distances_of_nothing(shape):
    a, b = np.zeros(shape[0]), np.zeros(shape[1])
    assert square_distances(a, b).shape == (len(a), len(b))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.floats(-1e4, 1e4), st.integers(0, 2**32 - 1))
def test_square_distances_in_any_shape(n, m, d, offset, seed):
    rng = np.random.default_rng(seed)
    a, b = offset + rng.standard_normal((n, d)), offset + rng.standard_normal((m, d))
    np.testing.assert_allclose(square_distances(a, b), cdist(a, b, "sqeuclidean"), rtol=1e-10, atol=1e-12)


def test_whiten():
    cov = positive_definite(4)
    x = read_only(np.random.default_rng(2).standard_normal((11, 4)))
    z = whiten(cov, x)
    assert z.shape == x.shape
    expected = np.einsum("ij,jk,ik->i", x, np.linalg.inv(cov), x)
    np.testing.assert_allclose((z * z).sum(axis=1), expected, rtol=1e-12)
    np.testing.assert_allclose(cdist(z, z), cdist(x, x, "mahalanobis", VI=np.linalg.inv(cov)), atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_inverse_of_a_triangle_and_products_with_it(order):
    a, b = positive_definite(7), np.array(np.random.default_rng(1).normal(size=(7, 4)), order=order)
    factor = cholesky(a)[0]
    inverse = inverse_lower(factor)
    np.testing.assert_allclose(inverse @ factor, np.eye(7), atol=1e-12)
    before = b.copy()
    np.testing.assert_allclose(product_lower(inverse, b), solve_lower(factor, b), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(b, before)
    assert product_lower(inverse, b[:, :0]).shape == (7, 0)
    with pytest.raises(FitError, match="singular"):
        inverse_lower(np.zeros((2, 2)))
