"""The page of a run with a calibration, with the members of an ensemble, or with both."""

import json
import re
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest
from html_page import Page

from lesioncount import Calibration, ConformalCounts, CountingProtocol, PoissonBinomial
from lesioncount.results.settings import Settings
from lesioncount.runs.count import count_batch
from lesioncount.trust.fitting import CalibrationFit
from lesioncount.trust.fitting.evidence import ConformalFit

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from lesioncount.report import write_report
from lesioncount.results.scan_numbers import EnsembleNumbers
from lesioncount.runs import read_results

SHAPE = (16, 40, 36)
PEAKS = {(4, 10, 10): 0.9, (11, 30, 8): 0.5, (8, 20, 28): 0.3}
WEIGHT_3 = CalibrationFit(Calibration.for_positive_weight(3))
WITH_MISSED = CalibrationFit(Calibration(0.8, -0.5, 0.25, origin="the counts of <20> scans"))


def save(path, peaks):
    probabilities = np.zeros(SHAPE, dtype=np.float32)
    for index, peak in peaks.items():
        probabilities[tuple(slice(i - 1, i + 2) for i in index)] = peak / 2
        probabilities[index] = peak
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.Nifti1Image(probabilities, np.diag([3.0, 1.0, 1.0, 1.0])).to_filename(path)


def report(inputs, out, **options):
    members = options.pop("members", False)
    count_batch(inputs, out, settings=Settings(**options), members=members)
    return Page(write_report(out).read_text("utf-8"))


def record_of(out, scan):
    return json.loads((out / f"{scan}.json").read_text("utf-8"))


def guaranteed(fit):
    conformal = ConformalCounts.fit([PoissonBinomial([0.9, 0.5])] * 19, [1, 2] * 9 + [3])
    return replace(fit, conformal=ConformalFit(fit.calibration, conformal))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def maps(tmp_path):
    """Two scans with the same three candidates, and one without."""
    for scan, peaks in (("a", PEAKS), ("b", PEAKS), ("none", {})):
        save(tmp_path / "maps" / f"{scan}.nii.gz", peaks)
    return [tmp_path / "maps"]


@pytest.fixture
def members(tmp_path):
    """Two members that agree about one scan, and of which the second sees two more lesions in the other."""
    more = {(4, 10, 20): 0.95, (11, 20, 8): 0.97}
    for fold, peaks in (("fold0", {}), ("fold1", more)):
        save(tmp_path / fold / "same.nii.gz", PEAKS)
        save(tmp_path / fold / "other.nii.gz", {(8, 20, 28): 0.9} | peaks)
    return [tmp_path / "fold0", tmp_path / "fold1"]


def test_calibration_is_named_at_the_top(maps, out):
    text = report(maps, out, calibration=WITH_MISSED).text
    assert "Slope 0.8 on the logit" in text
    assert "Offset −0.5 on the logit" in text
    assert "Extra 0.25 lesions per scan" in text
    assert "From the counts of <20> scans" in text
    assert f"Fingerprint {WITH_MISSED.fingerprint} ," in text


def test_calibration_shows_all_numbers_that_change_a_count(maps, out):
    regions = Calibration(1.2, 0.25, extra_shape=3.5, crowding=-0.4, typical_count=2.5)
    drawn = {"slope": (0.8, 0.9), "offset": (-0.5, -0.4)}
    crowded = Calibration(0.8, -0.5, 0.2, 0.1, 3.5, 0.6, 0.3, 4, ripple=0.02, draws=drawn, of_regions=regions)
    text = report(maps, out, calibration=CalibrationFit(crowded), protocol=CountingProtocol(candidates="peaks")).text
    for said in (
        "Crowding +0.3 on the logit for each factor e in the number of lesions, from 4 on",
        "Shape of extra 3.5",
        "Ripple peaks that rise by less than 0.02",
        "Draws counts are the average over 2 calibrations",
        "Mixture half of each count is that of peaks",
        "Slope of regions 1.2 on the logit: more certain than the map",
        "Crowding of regions −0.4 on the logit",
    ):
        assert said in text


