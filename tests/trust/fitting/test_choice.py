"""Known counts → regions, peaks or both."""

import json

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from trust.fitting.simulated import cohort, without_lesions

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting import CalibrationFit, KnownTruth, choose
from lesioncount.trust.fitting.choice import mixture
from lesioncount.trust.regional_count import RegionalCount
from lesioncount.trust.reviewed_count import UNDECIDED, ReviewedCount

PEAKS = lc.Calibration(0.7, -0.4, 0.3, 0.2, 1.5, 0.8, 0.3, 4.0, 0.02)
REGIONS = lc.Calibration(0.9, 0.1, 1.0, 0.5, 3.0)


@pytest.fixture
def touching(rng):
    """Candidates of scans, of which some touch, and counts of lesions that are those of peaks."""
    tables, counts = [], []
    for _ in range(30):
        n = rng.integers(1, 9)
        peak = rng.uniform(0.3, 0.95, n)
        saddle = np.where((np.arange(n) > 0) & (rng.random(n) < 0.7), peak * rng.uniform(0.1, 0.4, n), 0)
        tables.append(lc.CandidateTable.of(peak, saddle=saddle))
        counts.append(int((rng.random(n) < peak - saddle).sum()))
    return KnownTruth.of(tables, counts)


@pytest.mark.parametrize("sizes", [{}, {"min_voxels": 6}])
def test_regions_are_the_peaks_that_join_no_higher_one(rng, sizes):
    noise = gaussian_filter(rng.normal(size=(40, 40)), 1.5)
    p = 1 / (1 + np.exp(-8 * noise))
    regions, peaks = (lc.find_candidates(p, threshold=0.5, candidates=of, **sizes) for of in ("regions", "peaks"))
    table = lc.CandidateTable.of_candidates(peaks)
    assert len(peaks) > len(regions) > 3
    np.testing.assert_array_equal(np.sort(table.peak[table.regions]), np.sort(regions.peak_probability))


def test_a_mixture_is_a_calibration_like_others(touching):
    both = mixture(PEAKS, REGIONS)
    assert CalibrationFit.from_json(CalibrationFit(both).to_json()).calibration == both
    assert both != PEAKS
    assert not both.is_identity
    assert "half of regions: slope 0.9" in str(both)
    for table in touching.candidates:
        regions = lc.CandidateTable.of(table.peak[table.regions])
        parts = [both.of_peaks.distribution(table), both.of_regions.distribution(regions)]
        counts = np.arange(15)
        found = both.distribution(table)
        np.testing.assert_allclose(found.pmf(counts), np.mean([part.pmf(counts) for part in parts], axis=0))
        at = both.at_nodes(table)
        assert at.weights @ (at.existence.sum(axis=1) + at.extra) == pytest.approx(found.mean())
        regional = RegionalCount(both, table, {"all": np.ones(len(table), dtype=bool)})
        np.testing.assert_allclose(regional["all"].pmf(counts), found.pmf(counts), atol=1e-9)
        reviewed = ReviewedCount(both, table, np.full(len(table), UNDECIDED))
        np.testing.assert_allclose(reviewed.distribution.pmf(counts), found.pmf(counts), atol=1e-9)
        np.testing.assert_allclose(both.existence(table), at.weights @ at.existence, atol=0.01)
    assert 0 < both.inverse(0.5) < 1


@pytest.mark.parametrize("of_regions", [{"of_regions": {}}, {"counted": "new"}, {"extra_shape": 2.0}, 7])
def test_what_is_no_mixture_is_refused(of_regions):
    content = json.loads(CalibrationFit(mixture(PEAKS, REGIONS)).to_json())
    inner = content["calibration"]["of_regions"]
    content["calibration"]["of_regions"] = inner | of_regions if isinstance(of_regions, dict) else of_regions
    with pytest.raises(CalibrationError):
        CalibrationFit.from_json(json.dumps(content))


def test_what_counts_better_is_taken(touching):
    choice = choose(touching, reading={"channel": 1, "scale": None, "logits": False, "level": 3})
    assert choice.kind in ("peaks", "mixture")
    assert choice.fit.calibration.protocol == lc.CountingProtocol(candidates="peaks")
    assert choice.fit.reading == {"channel": 1, "scale": None, "logits": False}
    assert choice.fit.conformal is not None
    assert f"calibrated on 30 known counts, are off by {choice.held_out.after['mae'].value:.3g}" in choice.verdict
    regions = choose(touching.of_regions, kinds=["regions"], protocol=lc.CountingProtocol(threshold=0.3))
    assert regions.kind == "regions"
    assert regions.fit.calibration.protocol == lc.CountingProtocol(threshold=0.3)
    with pytest.raises(CalibrationError, match="Expected regions, peaks or both"):
        choose(touching, kinds=[])


def test_counts_that_do_not_tell_regions_from_peaks_take_both(rng):
    tables = [lc.CandidateTable.of(rng.uniform(0.2, 0.95, 5), saddle=[0, 0, 0, 0, 0.19]) for _ in range(25)]
    counts = [int((rng.random(5) < table.existence()).sum()) for table in tables]
    choice = choose(KnownTruth.of(tables, counts))
    assert choice.kind == "mixture"
    assert choice.fit.calibration.of_regions is not None
    assert len(choice.fit.conformal.conformal.calibrations) == 25
    assert all(fold.of_regions is not None for fold in choice.folds)


def test_what_corrects_a_known_scan_does_not_know_it(touching):
    choice = choose(touching, intervals=False)
    changed = touching.counts.copy()
    changed[4] += 3
    other = choose(KnownTruth.of(touching.candidates, changed), kinds=["peaks"], intervals=False)
    one = choose(touching, kinds=["peaks"], intervals=False)
    assert one.fold_of == other.fold_of == choice.fold_of
    fold, table = one.fold_of[4], touching.candidates[4]
    means = [of.folds[fold].distribution(table).mean() for of in (one, other)]
    assert means[0] == pytest.approx(means[1], rel=0.02)  # the search begins near the fit of all scans


def test_an_ensemble_is_calibrated_as_a_whole(touching, rng):
    members = []
    for table in touching.candidates:
        moved = [np.clip(table.peak + rng.normal(0, 0.03, len(table)), table.saddle + 0.01, 1) for _ in range(3)]
        members.append(tuple(lc.CandidateTable.of(peak, saddle=table.saddle) for peak in moved))
    truth = KnownTruth.of(members, touching.counts)
    assert len(truth) == 30
    choice = choose(truth, kinds=["peaks"])
    assert choice.fit.conformal is None
    together = truth.distributions(choice.fit.calibration)
    expected = [np.mean([choice.fit.calibration.distribution(t).mean() for t in of]) for of in members]
    np.testing.assert_allclose([one.mean() for one in together], expected)
    assert CalibrationFit.fit(truth).held_out.n_scans == 30


def test_scans_of_one_group_cannot_be_held_out():
    truth = without_lesions(cohort(14, candidates=6))
    one = KnownTruth.of(truth.candidates, truth.counts, groups=["a"] * 14)
    with pytest.raises(CalibrationError, match="All 14 scans with a known count are of one group"):
        choose(one)
    fit = CalibrationFit.fit(one)
    assert fit.conformal is None
    assert fit.held_out is None
