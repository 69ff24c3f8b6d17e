"""Parameters on a circle, with the default engine."""

import numpy as np
import pytest
from scipy import integrate, special

import basq
from basq.errors import InputError, StoreError
from basq.prior.periodic import Turn

TURN = 2.0 * np.pi
VARIANCE = float(integrate.quad(lambda t: t**2 * np.exp(10.0 * (np.cos(t) - 1.0)), -np.pi, np.pi)[0]) / (
    TURN * float(special.ive(0, 10.0))
)


def run(n_dim, centre, kappa=10.0, lo=0.0, **options):
    """A product of von Mises laws, and its exact log-evidence."""
    prior = {f"phase{i + 1}": basq.periodic(lo, lo + TURN) for i in range(n_dim)}
    result = basq.infer(
        lambda x: float(kappa * (np.cos(x - centre) - 1.0).sum()), prior, **({"seed": 0, "progress": False} | options)
    )
    return result, n_dim * float(np.log(special.ive(0, kappa)))


@pytest.mark.parametrize("n_dim", [1, 2, 3])
@pytest.mark.parametrize("kappa", [10.0, 200.0])
def test_a_posterior_at_the_cut_is_as_easy_as_elsewhere(n_dim, kappa):
    there, truth = run(n_dim, 0.0, kappa)
    middle, _ = run(n_dim, np.pi, kappa)
    assert there.converged
    assert there.log_evidence == pytest.approx(truth, abs=0.02)
    assert there.n_evals <= 1.2 * middle.n_evals
    x = there.sample(4000, seed=0)
    assert ((x >= 0.0) & (x <= TURN)).all()
    resultant = np.exp(1j * x).mean(axis=0)
    assert np.abs(resultant) == pytest.approx(special.ive(1, kappa) / special.ive(0, kappa), abs=0.01)
    assert np.angle(resultant) == pytest.approx(0.0, abs=0.1 / np.sqrt(kappa))


def test_answers_turn_with_the_question():
    answers = [run(2, centre, lo=lo)[0] for centre, lo in [(0.0, 0.0), (1.0, 0.0), (np.pi, 0.0), (0.3, 0.3 - np.pi)]]
    assert np.ptp([a.log_evidence for a in answers]) < 0.03
    # the variance of a von Mises law of concentration 10, about its mean
    assert [a.cov[0, 0] for a in answers] == pytest.approx(np.full(4, VARIANCE), rel=0.12)
    means = [np.exp(1j * (a.mean - c)) for a, c in zip(answers, (0.0, 1.0, np.pi, 0.3), strict=True)]
    assert np.angle(means) == pytest.approx(0.0, abs=0.03)


@pytest.mark.parametrize("n_dim", [1, 2, 3])
def test_densities_go_on_round_the_circle(n_dim):
    result, _ = run(n_dim, 0.0)
    one = result.marginal("phase1")
    t = np.array([0.0, 0.3, TURN - 0.3, TURN])
    exact = np.exp(10.0 * (np.cos(t) - 1.0)) / (TURN * special.ive(0, 10.0))
    assert one.pdf(t) == pytest.approx(exact, rel=0.06)
    low, high = one.ppf([0.05, 0.95])
    assert (low, high) == pytest.approx((TURN - 0.53, 0.53), abs=0.04)
    assert one.ppf(one.cdf([0.1, 6.2])) == pytest.approx([0.1, 6.2], abs=1e-6)
    assert one.pdf([-0.1, TURN + 0.1]).tolist() == [0.0, 0.0]
    assert result.plot_corner().axes
    if n_dim > 1:
        corners = np.array([[0.0, 0.0], [0.0, TURN], [TURN, 0.0], [TURN, TURN]])
        assert result.marginal(["phase1", "phase2"]).pdf(corners) == pytest.approx(exact[0] ** 2, rel=0.1)


def von_mises(t, kappa):
    return np.exp(kappa * (np.cos(t) - 1.0)) / (TURN * special.ive(0, kappa))


def test_densities_of_three_of_four_are_the_same_at_the_cut_as_elsewhere():
    x = np.array([[0.02, 0.01, 0.0], [0.05, 0.03, 0.02]])
    densities = [run(4, c, 200.0)[0].marginal(["phase1", "phase2", "phase3"]).pdf((x + c) % TURN) for c in (0.0, np.pi)]
    assert densities[0] == pytest.approx(densities[1], rel=0.3)  # smoothed from samples
    assert densities[0] == pytest.approx(von_mises(x, 200.0).prod(axis=1), rel=0.3)


def test_conditionals_go_on_round_the_circle():
    result, _ = run(2, 0.0)
    given = result.conditional({"phase2": 0.1})
    assert given.pdf([0.0, 0.3, TURN - 0.3]) == pytest.approx(von_mises(np.array([0.0, 0.3, -0.3]), 10.0), rel=0.1)
    assert given.ppf([0.05, 0.95]) == pytest.approx([TURN - 0.53, 0.53], abs=0.05)


