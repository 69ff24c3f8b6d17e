"""The parts of the paper's reproduction that compute something themselves."""

import re
from itertools import product

import numpy as np
import pytest
from benchmarks.paper import anova, experiment, page, theory
from benchmarks.paper.__main__ import EXPERIMENTS
from benchmarks.peer_tools import TOOLS, Counted

import basq


def test_every_experiment_has_its_place_on_the_page():
    places = re.findall(r"\{\{(\w+)\}\}", page.PROSE.read_text(encoding="utf-8"))
    assert sorted(places) == sorted(e.name for e in EXPERIMENTS)
    text = page.written({"theory": "| a table |\n"})
    assert "| a table |" in text
    assert text.count("Not run yet.") == len(EXPERIMENTS) - 1


@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=lambda e: e.name)
def test_tasks_are_told_apart_by_their_keys(chosen):
    for quick in (True, False):
        tasks = chosen.tasks(2, quick)
        assert len({tuple(t.items()) for t in tasks}) == len(tasks)
        assert len({tuple(t) for t in tasks}) <= 1  # the same columns for all


def test_decomposition_of_a_complete_grid_is_exact():
    a, b, c = np.meshgrid([-1.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 1.0], indexing="ij")
    shares = anova.decomposition(2.0 * a + 3.0 * b + 1.0 * a * c)
    # variances 4, 9 · 2/3 and 1
    assert shares[0,] == pytest.approx(4.0 / 11.0)
    assert shares[1,] == pytest.approx(6.0 / 11.0)
    assert shares[0, 2] == pytest.approx(1.0 / 11.0)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert sum(anova.decomposition(np.random.default_rng(0).random((3, 4, 2))).values()) == pytest.approx(1.0)


def test_the_largest_complete_grid_is_found():
    def row(n, m, r):
        return {"N": n, "M": m, "r": r, "seed": 0, "error": 0.1 * m / n, "kl": 0.1, "seconds": 1e-5 * n}

    levels = anova.QUICK
    rows = [row(*p) for p in product(*levels.values())]
    found, values, repeats = anova.largest_grid(rows)
    assert {k: tuple(v) for k, v in found.items()} == levels
    assert repeats == 1
    assert values["logMAE"].shape == (2, 2, 3)
    assert anova.largest_grid(rows[1:])[2] <= 1
    assert anova.largest_grid([])[2] == 0
    assert "No complete grid" in anova.section([])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_eigenvalues_sum_to_the_kernel_s_trace(d):
    values = theory.eigenvalues(d, 20_000)
    assert values.sum() == pytest.approx(1.0, abs=1e-3)
    assert (np.diff(values) <= 0.0).all()


def test_theorem_one_holds_and_lemma_one_is_what_is_measured():
    found = theorem = theory.theorem(1, 6, 0)
    assert 0.0 < theorem["measured"] < theorem["bound"]
    assert found["k1"] < 0.1
    mine = [theory.lemma("√C f (Lemma 1)", 200, seed) for seed in range(60)]
    assert np.mean([r["measured"] for r in mine]) == pytest.approx(mine[0]["bound"], rel=0.2)


def test_log_mae_is_of_the_mean_error():
    assert experiment.log_mae([{"error": -0.1}, {"error": 0.3}]) == pytest.approx(np.log(0.2))
    assert experiment.mean_sd([1.0, 3.0, np.nan]) == "2.00 ± 1.41"
    assert experiment.mean_sd([np.nan]) == "–"


def test_calls_of_other_tools_are_counted_in_standard_space():
    problem = basq.problems.mixture(2)
    counted = Counted(problem)
    u = np.random.default_rng(0).standard_normal((5, 2))
    np.testing.assert_allclose(counted(u), problem.log_likelihood(problem.prior.from_standard(u)))
    counted(u[0])
    assert counted.calls == 6


def test_our_own_answer_through_the_interface_of_the_others():
    problem = basq.problems.gauss(2, 0)
    answer = TOOLS["basq"].run(problem, 0, 96)
    assert answer.calls <= 96
    assert answer.log_evidence == pytest.approx(problem.log_evidence, abs=0.1)
    assert problem.kl_divergence(answer.log_pdf)[0] < 0.1
    assert TOOLS["basq"].version
