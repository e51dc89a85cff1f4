"""Scans that look unlike those of a calibration are said to, and others are not."""

import json

import numpy as np
import pytest
from trust.fitting.simulated import cohort, without_lesions

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting import CalibrationFit
from lesioncount.trust.likeness import CalibrationScans, numbers_of_scan, places_of


def tables(n, seed, **numbers):
    return without_lesions(cohort(n, candidates=15, seed=seed, **numbers)).candidates


def shifted(table, by):
    logits = np.log(table.peak / (1 - table.peak)) + by
    return lc.CandidateTable.of(1 / (1 + np.exp(-logits)))


def test_scans_of_one_kind_are_alike_but_for_chance():
    alarms = [
        CalibrationScans.of(tables(60, 2 * seed)).compare(tables(20, 2 * seed + 1), seed=seed).is_alarm
        for seed in range(40)
    ]
    assert sum(alarms) <= 6  # of 40, at 5 %: more in one of 70 cases


def test_scans_whose_best_candidates_are_certain_are_alike_too():
    """Their logits are all the same number, which the file of a calibration rounds."""
    rng, alarms = np.random.default_rng(4), 0
    for seed in range(20):
        scans = [[1.0] * 12 + rng.uniform(0.2, 0.99, 20).tolist() for _ in range(60)]
        known = CalibrationScans.from_dict(json.loads(json.dumps(CalibrationScans.of(scans[:40]).to_dict())))
        alarms += known.compare(scans[40:], seed=seed).is_alarm
    assert alarms <= 4  # of 20, at 5 %


@pytest.mark.parametrize(("by", "word"), [(1.5, "higher"), (-1.5, "lower")])
def test_shifted_scores_are_seen_and_named(by, word):
    found = CalibrationScans.of(tables(60, 0)).compare([shifted(one, by) for one in tables(20, 1)])
    assert found.is_alarm
    assert word in str(found)
    assert "unlike" in str(found)
    assert "wrong" not in str(found)


def test_more_candidates_are_seen_and_named():
    known = CalibrationScans.of([[0.5, 0.3]] * 30)
    found = known.compare([[0.5, 0.3] * 4] * 12)
    assert found.is_alarm
    assert found.differences[0] == "more candidates per scan"


def test_silence_says_that_it_is_no_proof():
    found = CalibrationScans.of(tables(60, 0)).compare(tables(20, 1))
    assert not found.is_alarm
    assert "looking at the maps cannot tell whether probabilities mean the same" in str(found)


def test_scans_unlike_all_others_are_named():
    known = CalibrationScans.of(tables(60, 0))
    odd = [[0.999] * 2 + [0.011] * 300] * 7  # two that are certain, and noise
    few = known.compare([*tables(40, 1), odd[0]], names=[*map(str, range(40)), "odd"])
    assert "odd" in few.outliers
    assert len(few.outliers) <= 3
    assert f"{len(few.outliers)} of 41 look unlike every one of those: " in str(few)
    many = known.compare([*odd, *tables(10, 1)])
    assert many.is_alarm
    assert many.outliers[:7] == tuple("1234567")
    assert " look unlike every one of those: 1, 2, 3, 4, 5 and " in str(many)


def test_few_scans_cannot_be_told():
    known = CalibrationScans.of(tables(60, 0))
    assert known.compare(tables(9, 1)) is None
    assert CalibrationScans.of(tables(9, 0)).compare(tables(20, 1)) is None


def test_scans_without_candidates_have_numbers():
    assert np.isfinite(numbers_of_scan([])).all()
    found = CalibrationScans.of([[]] * 20).compare([[]] * 20)
    assert not found.is_alarm


def test_counts_tell_that_a_score_means_something_else():
    rng = np.random.default_rng(0)
    known = CalibrationScans.of(tables(60, 0), rng.random(60))
    assert known.check(rng.random(12)).p > 0.05
    assert known.check(0.9 + 0.1 * rng.random(12)).p < 0.02
    with pytest.raises(CalibrationError, match="does not remember"):
        CalibrationScans.of(tables(20, 0)).check([0.5])


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (np.linspace(0.6, 1.0, 20), "there are more lesions than it says"),
        (np.linspace(0.0, 0.4, 20), "there are fewer lesions than it says"),
        ([*np.linspace(0.0, 0.04, 10), *np.linspace(0.95, 0.99, 10)], "counts scatter more than it says"),
        (np.linspace(0.46, 0.53, 20), "counts scatter less than it says"),
    ],
)
def test_a_direction_is_named_only_where_there_is_one(places, said):
    found = CalibrationScans.of(tables(60, 0), np.linspace(0, 1, 60)).check(places)
    assert found.is_alarm
    assert said in str(found)


def test_a_check_that_passes_says_how_much_it_would_have_seen():
    known = CalibrationScans.of(tables(60, 0), np.linspace(0, 1, 60))
    assert str(known.check(np.linspace(0, 1, 20))).endswith("With 20 scans, only large differences are seen.")
    assert "only large" not in str(known.check(np.linspace(0, 1, 200)))


def test_a_check_depends_much_less_on_its_seed_than_one_draw_of_places():
    """They are partly random where counts are small."""
    fit = CalibrationFit.fit(without_lesions(cohort(40, candidates=2, seed=3)))
    new = without_lesions(cohort(20, candidates=2, seed=4, offset=0.6))
    distributions, counts, seeds = new.distributions(fit.calibration), new.counts.tolist(), range(0, 1000, 100)
    once = [fit.scans.check(places_of(distributions, counts, seed=seed), seed=seed).p for seed in seeds]
    averaged = [fit.check(new, seed=seed).p for seed in seeds]
    assert np.std(averaged) < np.std(once) / 3


def test_of_many_new_scans_a_random_part_is_looked_at():
    known = CalibrationScans.of(tables(60, 0))
    new = [*tables(600, 1), *(shifted(one, 2.5) for one in tables(600, 2))]
    assert known.compare(new).is_alarm
    assert known.compare(new[::-1]).is_alarm


def test_places_of_counts_are_uniform_where_distributions_are_right():
    rng = np.random.default_rng(0)
    counts = (rng.random((2000, 3)) < 0.4).sum(axis=1)
    places = places_of([lc.PoissonBinomial([0.4] * 3)] * 2000, counts.tolist(), seed=1)
    np.testing.assert_allclose(np.quantile(places, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.04)
    assert places_of([lc.PoissonBinomial([0.5])], [7], seed=0) == [1]


@pytest.mark.parametrize("values", [{"numbers": [[1.0] * 11], "pits": []}, {"numbers": [[1.0] * 12], "pits": [2.0]}])
def test_what_is_not_remembered_so_is_refused(values):
    with pytest.raises((CalibrationError, ValueError)):
        CalibrationScans.from_dict(values)
