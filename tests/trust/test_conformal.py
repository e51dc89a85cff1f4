"""Conformal intervals and sets: what they hold, what they refuse, and that two other packages agree."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesioncount import PoissonBinomial
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.distributions.with_extra import CountWithExtra
from lesioncount.errors import CalibrationError
from lesioncount.trust.conformal import ConformalCounts

KINDS = ("interval", "set")
CERTAIN = PoissonBinomial([1.0, 1.0, 1.0])
UNSURE = PoissonBinomial([0.5, 0.5, 0.5, 0.5])


@st.composite
def distributions(draw):
    """Wide, sharp and certain ones, with an endless tail, with gaps, and with tails too thin for a number."""
    probabilities = st.sampled_from([0.0, 1e-300, 1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9, 1.0])
    found = PoissonBinomial(draw(st.lists(probabilities, max_size=7)))
    shape = draw(st.sampled_from(["plain", "missed", "mixture"]))
    if shape == "missed":
        return CountWithExtra(found, draw(st.sampled_from([1e-9, 0.2, 30.0])))
    if shape == "mixture":
        return MixtureOfCounts([found, PoissonBinomial([1.0] * draw(st.integers(0, 12)))])
    return found


def cohorts(min_size=1, max_size=12):
    return st.lists(st.tuples(distributions(), st.integers(0, 15)), min_size=min_size, max_size=max_size)


def fitted(cohort, kind, **options):
    return ConformalCounts.fit([d for d, _ in cohort], [c for _, c in cohort], kind=kind, **options)


def score(distribution, count, kind):
    return fitted([(distribution, count)], kind).scores[0][0]


def simulated(rng, n):
    """Scans of which the network is too sure, with lesions that it does not see."""
    true = [PoissonBinomial(rng.random(rng.integers(1, 7))) for _ in range(n)]
    counts = [d.rvs(random_state=rng) + int(rng.poisson(0.2)) for d in true]
    sharp = [PoissonBinomial(d.probabilities**3 / (d.probabilities**3 + (1 - d.probabilities) ** 3)) for d in true]
    return sharp, counts


@pytest.mark.parametrize("kind", KINDS)
def test_honest_distribution_keeps_its_middle(kind):
    conformal = fitted([(UNSURE, c) for c in [0] + 4 * [1] + 6 * [2] + 4 * [3] + [4]], kind)
    assert conformal.interval(UNSURE, 0.3) == (2, 2)
    assert conformal.interval(UNSURE, 0.8) == (1, 3)
    assert conformal.interval(UNSURE, 0.94) == (0, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_point_mass_is_widened_by_how_far_it_is_off(kind):
    conformal = fitted([(CERTAIN, count) for count in (3, 3, 3, 4, 2, 3, 3, 5, 3)], kind)
    assert conformal.interval(CERTAIN, 0.6) == (3, 3)
    assert conformal.interval(CERTAIN, 0.8) == (2, 4)
    assert conformal.interval(CERTAIN, 0.9) == (1, 5)
    assert conformal.interval(PoissonBinomial([]), 0.9) == (0, 2)  # never below 0


@pytest.mark.parametrize("kind", KINDS)
def test_scores_keep_improbable_and_impossible_counts_in_order(kind):
    thin = PoissonBinomial([1e-30] * 20)  # P(20) = 1e-600
    scores = [score(thin, count, kind) for count in range(25)]
    assert scores[1] > 60
    assert all(a < b for a, b in pairwise(scores))
    assert scores[24] - scores[23] == 1


def test_interval_score_is_the_level_of_the_smallest_central_interval():
    for count in range(5):
        tail = min(UNSURE.cdf(count), UNSURE.sf(count - 1))
        assert -math.expm1(-score(UNSURE, count, "interval")) == pytest.approx(max(0, 1 - 2 * tail))


def test_set_score_is_the_negative_log_likelihood():
    for count in range(5):
        assert score(UNSURE, count, "set") == pytest.approx(-UNSURE.logpmf(count))


def test_set_of_members_that_disagree_has_a_gap():
    torn = MixtureOfCounts([PoissonBinomial([]), PoissonBinomial([1.0] * 6)])
    conformal = fitted([(torn, count) for count in 5 * [0] + 5 * [6]], "set")
    assert conformal.prediction_set(torn, 0.8) == (0, 6)
    assert conformal.interval(torn, 0.8) == (0, 6)
    off = fitted([(torn, 7)] * 5, "set")
    assert off.prediction_set(torn, 0.8) == tuple(range(8))  # counts in the gap are nearer than 7


def test_set_that_would_be_empty_holds_the_mode():
    conformal = fitted([(CERTAIN, 3)] * 9, "set")
    assert conformal.prediction_set(UNSURE, 0.9) == (2,)


@pytest.mark.parametrize("kind", KINDS)
def test_endless_tail_gives_a_finite_answer_even_after_impossible_counts(kind):
    endless = CountWithExtra(PoissonBinomial([0.5]), 40.0)
    conformal = fitted([(CERTAIN, 10)] * 9, kind)
    low, high = conformal.interval(endless, 0.9)
    assert low == 0
    assert 80 < high < 300


def test_far_counts_of_wide_distributions_are_reached():
    wide = PoissonBinomial(np.full(20_000, 0.5))
    assert fitted([(wide, 10_100)] * 9, "interval").interval(wide, 0.5) == (9_900, 10_100)
    assert fitted([(wide, 10_000 + 1200)] * 9, "interval").interval(wide, 0.5) == (8_800, 11_200)


def test_order_of_probabilities_does_not_break_ties(rng):
    p = rng.random(300)
    for kind in KINDS:
        for count in (100, 150, 200):
            conformal = fitted([(PoissonBinomial(p[:100]) + PoissonBinomial(p[100:]), count)] * 4, kind)
            assert count in conformal.prediction_set(MixtureOfCounts([PoissonBinomial(p[::-1])] * 3), 0.8)


def test_groups_by_predicted_count_have_scores_of_their_own():
    none, two, many = PoissonBinomial([0.1]), PoissonBinomial([0.9, 0.9]), PoissonBinomial([0.9] * 5)
    cohort = [(none, 0)] * 4 + [(two, 4)] * 5 + [(many, 5)] * 6
    conformal = fitted(cohort, "interval", group_edges=(1, 3))
    assert repr(conformal) == "ConformalCounts(kind='interval', 4 + 5 + 6 scans)"
    assert conformal.interval(none, 0.8) == (0, 0)
    assert conformal.interval(two, 0.8) == (0, 4)
    assert conformal.interval(many, 0.8) == (5, 5)
    conformal.check(0.8)
    with pytest.raises(CalibrationError, match="at least 5 calibration scans with a predicted count of 0, but"):
        conformal.check(0.82)


@given(cohorts(), st.sampled_from(KINDS), distributions(), st.lists(st.floats(0.01, 0.99), min_size=2, max_size=5))
def test_answers_are_nested_in_confidence(cohort, kind, distribution, levels):
    conformal = fitted(cohort, kind)
    possible = sorted(level for level in levels if level <= len(cohort) / (len(cohort) + 1))
    sets = [conformal.prediction_set(distribution, level) for level in possible]
    assert all(set(a) <= set(b) for a, b in pairwise(sets))


@given(cohorts(), st.sampled_from(KINDS), distributions())
def test_answer_holds_exactly_the_counts_that_fit_no_worse_than_the_quantile(cohort, kind, distribution):
    conformal = fitted(cohort, kind)
    answer = conformal.prediction_set(distribution, 0.5)
    quantile = conformal.scores[0][math.ceil((len(cohort) + 1) / 2) - 1]
    scores = [score(distribution, count, kind) for count in range(answer[-1] + 40)]
    fits = tuple(count for count, s in enumerate(scores) if s <= quantile + 1e-9)
    assert answer == (fits or (distribution.mode(),))
    assert all(isinstance(count, int) and count >= 0 for count in answer)
    assert conformal.interval(distribution, 0.5) == (answer[0], answer[-1])
    if kind == "interval":
        assert answer == tuple(range(answer[0], answer[-1] + 1))
        assert distribution.median() in answer
    else:
        assert distribution.mode() in answer


@given(cohorts(min_size=2), st.sampled_from(KINDS), st.floats(0.05, 0.95), st.sampled_from([None, (1,), (1, 3)]))
def test_each_scan_left_out_once_is_covered_as_often_as_promised(cohort, kind, confidence, edges):
    # The guarantee itself: exchangeable means that each of n + 1 scans is equally likely to be the new one. So for any
    # scans whatever, when each is the new one once, the share of those covered must be the confidence or more.
    groups = fitted(cohort, kind, group_edges=edges).scores
    covered = [[] for _ in groups]
    for i, (distribution, count) in enumerate(cohort):
        group = sum(edge <= distribution.mode() for edge in edges or ())
        if len(groups[group]) - 1 < confidence / (1 - confidence):
            continue
        conformal = fitted(cohort[:i] + cohort[i + 1 :], kind, group_edges=edges)
        covered[group].append(count in conformal.prediction_set(distribution, confidence))
    for each in covered:
        assert sum(each) >= confidence * len(each) - 1e-9


@given(cohorts(), st.sampled_from(KINDS), st.sampled_from([None, (1,), (1, 3)]))
def test_json_round_trip_is_exact(cohort, kind, edges):
    conformal = fitted(cohort, kind, group_edges=edges)
    assert ConformalCounts.from_dict(json.loads(json.dumps(conformal.to_dict()))) == conformal


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_crepes_gives_the_same_answers(rng, kind, confidence):
    from crepes import ConformalClassifier

    known, counts = simulated(rng, 120)
    new, _ = simulated(rng, 50)
    ours = ConformalCounts.fit(known, counts, kind=kind, group_edges=(2,))
    alphas = np.array([score(d, c, kind) for d, c in zip(known, counts, strict=True)])
    of_new = np.array([[score(d, count, kind) for count in range(25)] for d in new])
    theirs = ConformalClassifier().fit(alphas, bins=np.array([d.mode() >= 2 for d in known]))
    p_values = theirs.predict_p(of_new, bins=np.array([d.mode() >= 2 for d in new]), smoothing=False)
    for distribution, p in zip(new, p_values, strict=True):
        expected = tuple(np.flatnonzero(p > 1 - confidence + 1e-9).tolist()) or (distribution.mode(),)
        assert ours.prediction_set(distribution, confidence) == expected


@pytest.mark.filterwarnings("ignore:.*less labels than:UserWarning")  # of MAPIE: not every count occurs
@pytest.mark.parametrize("n", [49, 120])
def test_mapie_gives_the_same_sets(rng, n):
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Tables(ClassifierMixin, BaseEstimator):
        """A classifier whose input is its answer."""

        classes_ = np.arange(8)

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, x):
            return x

        def predict(self, x):
            return x.argmax(axis=1)

    true = [PoissonBinomial(rng.random(7)) for _ in range(n + 60)]
    counts = np.array([d.rvs(random_state=rng) for d in true])
    predicted = [PoissonBinomial(d.probabilities**2) for d in true]
    tables = np.array([d.pmf() for d in predicted])
    ours = ConformalCounts.fit(predicted[:n], counts[:n], kind="set")
    levels = [0.5, 0.8, 0.9, 0.95]
    mapie = SplitConformalClassifier(Tables(), confidence_level=levels, conformity_score="lac", prefit=True)
    _, sets = mapie.conformalize(tables[:n], counts[:n]).predict_set(tables[n:])
    for distribution, masks in zip(predicted[n:], sets, strict=True):
        for i, level in enumerate(levels):
            expected = tuple(np.flatnonzero(masks[:, i]).tolist()) or (distribution.mode(),)
            assert ours.prediction_set(distribution, level) == expected


@pytest.mark.parametrize(("confidence", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99), (0.55, 2)])
def test_too_few_scans_for_a_confidence_are_refused_with_the_number_needed(confidence, needed):
    fitted([(UNSURE, 2)] * needed, "interval").check(confidence)
    if needed > 1:
        few = fitted([(UNSURE, 2)] * (needed - 1), "interval")
        with pytest.raises(CalibrationError, match=rf"at least {needed} .* there are {needed - 1}\. Ask for"):
            few.interval(UNSURE, confidence)


def test_rounding_does_not_ask_for_one_scan_more():
    # 100 × 0.55 is 55.00000000000001 in floating point: the 55th score is meant, not the 56th.
    conformal = ConformalCounts("interval", (tuple(range(99)),))
    assert conformal._quantile(0, 0.55) == 54


def test_refusal_names_the_group_and_what_to_do():
    conformal = fitted([(UNSURE, 2)] * 3, "interval", group_edges=(1, 3))
    with pytest.raises(
        CalibrationError, match=r"predicted count of 1 to 2, but there are 3.*3/4 or less.*fewer groups"
    ):
        conformal.interval(UNSURE, 0.9)
    with pytest.raises(CalibrationError, match=r"predicted count of 0, but there are 0\. Add scans, or make fewer"):
        conformal.interval(PoissonBinomial([]), 0.5)
    with pytest.raises(CalibrationError, match="predicted count of 3 or more, but there are 0"):
        conformal.interval(CERTAIN, 0.5)


@pytest.mark.parametrize("confidence", [0, 1, 90, -0.1, math.nan, "0.9", None])
def test_confidence_outside_0_to_1_is_refused(confidence):
    with pytest.raises(CalibrationError, match=r"between 0 and 1.*pass 0\.9"):
        fitted([(UNSURE, 2)] * 9, "set").prediction_set(UNSURE, confidence)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1], "each of 2 distributions"),
        ([[1, 2]], "each of 2 distributions"),
        ([1, -1], "whole numbers"),
        ([1, 0.5], "whole numbers"),
        ([1, math.nan], "whole numbers"),
        (["1", "2"], "whole numbers"),
    ],
)
def test_counts_that_are_none_are_refused(counts, message):
    with pytest.raises(CalibrationError, match=message):
        ConformalCounts.fit([UNSURE, UNSURE], counts)


def test_no_scans_are_refused():
    with pytest.raises(CalibrationError, match="there are none"):
        ConformalCounts.fit([], [])


@pytest.mark.parametrize("edges", [(0,), (3, 1), (1, 1), (1.5,), (math.inf,), ("1",), 3])
def test_group_edges_that_make_no_groups_are_refused(edges):
    with pytest.raises(CalibrationError, match="group_edges"):
        ConformalCounts.fit([UNSURE], [2], group_edges=edges)


def test_unknown_kind_is_refused():
    with pytest.raises(CalibrationError, match='"interval" or "set"'):
        ConformalCounts.fit([UNSURE], [2], kind="band")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[2.0, 1.0]]}, "ascending"),
        ({"scores": [[-1.0]]}, "at least 0"),
        ({"scores": [[math.nan]]}, "at least 0"),
        ({"scores": [[[1.0]]]}, "at least 0"),
        ({"scores": [["a"]]}, "list of numbers"),
        ({"scores": 3}, "list of numbers"),
        ({"scores": [[1.0], [1.0]]}, "of 1 groups"),
        ({"extra": 1}, "Expected the fields"),
    ],
)
def test_damaged_calibrations_are_refused(change, message):
    values = fitted([(UNSURE, 2)], "set").to_dict() | change
    with pytest.raises(CalibrationError, match=message):
        ConformalCounts.from_dict(values)


def test_calibration_that_is_no_object_is_refused():
    with pytest.raises(CalibrationError, match="Expected the fields"):
        ConformalCounts.from_dict(["kind"])
