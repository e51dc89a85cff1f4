"""The law of counts, and how patients are divided."""

import numpy as np
import pytest

from lesioncount_reproduction.synthetic import GadCohort
from lesioncount_reproduction.synthetic.counts import CLASS_BALANCE, count_quantile, drawn_counts, drawn_splits


def shares(counts):
    return np.bincount(np.minimum(counts, 4), minlength=5) / len(counts)


def counts_of(cohort):
    return [visit.n_lesions for visit in cohort.visits]


def law_mean():
    return np.mean([count_quantile((i + 0.5) / 20000) for i in range(20000)])


@pytest.mark.parametrize("seed", range(5))
def test_a_small_cohort_has_the_class_balance_and_the_mean_of_the_law(seed):
    counts = counts_of(GadCohort(60, seed))
    np.testing.assert_allclose(shares(counts), CLASS_BALANCE, atol=1.5 / len(counts))
    assert np.mean(counts) == pytest.approx(law_mean(), rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_every_part_has_about_the_class_balance(seed):
    cohort = GadCohort(160, seed)
    for name, share in (("train", 0.6), ("val", 0.2), ("test", 0.2)):
        part = cohort.split(name)
        assert len({visit.patient for visit in part.visits}) == pytest.approx(share * 160)
        np.testing.assert_allclose(shares(counts_of(part)), CLASS_BALANCE, atol=0.08)
        assert np.mean(counts_of(part)) == pytest.approx(law_mean(), rel=0.35)


def test_no_patient_is_in_two_parts():
    cohort = GadCohort(37, 1)
    parts = [{visit.patient for visit in cohort.split(name).visits} for name in ("train", "val", "test")]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 37
    assert sum(len(cohort.split(name)) for name in ("train", "val", "test")) == len(cohort)


def test_scans_of_a_patient_have_similar_counts(rng):
    pairs = np.array(drawn_counts(rng, np.full(4000, 2)))
    active = pairs > 0
    both = (active[:, 0] & active[:, 1]).mean()
    assert both > 1.3 * active.mean() ** 2
    assert 0.15 < np.corrcoef(active.T)[0, 1] < 0.35


def test_counts_have_a_long_tail(rng):
    counts = np.array([count_quantile(u) for u in rng.random(20000)])
    assert counts.max() == pytest.approx(29, abs=5)
    assert np.median(counts[counts >= 4]) in (6, 7)


def test_few_patients_are_divided_too(rng):
    assert set(drawn_splits(rng, [(0,)])) <= {"train", "val", "test"}
    assert sorted(drawn_splits(rng, [(0,)] * 5)) == ["test", "train", "train", "train", "val"]


def test_each_patient_has_one_to_three_scans():
    cohort = GadCohort(100, 1)
    sessions = np.bincount([visit.patient for visit in cohort.visits])
    assert set(sessions) == {1, 2, 3}
