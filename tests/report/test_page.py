"""The report: one page that needs nothing else, whatever the run."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import basq
from basq.errors import InputError
from basq.evaluation.call import place
from basq.observations import Observations
from basq.report.page import BIBTEX, CITATION, page
from basq.report.tables import html_name
from basq.results.result import Failure, Result
from basq.status import Status
from helpers import browser

EVIL = "<script>alert('&\"')</script>"


def gauss(x):
    if x[0] > 2.5:
        raise ValueError(EVIL)
    return float(-0.5 * np.sum((x - 0.3) ** 2) / 0.1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("report") / "run.sqlite"


@pytest.fixture(scope="module")
def result(store):
    prior = {EVIL: (-3, 3), "b": (-3, 3)}
    return basq.infer(gauss, prior, store=store, seed=1, max_evals=80, progress=False)


@pytest.fixture(scope="module")
def text(result):
    return page(result, title=EVIL, truth=-4.05)


class Page(HTMLParser):
    """Checks that tags are closed, and keeps what matters."""

    EMPTY = ("meta", "link", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def test_the_page_is_whole_and_says_what_came_out(text, result):
    found = Page(text)
    words = " ".join(found.words)
    assert str(result).splitlines()[0].partition("   ")[0].replace("-", "−") in words
    assert result.message.split(": ", 1)[1][1:] in words
    for heading in ("Posterior", "How the run went", "Audits", "Where the time went", "Failed calls", "Settings"):
        assert heading in words
    assert "true log Z is −4.050" in words
    assert "Sampler.open('run.sqlite')" in words
    assert len(found.all("img")) == 5


def test_nothing_is_loaded_from_elsewhere(text):
    found = Page(text)
    for _, attrs in found.tags:
        for key in ("src", "href", "srcset", "data"):
            assert attrs.get(key, "data:").startswith("data:")
    assert not found.all("script")
    assert "url(" not in text
    assert "@import" not in text
    assert len(text) < 3_000_000


def test_what_users_give_is_text(text):
    assert EVIL not in text
    assert sum(EVIL in word for word in Page(text).words) >= 4  # title, parameter, reason of a failure, traceback


def test_it_is_accessible(text):
    found = Page(text)
    assert found.all("html") == [{"lang": "en"}]
    assert all(len(image["alt"]) > 20 for image in found.all("img"))
    assert all(head.get("scope") in ("row", "col") for head in found.all("th"))
    assert len(found.all("h1")) == 1


def test_settings_and_dates_come_from_the_store(text, store):
    words = "\n".join(Page(text).words)
    assert str(store) in words
    assert "max_evals" in words
    assert re.search(r"started\n+20\d\d-\d\d-\d\d \d\d:\d\d UTC", words)
    assert "gauss" in words


def test_a_result_without_a_store(result):
    alone = replace(result, settings={})
    assert "is what basq.infer returned" in page(alone)


def test_failures_are_listed_up_to_a_limit(result):
    many = tuple(Failure(i, np.array([i, 0.5]), f"reason {i}", "Traceback: here" * (i == 3), 2) for i in range(60))
    text = page(replace(result, failures=many))
    assert "reason 49" in text
    assert "reason 50" not in text
    assert "10 more calls are in the store" in text
    assert "10 more reasons are in the store" in text
    assert "Traceback: here" in text


def test_a_run_that_found_nothing():
    nothing = basq.infer(lambda x: -np.inf, {"a": (0, 1)}, batch_size=4, max_evals=20, seed=0, progress=False)
    words = " ".join(Page(page(nothing)).words)
    assert "No evidence yet" in words
    assert "There is no posterior" in words


def test_a_run_of_a_method_without_audits():
    method = basq.Paper(model="wsabi-m", mean="constant", n_candidates=2000, n_nystrom=100, audited=False)
    plain = basq.infer(
        lambda x: -float(x @ x), {"a": (-2, 2), "b": (-2, 2)}, method=method, max_evals=32, seed=0, progress=False
    )
    words = " ".join(Page(page(plain)).words)
    assert "this run has none" in words


def test_a_result_without_a_single_value(result):
    empty = Result(
        -np.inf, np.inf, Status.RUNNING, "no call has succeeded yet", result.prior, Observations.empty(2), (), None
    )
    words = " ".join(Page(page(empty)).words)
    assert "Not finished" in words
    assert "no evidence yet" in words.lower()
    assert "Still open: no call has succeeded yet." in words
    assert "there are no numbers yet" in words


def test_a_run_in_which_every_call_failed(result):
    why = "no call has succeeded yet; 1 failed and 0 are pending"
    failed = (Failure(0, np.array([0.1, 0.2]), "it raised", None, 1),)
    empty = Result(
        -np.inf, np.inf, Status.RUNNING, why, result.prior, Observations.empty(2), (), None, failures=failed
    )  # fmt: skip
    words = " ".join(Page(page(empty)).words)
    assert "Why: no call has succeeded yet; 1 failed and 0 are pending." in words
    assert "Every call has failed" in words
    assert "Running" not in words
    assert "Not finished" not in words
    assert "will change" not in words


@pytest.mark.parametrize("status", [Status.RUNNING, Status.INTERRUPTED])
def test_a_run_that_goes_on_or_was_stopped(result, status):
    words = " ".join(Page(page(replace(result, status=status, sound=False, why="log Z moved"))).words)
    assert "Not finished" in words
    assert "Still open: log Z moved." in words
    assert "not finished when this page was made" in words
    assert status.word not in words
    assert "The posterior below may be far off" in words


def test_a_run_that_only_missed_its_target_is_not_called_far_off(result):
    missed = replace(result, status=Status.NOT_CONVERGED, sound=True, why="80 calls spent")
    words = " ".join(Page(page(missed)).words)
    assert "nothing but its size speaks against these numbers" in words
    assert "far off" not in words
    assert "Do not rely" not in words
    assert "Do not rely" in page(replace(missed, sound=False))


def test_a_run_of_too_few_calls_has_no_table_and_no_corner(result):
    few = replace(
        result, status=Status.NOT_CONVERGED, sound=False, history=result.history[:1], audits=(),
        settings={"initial_size": 500},
    )  # fmt: skip
    seen = Page(page(few))
    assert f"Too few calls for a posterior ({few.n_evals} of 500)." in seen.words
    assert not any("Corner plot" in attrs.get("alt", "") for _, attrs in seen.tags)
    assert "97.5 %" not in seen.words


def test_numbers_in_sentences_have_minus_signs(result):
    moved = replace(result, status=Status.NOT_CONVERGED, why="log Z moved by -0.25 (from -3), pre-2 e-3")
    words = " ".join(Page(page(moved, truth=result.log_evidence + 0.5)).words)
    assert "log Z moved by −0.25 (from −3), pre-2 e-3." in words
    assert "the error is −0.500" in words


def test_the_table_has_the_numbers_of_the_summary(result, text):
    words = Page(text).words
    for row in result.summary():
        assert all(number.replace("-", "−") in words for number in row.texts())


def test_equal_reasons_are_counted_and_inputs_are_short(result):
    x = [np.array([0.123456789012345 * i, 0.5]) for i in range(1, 21)]
    many = tuple(
        Failure(i, at, f"log_likelihood raised ValueError: step {at[0]} at {place(result.names, at)}.", None, 1)
        for i, at in enumerate(x)
    )
    words = Page(page(replace(result, failures=many))).words
    assert "log_likelihood raised ValueError: step 0.123457." in words
    assert "0, 1, 2, 3, 4, 5, 6, 7, …" in words
    assert not any("0.1234567" in word for word in words)


def test_tex_names_are_readable():
    assert html_name(r"$D_{s,n}$ [m$^2$/s]") == "D<sub>s,n</sub> [m<sup>2</sup>/s]"
    assert html_name(r"$\alpha_\mathrm{bg}$") == "α<sub>bg</sub>"
    assert html_name(r"$\Omega_\Lambda$, $a_<^{-1}$") == "Ω<sub>Λ</sub>, a<sub>&lt;</sub><sup>-1</sup>"
    assert html_name("a_b & 5 $") == "a_b &amp; 5 $"
    for wild in ("$a^_b$", "$_{}^{}$", "$x_{a^{b}}$", "$\\$", f"$_{EVIL}$"):
        Page(f"<p>{html_name(wild)}</p>")
        assert "<script" not in html_name(wild)


def test_an_estimated_noise_is_a_setting(result):
    assert "sd 0.43 (estimated)" in page(replace(result, noise=0.4321))


def test_a_place_where_nothing_can_be_written_is_refused_before_anything_is_drawn(result, tmp_path, monkeypatch):
    monkeypatch.setattr("basq.report.page.page", lambda *_, **__: pytest.fail("it draws"))
    with pytest.raises(InputError, match="no directory"):
        result.report(tmp_path / "missing" / "a.html")
    with pytest.raises(InputError, match="this is a directory"):
        result.report(tmp_path)


def test_a_coupled_transform_has_no_slices_and_the_page_says_so():
    def turn(cube):
        z = 2.0 * cube - 1.0
        return np.array([z[0] - z[1], z[0] + z[1]])

    coupled = basq.infer(lambda x: -float(x @ x), prior_transform=turn, n_dim=2, max_evals=32, seed=0, progress=False)
    assert "there are no slices" in page(coupled)


def test_the_citation_is_that_of_the_repository():
    cff = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    for name in re.findall(r"family-names: (.*)", cff):
        assert name in CITATION
        assert name.replace("ø", "{\\o}") in BIBTEX
    for key in (r"title: (Fast.*)", r"collection-title: (.*)", r"volume: (.*)", r"\n  year: (.*)", r"value: (.*)"):
        assert re.search(key, cff).group(1) in CITATION


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_in_a_browser(text, tmp_path):
    (tmp_path / "run.html").write_text(text, encoding="utf-8")
    seen = browser.look(tmp_path / "run.html", [1280, 400], tmp_path)
    assert seen.console == []
    assert [frame["width"] for frame in seen.frames] == [400, 1280]
    for frame in seen.frames:
        assert frame["scroll"] <= frame["width"]
        assert frame["broken"] == 0


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_a_telephone_shows_all_columns_and_letters_that_can_be_read(result, tmp_path):
    named = replace(result, prior=basq.Prior({"decay_rate": (-3, 3), "background_level": (-3, 3)}))
    (tmp_path / "run.html").write_text(page(named), encoding="utf-8")
    seen = browser.look(tmp_path / "run.html", [400], tmp_path)
    (frame,) = seen.frames
    assert frame["scroll"] <= 400
    assert frame["hidden"][0] <= 0  # of the posterior's table
    assert min(frame["letters"]) >= 0.75


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_the_browser_sees_what_is_wrong(tmp_path):
    bad = "<html><body><div style='width: 900px'>x</div><img src='missing.png'><script>nothing()</script></body></html>"
    (tmp_path / "bad.html").write_text(bad)
    seen = browser.look(tmp_path / "bad.html", [400], tmp_path)
    assert any("nothing is not defined" in line for line in seen.console)
    (frame,) = seen.frames
    assert frame["scroll"] > 400
    assert frame["broken"] == 1