def test_calibration_is_explained_by_what_it_does_to_a_candidate(maps, out):
    text = report(maps, out, calibration=WEIGHT_3).text
    # Odds of 1 and of 9, divided by 3
    assert "of 0.5 in the map exists with probability 0.25, one with 0.9 exists with 0.75" in text
    assert "every lesion is assumed to have a candidate" in text


def test_total_is_given_raw_and_calibrated(maps, out):
    text = report(maps, out, calibration=WEIGHT_3).text
    # 2 × (0.9 + 0.5 + 0.3), and with odds divided by 3: 2 × (0.75 + 0.25 + 0.125)
    assert "3.4 2.2 lesions expected in total, raw and calibrated" in text
    assert "2 to 5 1 to 4 90 % interval of the total, raw and calibrated" in text


def test_total_adds_up_missed_lesions_of_all_scans(maps, out):
    report(maps, out, calibration=WITH_MISSED)
    results = read_results(out)
    total, counts = results.total(results.calibration), [scan.counted.calibrated for scan in results.scans]
    assert total.mean() == pytest.approx(sum(count.count_mean for count in counts))
    assert total.var() == pytest.approx(sum(count.count_sd**2 for count in counts))


def test_scan_and_candidates_have_raw_and_calibrated_numbers_side_by_side(maps, out):
    text = report(maps, out, calibration=WEIGHT_3).text
    count = record_of(out, "a")["count"]
    for suffix, kind in (("", "raw"), ("_calibrated", "calibrated")):
        mean, sd, mode, median = (count[f"count_{name}{suffix}"] for name in ("mean", "sd", "mode", "median"))
        low, high = (count[f"interval90_{end}{suffix}"] for end in ("low", "high"))
        assert f"{kind} {mode} {median} {mean:.2f} ± {sd:.2f} {low} to {high}" in text
    assert "Existence 0.500 raw 0.250 calibrated" in text


def test_both_distributions_are_drawn_in_the_colours_of_evaluations(maps, out):
    page = report(maps, out, calibration=WITH_MISSED)
    labels = [svg["aria-label"] for svg in page.all("svg", class_="figure")]
    assert sum("; calibrated most likely" in label for label in labels) == 3
    figures = re.findall(r'<svg class="figure".*?</svg>', (out / "report.html").read_text("utf-8"))
    assert all("#0072b2" in figure and "#d55e00" in figure for figure in figures)


def test_scan_without_candidates_may_have_missed_lesions(maps, out):
    text = report(maps, out, calibration=WITH_MISSED).text
    assert "The count is 0 as counted; calibrated, it allows for lesions without a candidate." in text


def test_guaranteed_intervals_are_shown_with_what_they_promise(maps, out):
    text = report(maps, out, calibration=guaranteed(WEIGHT_3), conformal=True).text
    count = record_of(out, "a")["count"]
    low, high = count["interval90_low_conformal"], count["interval90_high_conformal"]
    assert f"conformal {low} to {high}" in text
    assert "90 % should have their true number of lesions inside" in text
    assert "Proven for new scans like those of the calibration" in text


def test_nothing_is_promised_where_it_was_not_asked_for(maps, out):
    assert "guaranteed" not in report(maps, out, calibration=guaranteed(WEIGHT_3)).text


def test_scans_are_sorted_by_their_calibrated_uncertainty(tmp_path, out):
    save(tmp_path / "maps" / "open.nii.gz", {(8, 20, 20): 0.5})
    save(tmp_path / "maps" / "settled.nii.gz", {(8, 20, 20): 0.75})
    page = report([tmp_path / "maps"], out, calibration=WEIGHT_3)
    assert [section["id"] for section in page.all("details")] == ["scan-2", "scan-1"]


