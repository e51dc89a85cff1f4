"""Lists of candidates keep their promise on average, or are refused."""

import numpy as np
import pytest
from trust.fitting.simulated import cohort

from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting import CalibrationFit, KnownTruth
from lesioncount.trust.fitting.lists import LEVELS, CandidateLists, ListRule


def missed(truth, threshold):
    shares = [
        np.mean(t.existence()[own] < threshold)
        for t, own in zip(truth.candidates, truth.owns, strict=True)
        if own.any()
    ]
    return float(np.mean(shares))


def wrong(truth, threshold):
    shares = []
    for table, own in zip(truth.candidates, truth.owns, strict=True):
        listed = table.existence() >= threshold
        shares.append(np.mean(~own[listed]) if listed.any() else 0.0)
    return float(np.mean(shares))


@pytest.mark.parametrize(("rule", "loss"), [("missed<=20%", missed), ("false<=30%", wrong)])
def test_a_list_keeps_its_promise_on_average(rule, loss):
    rule, losses = ListRule.parse(rule), []
    for seed in range(60):
        both = cohort(80, candidates=8, seed=seed)
        threshold = CandidateLists.fit(both[range(40)]).threshold(rule)
        losses.append(loss(both[range(40, 80)], threshold))
    assert np.mean(losses) <= rule.level + 2 * np.std(losses) / np.sqrt(len(losses))
    assert np.mean(losses) > rule.level / 3  # and is not longer than it must be


def test_lists_are_kept_with_the_calibration():
    fit = CalibrationFit.fit(cohort(40, candidates=8))
    again = CalibrationFit.from_json(fit.to_json())
    assert again.lists == fit.lists
    assert fit.lists.n_scans == 40
    assert sorted(one for one in fit.lists.thresholds["missed"] if one is not None) == [
        one for one in fit.lists.thresholds["missed"] if one is not None
    ]


def test_without_known_lesions_there_is_no_list():
    assert CandidateLists.fit(KnownTruth.of([[0.5]] * 20, [1] * 20)) is None


def test_a_promise_that_cannot_be_kept_is_refused():
    truth = cohort(40, candidates=8)
    lists = CandidateLists.fit(truth)
    with pytest.raises(CalibrationError, match="too few"):
        lists.threshold(ListRule("missed", 0.01))
    many_missed = KnownTruth.of(truth.candidates, truth.counts + 3, owns=truth.owns)
    with pytest.raises(CalibrationError, match="have no candidate"):
        CandidateLists.fit(many_missed).threshold(ListRule("missed", 0.1))
    with pytest.raises(CalibrationError, match="a list for one of"):
        lists.threshold(ListRule("missed", 0.07))


@pytest.mark.parametrize(
    ("text", "rule"), [("missed<=10%", ListRule("missed", 0.1)), ("false ≤ 0.2", ListRule("false", 0.2))]
)
def test_promises_are_read(text, rule):
    assert ListRule.parse(text) == rule
    assert ListRule.parse(str(rule)) == rule
    assert f"{100 * rule.level:g} %" in rule.promise


@pytest.mark.parametrize("text", ["missed", "missed<10%", "missed<=0%", "missed<=100%", "all<=10%", "", "missed<=10%%"])
def test_what_is_no_promise_is_refused(text):
    with pytest.raises(CalibrationError, match="missed<=10%"):
        ListRule.parse(text)


@pytest.mark.parametrize(
    "values", [{"levels": [0.1]}, {"thresholds": {"missed": [9.0] * len(LEVELS), "false": [None] * len(LEVELS)}}]
)
def test_lists_that_are_none_are_refused(values):
    good = CandidateLists.fit(cohort(40, candidates=8)).to_dict()
    with pytest.raises(CalibrationError):
        CandidateLists.from_dict(good | values)
