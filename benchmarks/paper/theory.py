"""Theory: Theorem 1's bound, the Nyström bound and Lemma 1's proposals, beside what is measured."""

import numpy as np
from scipy.stats import norm

from basq.gp.gp import GP
from basq.gp.kernels.stationary import RBF
from basq.numerics.gaussians import GaussianMixture
from basq.paper.evidence import closed_form_evidence
from basq.paper.models import Vanilla
from basq.paper.target import Target
from basq.selection.nystrom import nystrom_features
from basq.selection.recombination import recombine
from benchmarks.paper.experiment import Experiment, Task, by, number, table
from benchmarks.study import Row

N_CANDIDATES, N_NYSTROM = 2000, 200
SIZES = {1: (4, 8, 12), 2: (8, 16, 32), 4: (16, 64)}
SHARES = {"f (vanilla Monte Carlo)": 0.0, "IVR, r = 0.5": 0.5, "UB, r = 0.99": 0.99, "√C f (Lemma 1)": None}
"""Proposals of Lemma 1, by their share of C f."""
N_DRAWN = 200


def tasks(seeds: int, quick: bool) -> list[Task]:
    n = max(seeds, 10 if quick else 25)
    theorem = [
        {"part": "theorem", "name": d, "n": k, "seed": s} for d, ns in SIZES.items() for k in ns for s in range(n)
    ]
    return theorem + [{"part": "lemma", "name": p, "n": N_DRAWN, "seed": s} for p in SHARES for s in range(4 * n)]


def work(part: str, name: int | str, n: int, seed: int) -> Row:
    found = theorem(int(name), n, seed) if part == "theorem" else lemma(str(name), n, seed)
    return {"part": part, "name": name, "n": n, "seed": seed} | found


def theorem(d: int, n: int, seed: int) -> Row:
    """One proper recombination of draws of N(0, I): the standard deviation of Z that it leaves, and its bounds."""
    rng, kernel, measure = np.random.default_rng(seed), RBF(1.0, np.ones(d)), GaussianMixture.standard(d)
    far = GP.condition(np.full((1, d), 1e3), np.zeros(1), kernel, noise=1e-9)  # a datum so far away is none
    p = far.predict(measure.sample(N_CANDIDATES, rng))
    features = nystrom_features(Target(Vanilla(far), True), p, n - 1, N_NYSTROM, rng, randomised=False)
    root = np.sqrt(features.residual)
    rule = recombine(features.values, np.full(N_CANDIDATES, 1.0 / N_CANDIDATES), objective=root, method="lp")
    x = p.x[rule.index]
    after = Vanilla(GP.condition(x, np.zeros(len(x)), kernel, noise=1e-10))
    variances = eigenvalues(d, 20_000)
    spread = 1.0 - np.sqrt(1.0 / 3.0) ** d  # ∫K f − ∬K f f of the RBF, with λ = 1
    k1 = float(features.residual.mean())
    return {
        "measured": float(np.sqrt(closed_form_evidence(after, measure).scaled_var)),
        "bound": 2.0 * np.sqrt(k1) + np.sqrt(spread / N_CANDIDATES),
        "k1": k1,
        "eigen": float(n * variances[n - 1] + variances[n:].sum()),
        "order": n / np.sqrt(N_NYSTROM),
    }


def eigenvalues(d: int, n: int) -> np.ndarray:
    """Leading n eigenvalues of the RBF with unit lengthscales under N(0, I), largest first."""
    b = 1.0 - 2.0 / (1.0 + np.sqrt(5.0))
    single = (1.0 - b) * b ** np.arange(60)
    all_ = single
    for _ in range(d - 1):
        all_ = np.sort(np.outer(all_, single).ravel())[::-1][:n]
    return all_


def lemma(name: str, n: int, seed: int) -> Row:
    """Squared distance between the embedding of f and of n weighted draws of a proposal, against the lemma's C/n."""
    x = np.linspace(-6.0, 6.0, 801)[:, None]
    f = norm.pdf(x[:, 0])
    f /= f.sum()
    seen = np.array([[-1.5], [0.0], [0.4], [2.0]])
    gp = GP.condition(seen, np.zeros(4), RBF(1.0, np.array([0.7])), noise=1e-8)
    p = gp.predict(x)
    cov, share = gp.cov(p, p), SHARES[name]
    uncertain = np.maximum(np.diag(cov), 1e-12)
    g = np.sqrt(uncertain) * f if share is None else (1.0 - share) * f + share * uncertain * f / (uncertain @ f)
    g /= g.sum()
    weights = np.bincount(np.random.default_rng(seed).choice(len(x), n, p=g), minlength=len(x)) * f / (n * g)
    off = weights - f
    constant = float((uncertain * f / g) @ f - f @ cov @ f)
    return {"measured": float(off @ cov @ off), "bound": constant / n, "k1": 0.0, "eigen": 0.0, "order": 0.0}


def section(rows: list[Row]) -> str:
    first = [
        [d, n, len(mine), *(f"{np.mean([r[k] for r in mine]):.2e}" for k in ("measured", "bound")),
         f"{max(r['measured'] / r['bound'] for r in mine):.2f}", *(f"{np.mean([r[k] for r in mine]):.2e}"
         for k in ("k1", "eigen", "order"))]
        for (d, n), mine in by([r for r in rows if r["part"] == "theorem"], "name", "n").items()
    ]  # fmt: skip
    header = ["d", "n", "repeats", "mean sd of Z", "Theorem 1's bound", "largest ratio", "∫K₁f", "nσₙ + Σσₘ", "n/√M"]
    second = [
        [name, len(mine), f"{np.mean([r['measured'] for r in mine]):.2e}", f"{mine[0]['bound']:.2e}",
         number(float(np.mean([r["measured"] for r in mine])) / mine[0]["bound"])]
        for (name,), mine in by([r for r in rows if r["part"] == "lemma"], "name").items()
    ]  # fmt: skip
    return f"{table(header, first)}\n{table(['proposal', 'repeats', 'mean squared error', 'C/N', 'ratio'], second)}"


EXPERIMENT = Experiment("theory", tasks, work, section)