def test_failed_scan_fills_the_row_of_the_wider_table(maps, out):
    (maps[0] / "broken.nii.gz").write_bytes(b"no map")
    page = report(maps, out, calibration=guaranteed(WEIGHT_3), conformal=True)
    # most likely, median, mean, interval: two each; guaranteed interval, CC, candidates, volume, remarks
    assert len(page.all("td", colspan="13")) == 1


def test_histogram_of_a_large_cohort_shows_both(tmp_path, out):
    for scan in range(42):
        save(tmp_path / "maps" / f"{scan:02d}.nii.gz", {(8, 20, 20): 0.5 + scan / 100})
    page = report([tmp_path / "maps"], out, calibration=WEIGHT_3)
    (histogram,) = page.all("svg", class_="figure")
    assert histogram["aria-label"] == "Histogram of the expected counts of 42 scans."
    assert {"raw", "calibrated"} <= set(page.words)


def test_members_are_listed_and_the_variance_is_split(members, out):
    text = report(members, out, members=True).text
    count = record_of(out, "other")["count"]
    within, between = count["variance_within"], count["variance_between"]
    assert f"Of the variance {within + between:.2f} of the count, {within:.2f}" in text
    for fold in members:
        for scan in ("same", "other"):
            assert str(fold / f"{scan}.nii.gz") in text


def test_scans_whose_members_disagree_are_flagged_everywhere(members, out):
    page = report(members, out, members=True)
    assert "Members disagree about 1 scan ( other )" in page.text
    assert "Members disagree : most likely 1, 3." in page.text
    assert "≠ members disagree" in page.text
    assert "other ≠" in page.text
    assert "same ≠" not in page.text


@pytest.mark.parametrize(("within", "between", "expected"), [(0.1, 0.3, True), (0.1, 0.2, False), (0.4, 0.3, False)])
def test_members_disagree_by_half_a_lesion_and_more_than_they_doubt(within, between, expected):
    assert EnsembleNumbers(2, within, between).disagrees is expected


def test_total_of_an_ensemble_is_the_mixture_of_its_members_totals(members, out):
    report(members, out, members=True)
    total = read_results(out).total()
    # 0.9 + 0.5 + 0.3 and 0.9 by the first; by the second also 0.95 and 0.97
    assert total.mean() == pytest.approx((2.6 + 4.52) / 2)
    assert total.between_variance == pytest.approx(0.96**2)


def test_members_that_count_alike_have_the_total_of_one(tmp_path, out):
    for fold in ("fold0", "fold1"):
        save(tmp_path / fold / "a.nii.gz", PEAKS)
    report([tmp_path / "fold0", tmp_path / "fold1"], out, members=True)
    assert read_results(out).total().pmf() == pytest.approx(PoissonBinomial(list(PEAKS.values())).pmf())


def test_pictures_are_those_of_the_first_member(members, out):
    page = report(members, out, members=True)
    assert len(page.all("article")) == 3 + 1
    assert "No pictures" not in page.text
    assert "Pictures are of candidates of member 1" in page.text


def test_candidates_of_other_members_are_in_the_table(tmp_path, out):
    save(tmp_path / "fold0" / "a.nii.gz", {})
    save(tmp_path / "fold1" / "a.nii.gz", PEAKS)
    page = report([tmp_path / "fold0", tmp_path / "fold1"], out, members=True)
    assert not page.all("article")
    assert "3 candidates of all members" in page.text
    assert "3 2 0.500" in page.text  # candidate 3 of member 2


def test_ensemble_with_calibration_has_both(members, out):
    page = report(members, out, members=True, calibration=WITH_MISSED)
    assert "Of the variance" in page.text
    assert "of the count before calibration" in page.text
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(header.get("scope") in ("col", "row", "colgroup") for header in page.all("th"))


def test_page_without_both_mentions_neither(maps, out):
    text = report(maps, out).text
    assert not re.search("calibrat|member|raw|guarantee|≠", text, re.IGNORECASE)
