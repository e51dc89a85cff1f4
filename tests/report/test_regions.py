"""Regions and answers on the page."""

import nibabel as nib
import numpy as np
import pytest
from html_page import Page

from lesioncount.questions import Question
from lesioncount.results.region_settings import RegionSettings
from lesioncount.runs import Settings, count_batch
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from lesioncount.report import SectionWriter, write_report
from lesioncount.report.regions import FIRST

SHAPE = (24, 24, 12)
N_REGIONS = 130


@pytest.fixture
def cohort(tmp_path):
    """Two scans, with a candidate in every other of the first 40 regions or of the first 10, and none in the others."""
    labels = np.zeros(SHAPE, np.uint8)
    for i in range(N_REGIONS):
        labels[_box(i)] = i + 1
    for scan, n in (("s1", 40), ("s2", 10)):
        p = np.zeros(SHAPE, np.float32)
        for i in range(0, n, 2):
            p[tuple(part.start for part in _box(i))] = 0.95 - i / 100
        (tmp_path / "maps").mkdir(exist_ok=True)
        nib.save(nib.Nifti1Image(p, np.eye(4)), tmp_path / "maps" / f"{scan}.nii.gz")
    nib.save(nib.Nifti1Image(labels, np.eye(4)), tmp_path / "atlas.nii.gz")
    return tmp_path


def _box(i):
    """The voxels of a region: two along each axis."""
    place = np.unravel_index(i, (12, 12, 6))
    return tuple(slice(2 * n, 2 * n + 2) for n in place)


def page_of(cohort, **settings):
    names = {i + 1: f"r{i}" for i in range(N_REGIONS)} | {1: "<b>front</b>"}
    how = Settings(regions=RegionSettings.of(names, ["near = r2 <= 1.5mm", "far = r129 <= 0mm"]), **settings)
    results = count_batch(
        [cohort / "maps"], cohort / "out", settings=how, regions=cohort / "atlas.nii.gz", show=SectionWriter()
    )
    assert not results.failed
    return results, Page(write_report(results).read_text("utf-8"))


def test_regions_with_candidates_are_shown_and_the_others_are_folded(cohort):
    _, page = page_of(cohort)
    assert "Regions" in page.headings
    assert "Candidates in 20 of 131 regions" in page.text
    assert "Candidates in 5 of 131 regions" in page.text
    assert f"{20 - FIRST} more regions, and 111 regions without candidates" in page.text
    assert "126 regions without candidates" in page.text
    assert "111 regions without candidates in any scan" in page.text
    assert "near by distance" in page.text
    assert "far by distance 0 0.00 0 to 0 0.000" in page.text, "what was asked for is shown, also where it is empty"
    assert page.source.count('<details class="more">') == 3


def test_the_fullest_regions_come_first(cohort):
    results, page = page_of(cohort)
    fullest = sorted(results.scans[0].regions[:-2], key=lambda one: -one.best.count_mean)[: FIRST + 1]
    section = page.source[page.source.index("Regions of s1") :]
    shown = [section.index(f">{one.region.replace('<', '&lt;').replace('>', '&gt;')}<") for one in fullest]
    assert shown == sorted(shown)
    assert section.index("more regions, and") < shown[-1], "the thirteenth is folded"


def test_names_of_regions_cannot_become_markup(cohort):
    _, page = page_of(cohort)
    assert "<b>front</b>" not in page.source
    assert "&lt;b&gt;front&lt;/b&gt;" in page.source


def test_answers_are_shown_for_each_scan_and_for_all(cohort):
    questions = tuple(map(Question.asked, ("count >= 3", "mcdonald2001-dis", "near >= 1 and r4 >= 1")))
    results, page = page_of(cohort, questions=questions)
    assert "Questions" in page.headings
    assert "no answer is a diagnosis" in page.text
    expected = sum(scan.answers[2].probability for scan in results.scans)
    assert f"{expected:.1f} of 2" in page.text
    assert "3 questions" in page.text
    assert page.text.count("mcdonald2001-dis") == 3
    assert "not counted in all scans: enhancing, infratentorial, juxtacortical, periventricular" in page.text
    assert "the probability is a lower bound" in page.text


def test_calibrated_numbers_stand_beside_raw_ones(cohort):
    fit = CalibrationFit(Calibration(slope=0.7, spread=0.5, extra_rate=0.5))
    results, page = page_of(cohort, calibration=fit, questions=(Question.parse("count >= 3"),))
    region = results.scans[1].regions[2]
    assert f"r2 1 {region.raw.count_mean:.2f}" in page.text
    assert f"{region.calibrated.count_mean:.2f} {region.calibrated.interval90_low} to" in page.text
    assert "Lesions without a candidate are taken to lie where those with one do" in page.text
    answer = results.scans[1].answers[0]
    assert f"count >= 3 {answer.probability:.3f} {answer.probability_calibrated:.3f}" in page.text


def test_candidates_say_where_they_are(cohort):
    _, page = page_of(cohort)
    assert "Region r2, near" in page.text
    assert "Region r4" in page.text
    assert "r38" in page.text


def test_pages_without_regions_say_nothing_of_them(cohort):
    results = count_batch([cohort / "maps"], cohort / "plain")
    page = Page(write_report(results).read_text("utf-8"))
    assert "Regions" not in page.headings
    assert "Questions" not in page.headings
    assert "by distance" not in page.text
