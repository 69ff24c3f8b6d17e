"""Labels and units: how parameters are written, which does not change the problem."""

import pickle

import numpy as np
import pytest
from scipy import stats

import basq
from basq.errors import InputError
from basq.prior.prior import Prior

SPEC = {"mass": stats.norm(0, 1), "rate": (0, 1)}
LABELS, UNITS = {"mass": r"$M_\odot$"}, {"rate": "1/s"}


def test_labels_are_names_unless_they_are_given():
    prior = Prior(SPEC, labels=LABELS, units=UNITS)
    assert prior.labels == (r"$M_\odot$", "rate")
    assert prior.units == ("", "1/s")
    assert prior.captions == (r"$M_\odot$", "rate [1/s]")
    assert Prior(SPEC).captions == ("mass", "rate")


def test_one_for_each_in_their_order_and_for_priors_of_all_kinds():
    assert Prior(SPEC, labels=["m", "r"]).labels == ("m", "r")
    assert Prior.from_transform(lambda u: u, 2).labelled(["m", "r"], ["kg", ""]).captions == ("m [kg]", "r")


def test_they_stay_with_the_parameters():
    prior = Prior(SPEC, labels=LABELS, units=UNITS)
    assert prior.only([1]).captions == ("rate [1/s]",)
    assert prior.joined(Prior({"c": (0, 1)}, labels=["$c$"])).captions == (*prior.captions, "$c$")
    assert prior.changed({"rate": (0, 2)}).captions == prior.captions
    assert pickle.loads(pickle.dumps(prior)).captions == prior.captions
    assert Prior(prior, labels={"rate": "r"}).captions == (r"$M_\odot$", "r [1/s]")


@pytest.mark.parametrize("labels", [{"speed": "v"}, ["m"], "mr", {"mass": 3}, 5])
def test_others_are_refused(labels):
    with pytest.raises(InputError, match=r"labels=.*give a text for some of mass, rate, by name, or one for each"):
        Prior(SPEC, labels=labels)


def test_a_run_is_taken_up_under_other_labels(tmp_path):
    def run(prior, n):
        options = {"max_evals": n, "seed": 1, "progress": False, "method": "paper", "store": tmp_path / "run.sqlite"}
        return basq.infer(lambda x: -0.5 * float(x @ x), prior, dlogz=0.0, **options)

    run(Prior(SPEC), 16)
    labelled = run(Prior(SPEC, labels=LABELS, units=UNITS), 32)
    assert labelled.n_evals == 32
    texts = [t.get_text() for a in labelled.plot_corner().axes for t in (a.xaxis.label, a.yaxis.label)]
    assert r"$M_\odot$" in texts
    assert "rate [1/s]" in texts
    assert np.isfinite(labelled.log_evidence)
