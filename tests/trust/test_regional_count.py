"""Counts by region after a calibration: they add up, and they are mixtures over what a scan shares."""

import numpy as np
import pytest

from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.with_extra import CountWithExtra
from lesioncount.questions import Question, probability_of
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.regional_count import RegionalCount
from lesioncount.trust.trials import trials_of

CALIBRATIONS = {
    "none": Calibration(),
    "shift": Calibration(slope=0.7, offset=-0.3),
    "spread": Calibration(slope=0.9, spread=1.2, crowding=0.3, typical_count=4.0),
    "extra": Calibration(extra_rate=0.6, extra_share=0.2),
    "all": Calibration(
        slope=0.8, offset=-0.2, spread=0.7, extra_rate=0.4, extra_share=0.3, extra_shape=1.5, ripple=0.05
    ),
}


@pytest.fixture
def scan(rng):
    """40 candidates, some of which touch, in three regions that hold all and one that overlaps."""
    peaks = rng.random(40) * 0.9 + 0.1
    saddles = np.where(rng.random(40) < 0.3, peaks * rng.random(40), 0.0)
    region = rng.integers(0, 3, 40)
    members = {name: region == number for number, name in enumerate(("left", "right", "outside"))}
    members |= {"near": rng.random(40) < 0.4, "empty": np.zeros(40, dtype=bool)}
    return CandidateTable.of(peaks, saddle=saddles), members


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_regions_that_hold_all_candidates_have_means_that_add_up(scan, name):
    calibration = CALIBRATIONS[name]
    count = RegionalCount(calibration, *scan)
    whole = calibration.distribution(scan[0])
    total = sum(count[region].mean() for region in ("left", "right", "outside"))
    assert total == pytest.approx(whole.mean(), rel=1e-9)
    assert 0 < count["near"].mean() < whole.mean()


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_a_region_with_all_candidates_has_the_whole_count(scan, name):
    candidates, _ = scan
    count = RegionalCount(CALIBRATIONS[name], candidates, {"all": np.ones(40, dtype=bool)})
    whole = CALIBRATIONS[name].distribution(candidates)
    k = np.arange(60)
    np.testing.assert_allclose(count["all"].pmf(k), whole.pmf(k), rtol=1e-8, atol=1e-14)


def test_a_region_is_the_mixture_over_nodes_of_its_candidates_and_its_share_of_extra_lesions(scan):
    calibration, (candidates, members) = CALIBRATIONS["all"], scan
    count = RegionalCount(calibration, candidates, members)
    existence, weights, *_ = calibration.at_nodes(candidates)
    share = (weights @ existence)[members["near"]].sum() / (weights @ existence).sum()
    assert count.share_in("near") == pytest.approx(share)
    parts = []
    for p in existence:
        extra = share * (calibration.extra_rate + calibration.extra_share * p.sum())
        parts.append(CountWithExtra(PoissonBinomial(p[members["near"]]), extra, calibration.extra_shape))
    expected = MixtureOfCounts(parts, weights=weights)
    np.testing.assert_allclose(count["near"].pmf(np.arange(40)), expected.pmf(np.arange(40)), rtol=1e-9)
    assert count["near"].std() == pytest.approx(expected.std())


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_a_region_without_candidates_holds_no_lesion(scan, name):
    count = RegionalCount(CALIBRATIONS[name], *scan)
    assert count["empty"].pmf().tolist() == [1.0]
    assert not count.may_hold_lesions("empty")
    assert count.may_hold_lesions("left")


def test_extra_lesions_of_a_map_without_candidates_count_as_outside():
    members = {"left": np.zeros(0, dtype=bool), "outside": np.zeros(0, dtype=bool)}
    count = RegionalCount(Calibration(extra_rate=0.5), [], members)
    assert count["outside"].mean() == pytest.approx(0.5)
    assert count["left"].mean() == 0
    for question, expected in (("outside >= 1", -np.expm1(-0.5)), ("count >= 1", -np.expm1(-0.5)), ("left >= 1", 0.0)):
        asked = Question.parse(question)
        assert probability_of(asked, trials_of(count, asked.names)) == pytest.approx(expected)


@pytest.mark.parametrize("name", CALIBRATIONS)
@pytest.mark.parametrize("region", ["left", "near", "empty"])
def test_questions_about_one_region_are_answered_by_its_distribution(scan, name, region):
    count = RegionalCount(CALIBRATIONS[name], *scan)
    for k in (1, 3):
        asked = Question.parse(f"{region} >= {k}")
        answer = probability_of(asked, trials_of(count, asked.names))
        assert answer == pytest.approx(float(count[region].sf(k - 1)), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_questions_about_all_lesions_are_answered_by_the_whole_count(scan, name):
    count = RegionalCount(CALIBRATIONS[name], *scan)
    asked = Question.parse("count >= 9")
    whole = CALIBRATIONS[name].distribution(scan[0])
    assert probability_of(asked, trials_of(count, asked.names)) == pytest.approx(float(whole.sf(8)), rel=1e-8)


def test_answers_about_several_regions_are_those_of_samples(scan, rng):
    calibration, (candidates, members) = CALIBRATIONS["all"], scan
    count, n = RegionalCount(calibration, candidates, members), 100_000
    node = rng.choice(len(count.weights), size=n, p=count.weights)
    lesions = rng.random((n, 40)) < count.existence[node]
    rate = count.extra[node] * rng.gamma(calibration.extra_shape, 1 / calibration.extra_shape, n)
    cells = rng.multinomial(rng.poisson(rate), count.expected / count.expected.sum())
    drawn = {name: (lesions[:, of] + cells[:, of]).sum(axis=1) for name, of in members.items()}
    asked = Question.parse("left >= 3 and (near >= 5 or not right >= 4)")
    is_met = (drawn["left"] >= 3) & ((drawn["near"] >= 5) | ~(drawn["right"] >= 4))
    answer = probability_of(asked, trials_of(count, asked.names))
    assert abs(is_met.mean() - answer) < 3 * np.sqrt(answer * (1 - answer) / n)