def test_twins_across_the_cut_are_found_by_their_labels():
    """Modes at (1, 4.3) and (4.3, 1)."""

    def log_likelihood(x):
        a, b = (50.0 * (np.cos(x - np.array(c)) - 1.0).sum() for c in ((1.0, 4.3), (4.3, 1.0)))
        return float(np.logaddexp(a, b))

    result = basq.infer(log_likelihood, {k: basq.periodic(0, TURN) for k in "ab"}, seed=0, progress=False)
    assert result.log_evidence == pytest.approx(np.log(2.0) + 2.0 * np.log(special.ive(0, 50.0)), abs=0.05)


def test_the_same_circle_cut_elsewhere_keeps_all_calls():
    result, truth = run(2, 0.1)
    again = result.again(prior={"phase1": basq.periodic(-np.pi, np.pi)})
    assert again.n_evals == result.n_evals
    assert "outside" not in again.message
    assert again.log_evidence == pytest.approx(truth, abs=0.05)


def test_cheap_parameters_beside_a_circle_at_its_cut():
    t = np.linspace(0.0, 3.0, 25)
    y = 1.5 * np.cos(TURN * t + 0.02) + 0.3 * np.random.default_rng(1).standard_normal(25)

    def log_likelihood(output, amplitude):
        return -0.5 * ((y - np.asarray(amplitude)[..., None] * output) ** 2).sum(axis=-1) / 0.09

    widths = []
    for lo in (0.0, -np.pi):
        model = basq.Model(
            lambda x: np.cos(TURN * t + x[0]), log_likelihood, {"phase": basq.periodic(lo, lo + TURN)},
            cheap={"amplitude": (0.1, 5.0)},
        )  # fmt: skip
        widths.append(np.sqrt(basq.infer(model, seed=0, progress=False).cov[1, 1]))
    assert widths[0] == pytest.approx(widths[1], rel=0.05)


def test_a_circle_without_an_empty_place():
    result, _ = run(3, 0.0, kappa=0.0)
    assert result.log_evidence == pytest.approx(0.0, abs=0.03)
    assert result.marginal("phase1").pdf([0.0, 1.0, 3.0, TURN]) == pytest.approx(1.0 / TURN, rel=0.1)


def test_a_circle_beside_a_line_and_a_noise_scale():
    t = np.linspace(0.0, 3.0, 25)
    y = np.cos(TURN * t + 0.02) + 0.1 * np.random.default_rng(1).standard_normal(25)

    def log_likelihood(x):
        return -0.5 * ((y - np.cos(TURN * t + x[0])) ** 2).sum() / x[1] ** 2 - 25.0 * np.log(x[1])

    answers = []
    for lo in (0.0, -np.pi):
        prior = {"phase": basq.periodic(lo, lo + TURN), "noise": (0.01, 1.0)}
        answers.append(basq.infer(log_likelihood, prior, seed=0, progress=False))
    assert all(a.converged and a.notes for a in answers)
    assert answers[0].log_evidence == pytest.approx(answers[1].log_evidence, abs=0.03)
    assert np.cos(answers[0].mean[0] - answers[1].mean[0]) == pytest.approx(1.0, abs=1e-3)


def test_turns_are_undone():
    u = np.random.default_rng(0).standard_normal((200, 3))
    turn = Turn(np.array([0.3, np.nan, 0.9]))
    assert turn.back(turn.of(u)) == pytest.approx(u, abs=1e-6)
    assert (turn.of(u)[:, 1] == u[:, 1]).all()


def test_the_cut_moves_only_off_the_posterior():
    weights, u = np.full(100, 0.01), 0.1 * np.random.default_rng(0).standard_normal((100, 1))
    assert Turn(np.array([0.0])).better(u, weights) is None
    moved = Turn(np.array([0.5])).better(u, weights)
    assert moved is not None
    assert np.abs(moved.of(u)).max() < 1.0
    assert moved.better(u, weights) is None


@pytest.mark.parametrize("ends", [(1, 0), (1, 1), (0, np.inf), (-np.inf, 0), (np.nan, 1), ("a", 1), (None, 2)])
def test_bad_circles_are_refused(ends):
    with pytest.raises(InputError, match="give two finite numbers"):
        basq.periodic(*ends)


def test_a_prior_says_that_it_is_periodic(tmp_path):
    prior = basq.Prior({"phase": basq.periodic(0, 1), "shift": (0, 1)})
    assert repr(prior) == "Prior(phase ~ periodic(0, 1), shift ~ uniform(0, 1))"
    assert prior.periodic.tolist() == [True, False]
    assert prior.only([0]).periodic.tolist() == [True]
    store = tmp_path / "run.sqlite"
    basq.Sampler(prior, store=store, seed=1)
    assert basq.Sampler(basq.Prior({"phase": basq.periodic(0, 1), "shift": (0, 1)}), store=store).recipe.prior.periodic[
        0
    ]
    with pytest.raises(StoreError, match="another problem"):
        basq.Sampler({"phase": (0, 1), "shift": (0, 1)}, store=store)
