"""The page of a comparison as a reader finds it: made from real files that were compared for it."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from change_pairs import AFFINE, GONE, NEW, OLD, SHAPE, bumps, save, save_course, save_pair
from html_page import Page

from lesioncount import Calibration, ConformalCounts, CountingProtocol, PoissonBinomial
from lesioncount.cli import main
from lesioncount.errors import MapFileError
from lesioncount.runs import ChangeSettings, CourseSelection, compare_batch, read_changes
from lesioncount.trust.fitting import CalibrationFit
from lesioncount.trust.fitting.evidence import ConformalFit

pytest.importorskip("matplotlib", reason="needs the extra [report]")
pytest.importorskip("jinja2", reason="needs the extra [report]")

from lesioncount.report import SectionWriter, write_report


@pytest.fixture
def maps(tmp_path):
    """One patient with a lesion that stays, one that is new and one that is gone; and a stable one."""
    save_pair(tmp_path / "maps", "a", {OLD: 0.9, GONE: 0.6}, {OLD: 0.9, NEW: 0.8})
    save_pair(tmp_path / "maps", "b", {OLD: 0.7}, {OLD: 0.7})
    return tmp_path / "maps"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def compared(maps, out, *, show=None, mask=None, **settings):
    return compare_batch(
        [maps / "before", maps / "after"], out, settings=ChangeSettings(**settings), mask=mask, show=show
    )


def page_of(maps, out, *, images=None, **options):
    return Page(write_report(compared(maps, out, **options), images=images).read_text("utf-8"))


def cards(page):
    return [card["aria-label"] for card in page.all("article")]


def pictures(page):
    return [svg for svg in page.all("svg") if svg.get("class") not in ("figure", "through")]


def test_page_needs_no_other_file(maps, out):
    page = page_of(maps, out)
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,", "data:image/jpeg;base64,"))
    assert not page.all("link")
    assert not re.search(r"https?://|@import|url\((?!#)", page.source)
    assert not (out / "changes").exists()


def test_first_screen_says_how_many_and_how_it_was_compared(maps, out):
    text = page_of(maps, out).text
    assert "2 patients compared, 2 pairs of scans" in text
    assert "0.8 new lesions expected in total, 90 % interval 0 to 1" in text
    assert "0.6 gone lesions expected in total, 90 % interval 0 to 1" in text
    assert "1.6 persisting lesions expected in total, 90 % interval 1 to 2" in text
    assert "voxels above 0.1, connected through edges" in text
    assert "within 3 mm of each voxel of a candidate (tolerance)" in text  # a voxel, which is more than 2 mm
    assert "with coupling 2.5 (0: they are independent" in text
    assert "Numbers are not calibrated" in text


def test_every_pair_has_a_row_with_its_numbers(maps, out):
    page = page_of(maps, out)
    assert "a 0.80 0 to 1 0.800 0.60 0 to 1 0.600 0.90 0 to 1 0.900" in page.text
    assert "b 0.00 0 to 0 0.000 0.00 0 to 0 0.000 0.70 0 to 1 0.700" in page.text
    assert [row["data-is"] for row in page.all("tr") if "data-is" in row] == ["new gone ", ""]


def test_ids_are_unique_and_links_lead_to_them(maps, out):
    page = page_of(maps, out)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"][1:] for attributes in page.all("a")}
    assert links == {"patient-1", "patient-2"} <= set(ids)


def test_patient_with_the_most_changes_comes_first(maps, out):
    save_pair(maps, "c", {}, {NEW: 0.99, OLD: 0.9, GONE: 0.9})
    page = page_of(maps, out)
    assert [section["id"] for section in page.all("details")] == ["patient-3", "patient-1", "patient-2"]


def test_new_lesions_come_before_gone_ones_and_those_before_persisting_ones(maps, out):
    page = page_of(maps, out)
    classes = [card["class"] for card in page.all("article")]
    assert classes == ["card new", "card gone", "card persisting", "card persisting"]
    assert "Lesion 3: new with probability 0.800" in page.text
    assert "Lesion 2: gone with probability 0.600" in page.text
    assert "Lesion 1: persisting with probability 0.900" in page.text


def test_captions_say_what_is_known_at_both_times(maps, out):
    text = page_of(maps, out).text
    assert (
        "Existence before no candidate; at most 0.000 within 3 mm of where it is seen "
        "Existence after 0.800, 27 voxels, 81 mm³ "
        "New, gone, persisting 0.800, 0.000, 0.000 Peak in RAS mm 33.0, 30.0, 8.0" in text
    )
    assert "Existence before 0.600, 27 voxels, 81 mm³ Existence after no candidate; at most 0.000 within 3 mm" in text


def test_both_times_show_the_same_planes_of_the_same_place(maps, out):
    page = page_of(maps, out)
    shown = pictures(page)[:6]
    assert [svg["aria-label"] for svg in shown[:4]] == [
        "Lesion 3, before, plane axial through its peak",
        "Lesion 3, after, plane axial through its peak",
        "Lesion 3, before, plane coronal through its peak",
        "Lesion 3, after, plane coronal through its peak",
    ]
    for before, after in zip(shown[::2], shown[1::2], strict=True):
        assert before["viewbox"] == after["viewbox"]
    card = page.source[page.source.index('aria-label="Lesion 3"') :]
    crosses = re.findall(r'class="cross" d="([^"]*)"', card)[:6]
    assert crosses[::2] == crosses[1::2]


def test_outlines_are_those_of_each_time(maps, out):
    page = page_of(maps, out)
    start = page.source.index('aria-label="Lesion 3"')
    axial = page.source[start : start + page.source[start:].index("coronal")]
    before, after = axial.split("<figure")[1:3]
    outline = r'<path transform="[^"]*" d="([^"]*)"/>'
    assert re.search(outline, before)[1] == ""
    assert re.search(outline, after)[1] != ""


def test_figures_and_pictures_have_descriptions(maps, out):
    page = page_of(maps, out)
    assert len(page.all("svg", class_="figure")) == 2 * 3
    assert len(pictures(page)) == 4 * 2 * 3
    assert all(svg.get("role") == "img" and svg["aria-label"] for svg in page.all("svg"))
    assert "Probability of each number of new lesions: most likely 1, 90 % interval 0 to 1." in page.source


def test_split_lesion_is_named_as_such(tmp_path, out):
    whole = bumps({})
    whole[4:7, 10:20, 10:12] = 0.9
    parts = whole.copy()
    parts[:, 14:16] = 0
    save(tmp_path / "before" / "a.nii.gz", whole)
    save(tmp_path / "after" / "a.nii.gz", parts)
    page = page_of(tmp_path, out)
    assert "Lineage split : 1 candidate before, 2 after" in page.text
    assert "split, 1 before and 2 after" in page.text
    assert "0.990 (2 candidates), 48 voxels" in page.text


def test_lesion_that_joins_several_comes_before_one_that_just_stays(tmp_path, out):
    whole = bumps({OLD: 0.99, NEW: 0.99})
    whole[10:13, 3:13, 20:22] = 0.5
    parts = whole.copy()
    parts[:, 7:9, 20:22] = 0
    save(tmp_path / "before" / "a.nii.gz", parts)
    save(tmp_path / "after" / "a.nii.gz", whole)
    page = page_of(tmp_path, out)
    assert len(page.all("article")) == 2
    assert page.text.index("merged : 2 candidates before, 1 after") < page.text.index("Lesion 1: persisting")


def test_stable_patient_is_said_to_be_stable(maps, out):
    assert "No lesion is new or gone with a probability of 10 % or more." in page_of(maps, out).text


def test_patient_without_candidates_says_so(tmp_path, out):
    save_pair(tmp_path, "a", {}, {})
    page = page_of(tmp_path, out)
    assert "There is no candidate at either time: nothing is new, gone or persisting." in page.text
    assert not pictures(page)
    assert "0.0 new lesions expected in total, 90 % interval 0 to 0" in page.text


def test_those_left_out_and_those_that_failed_are_named(maps, out):
    save(maps / "after" / "alone.nii.gz", bumps({OLD: 0.5}))
    save(maps / "after" / "broken.nii.gz", bumps({OLD: 0.5}))
    (maps / "before" / "broken.nii.gz").write_bytes(b"no map")
    page = page_of(maps, out)
    assert "1 patient left out , because there is one map only: alone" in page.text
    assert "1 patient failed ; the table says why: broken" in page.text
    assert re.search(r"broken failed: \S+broken.nii.gz is not a NIfTI file", page.text)
    assert "1 failed 1 left out: one map only" in page.text


def test_run_in_which_all_failed_has_a_page(tmp_path, out):
    save_pair(tmp_path, "a", {}, {})
    (tmp_path / "before" / "a.nii.gz").write_bytes(b"no map")
    page = page_of(tmp_path, out)
    assert "0 patients compared, 0 pairs of scans 1 failed" in page.text
    assert "Patient by patient" not in page.text


def test_notes_and_warnings_are_at_the_top_at_the_pair_and_in_the_table(tmp_path, out):
    save(tmp_path / "before" / "a.nii.gz", bumps({(2, 10, 10): 0.9}, (8, 40, 36)), np.diag([6.0, 1, 1, 1]))
    save(tmp_path / "after" / "a.nii.gz", (bumps({OLD: 1.0, NEW: 1.0}) > 0.6).astype(np.float32))
    page = page_of(tmp_path, out)
    moved = "The map of session 1 has another grid, and was resampled to that of the last session."
    covered = "The map of session 1 covers 94% of the last one. Only what all sessions show was compared."
    for note in (moved, covered):
        assert page.text.count(note) == 3
    assert "1 of 1 patient ( a ): This map is binary" in page.text
    assert "After: This map is binary" in page.text


def test_three_sessions_are_shown_through_time(tmp_path, out):
    save_course(tmp_path / "maps", "01", {OLD: 0.9}, {OLD: 0.8, NEW: 0.7}, {NEW: 0.9})
    page = Page(write_report(compare_batch([tmp_path / "maps"], out)).read_text("utf-8"))
    assert [row["data-name"] for row in page.all("tr") if "data-name" in row] == ["sub-01", "sub-01"]
    assert "From ses-01 to ses-02" in page.text
    assert "From ses-02 to ses-03" in page.text
    assert "ses-01 → ses-02: 0.70 new (0 to 1), 0.00 gone (0 to 0), 0.80 persisting (0 to 1); ses-02" in page.text
    assert "2 lesions through time" in page.text
    assert "0.900 81 mm³ 0.800 81 mm³ – persisting, gone" in page.text
    through = [svg["aria-label"] for svg in page.all("svg", class_="through")]
    assert through == [
        "Existence: 0.90, 0.80, 0.00",
        "Volume: 81 mm³, 81 mm³, 0 mm³",
        "Existence: 0.00, 0.70, 0.90",
        "Volume: 0 mm³, 81 mm³, 81 mm³",
    ]
    assert "axial, ses-02" in page.text


def test_three_folders_are_three_times(tmp_path, out):
    for time in ("one", "two", "three"):
        save(tmp_path / time / "a.nii.gz", bumps({OLD: 0.9}))
    results = compare_batch([tmp_path / "one", tmp_path / "two", tmp_path / "three"], out)
    assert "From time 2 to time 3" in Page(write_report(results).read_text("utf-8")).text


def test_map_without_place_has_no_sides_and_no_volumes(tmp_path, out):
    for time, peaks in (("before", {(20, 20): 0.5}), ("after", {(20, 20): 0.5, (30, 8): 0.9}), ("later", {})):
        (tmp_path / time).mkdir()
        np.save(tmp_path / time / "a.npy", bumps(peaks, (40, 36)))
    results = compare_batch([tmp_path / time for time in ("before", "after", "later")], out)
    page = Page(write_report(results).read_text("utf-8"))
    assert "patient's right" not in page.text
    assert "RAS mm 33" not in page.text
    assert "It is not known which side is which" in page.text
    assert pictures(page)[0]["viewbox"] == "0 0 36 40"
    assert [svg["aria-label"][:9] for svg in page.all("svg", class_="through")] == ["Existence"] * 2


def test_calibrated_numbers_are_shown_with_their_guarantee(maps, out):
    fit = CalibrationFit(Calibration(1.0, -1.0, 0.25, counted="new", coupling=1.5, origin="<20> pairs"))
    conformal = ConformalCounts.fit([PoissonBinomial([0.9, 0.5])] * 19, [1, 2] * 9 + [3])
    fit = replace(fit, conformal=ConformalFit(fit.calibration, conformal))
    page = page_of(maps, out, calibrations=(fit,), conformal=True)
    record = json.loads((out / "a.json").read_text("utf-8"))["pairs"][0]["new"]["count"]
    assert record["count_mean_calibrated"] != record["count_mean"] == pytest.approx(0.8)
    low, high = record["interval90_low_conformal"], record["interval90_high_conformal"]
    assert f"a {record['count_mean_calibrated']:.2f} " in page.text
    assert f"new, guaranteed {low} to {high}" in page.text
    assert "Numbers of new lesions are corrected ( calibrated)" in page.text
    assert "1.5 0.25 <20> pairs" in page.text
    assert fit.fingerprint in page.text
    assert "Guaranteed intervals. Of new pairs like those of the calibration" in page.text
    assert "new, raw 1 1 0.80 ± 0.40" in page.text
    assert "Numbers are not calibrated" not in page.text


def test_calibration_of_changes_shows_its_crowding(maps, out):
    calibration = Calibration(1.0, -1.0, crowding=0.25, typical_count=2, counted="new")
    page = page_of(maps, out, calibrations=(CalibrationFit(calibration),))
    assert "crowding +0.25 on the logit for each factor e in the number of lesions, from 2 on" in page.text


def test_calibration_without_guarantee_promises_none(maps, out):
    calibration = Calibration(1.0, -1.0, extra_share=0.2, counted="gone")
    page = page_of(maps, out, calibrations=(CalibrationFit(calibration),))
    assert "0, and 0.2 for each" in page.text
    assert "guaranteed" not in page.text.lower()


def test_images_of_both_times_are_shown(maps, out, rng):
    for time in ("before", "after"):
        for name in ("a", "b"):
            save(maps.parent / "flair" / time / f"{name}.nii.gz", rng.integers(0, 4000, SHAPE).astype(np.int16))
    page = page_of(maps, out, images=maps.parent / "flair")
    assert page.text.count("Shown on the images.") == 2
    assert page.source.count('href="data:image/jpeg;') == len(pictures(page)) == 24


def test_image_of_one_time_only_leaves_the_other_to_the_map(maps, out, rng):
    save(maps.parent / "flair" / "after" / "a.nii.gz", rng.integers(0, 4000, SHAPE).astype(np.int16))
    page = page_of(maps, out, images=maps.parent / "flair")
    assert "Shown on the image (after) and on the map (before), from probability 0" in page.text
    assert "Session 1: shown on the map, because there is no image of it in" in page.text
    assert "2 patients could not be shown as requested; the section of each says why: a , b" in page.text
    assert page.source.count('href="data:image/jpeg;') == 9


@pytest.mark.parametrize("grid", ["of the map", "of the last map", "another"])
def test_image_of_a_map_that_was_resampled(tmp_path, out, rng, grid):
    coarse = np.diag([6.0, 1.0, 1.0, 1.0])
    save(tmp_path / "before" / "a.nii.gz", bumps({(2, 10, 10): 0.9}, (8, 40, 36)), coarse)
    save(tmp_path / "after" / "a.nii.gz", bumps({OLD: 0.9}))
    shape, affine = {
        "of the map": ((8, 40, 36), coarse),
        "of the last map": (SHAPE, AFFINE),
        "another": ((4, 40, 36), np.diag([12.0, 1, 1, 1])),
    }[grid]
    save(tmp_path / "flair" / "before" / "a.nii.gz", rng.integers(1, 99, shape).astype(np.int16), affine)
    save(tmp_path / "flair" / "after" / "a.nii.gz", rng.integers(1, 99, SHAPE).astype(np.int16))
    page = page_of(tmp_path, out, images=tmp_path / "flair")
    is_shown = grid != "another"
    assert ("Shown on the images." in page.text) == is_shown
    assert ("Session 1: Shown on the map, because the image could not be used: Expected" in page.text) != is_shown


def test_pictures_made_while_comparing_are_those_made_later(maps, out, tmp_path, rng):
    for time in ("before", "after"):
        for name in ("a", "b"):
            save(tmp_path / "flair" / time / f"{name}.nii.gz", rng.integers(0, 4000, SHAPE).astype(np.int16))
    images = tmp_path / "flair"
    selection = CourseSelection()
    selection = replace(selection, selection=replace(selection.selection, images=images))
    inputs, drawn = [maps / "before", maps / "after"], []
    results = compare_batch(inputs, out, selection=selection, show=SectionWriter(images))
    now = write_report(results, images=images, progress=lambda done, _: drawn.append(done)).read_text("utf-8")
    assert drawn == []
    compare_batch(inputs, tmp_path / "later")
    later = write_report(tmp_path / "later", images=images).read_text("utf-8")
    body = re.compile("<main>.*</main>", re.DOTALL)
    assert body.search(now)[0] == body.search(later)[0]


def test_map_that_is_gone_leaves_the_numbers(maps, out):
    results = compared(maps, out)
    (maps / "before" / "a.nii.gz").unlink()
    page = Page(write_report(results).read_text("utf-8"))
    assert "No pictures, because the maps can no longer be read as they were compared" in page.text
    assert "1 patient could not be shown as requested" in page.text
    assert cards(page) == ["Lesion 1"]  # of the other patient
    assert "3 0.800 0.000 0.000 new" in page.text


def test_map_or_mask_that_changed_is_not_shown(maps, out):
    mask = save(maps.parent / "mask.nii.gz", np.ones(SHAPE, np.uint8))
    results = compared(maps, out, mask=mask)
    save(maps / "after" / "a.nii.gz", bumps({OLD: 0.9, NEW: 0.7}))
    page = Page(write_report(results).read_text("utf-8"))
    assert page.text.count("No pictures, because") == 1
    assert f"{maps / 'after' / 'a.nii.gz'} has changed since it was counted" in page.text
    save(mask, np.ones(SHAPE, np.float32))
    (out / "changes.html").unlink()
    page = Page(write_report(results).read_text("utf-8"))
    assert page.text.count(f"{mask} has changed since it was counted. Put the file back, or run again.") == 2


def test_maps_too_large_for_pictures_say_so(maps, out, monkeypatch):
    monkeypatch.setattr("lesioncount.report.slices.MOST_SHADES", 1000)
    page = page_of(maps, out)
    assert page.text.count("No pictures, because the maps have more than 1,000 voxels.") == 2
    assert not page.all("article")


def test_lesions_beyond_a_few_hundred_are_left_to_the_table(tmp_path, out):
    probabilities = np.zeros((64, 64, 9), dtype=np.float32)
    probabilities[::3, ::3, 4] = 0.5
    for time in ("before", "after", "later"):
        save(tmp_path / time / "a.nii.gz", probabilities if time == "after" else 0 * probabilities, np.eye(4))
    results = compare_batch([tmp_path / time for time in ("before", "after", "later")], out)
    page = Page(write_report(results).read_text("utf-8"))
    assert page.text.count("184 more lesions, less probably new or gone than these, are not shown") == 2
    assert "184 more are in lineages.tsv" in page.text
    assert len(page.all("article")) == 10


def test_names_notes_and_errors_cannot_become_markup(maps, out):
    compared(maps, out)
    hostile = "x<script>alert('1')&amp;\"$a$ 山"
    run = json.loads((out / "run.json").read_text("utf-8"))
    record = json.loads((out / "a.json").read_text("utf-8")) | {"patient": hostile, "notes": ["<b id=w>&</b>"]}
    record["pairs"][0]["pair"] = record["sessions"][0]["session"] = hostile
    del record["checksum"]
    (out / f"{hostile}.json").write_text(json.dumps(record), "utf-8")
    run["patients"][0]["patient"] = hostile
    run["patients"][1]["error"] = "<img src=e>"
    run["alone"] = ["<i id=alone>"]
    (out / "run.json").write_text(json.dumps(run), "utf-8")
    page = Page(write_report(out).read_text("utf-8"))
    assert len(page.all("script")) == 1  # ours
    assert not page.all("img")
    assert not page.all("b", id="w")
    assert not page.all("i", id="alone")
    assert page.text.count(hostile) >= 4
    assert any(hostile in svg["aria-label"] for svg in pictures(page))
    assert "failed: <img src=e>" in page.text


def test_name_that_leads_out_of_the_folder_is_refused(maps, out):
    compared(maps, out)
    run = json.loads((out / "run.json").read_text("utf-8"))
    record = json.loads((out / "a.json").read_text("utf-8")) | {"patient": "../a"}
    del record["checksum"]
    (out.parent / "a.json").write_text(json.dumps(record), "utf-8")
    run["patients"][0]["patient"] = "../a"
    (out / "run.json").write_text(json.dumps(run), "utf-8")
    with pytest.raises(MapFileError, match=r"leads out of .* Compare again"):
        write_report(out)


def test_footer_says_that_it_is_no_diagnosis(maps, out):
    page = page_of(maps, out)
    assert "Research software: no diagnosis." in page.text[page.text.index("How to read this page") :]


def test_peaks_that_touch_are_lesions_of_their_own(tmp_path, out):
    two = bumps({})
    two[4:7, 10:20, 10:12] = 0.5
    two[5, 11, 10], two[5, 18, 10] = 0.9, 0.8
    save(tmp_path / "before" / "a.nii.gz", two * 0.5)
    save(tmp_path / "after" / "a.nii.gz", two)
    page = page_of(tmp_path, out, protocol=CountingProtocol.named("peaks"))
    assert sorted(cards(page)) == ["Lesion 1", "Lesion 2"]
    assert page.source.count('class="neighbours"') >= 4  # each is seen beside the other one, at both times


def test_command_writes_the_page_and_says_where(maps, out, capsys, tmp_path, rng):
    for time in ("before", "after"):
        for name in ("a", "b"):
            save(tmp_path / "flair" / time / f"{name}_FLAIR.nii.gz", rng.integers(0, 99, SHAPE).astype(np.int16))
    images = ["--images", str(tmp_path / "flair"), "--images-suffix", "_FLAIR"]
    inputs = [str(maps / "before"), str(maps / "after")]
    assert main(["compare", *inputs, "-o", str(out), "--report", "--jobs", "2", *images]) == 0
    assert f"Report: {out / 'changes.html'}" in capsys.readouterr().out
    assert "Shown on the images." in (out / "changes.html").read_text("utf-8")
    assert main(["compare", *inputs, "-o", str(out), "--report", "--resume", "--quiet", *images]) == 0
    assert capsys.readouterr().out == ""


def test_report_without_the_extra_fails_before_anything_is_compared(maps, out):
    script = "import sys; sys.modules['jinja2'] = None; from lesioncount.cli import main; sys.exit(main(sys.argv[1:]))"
    command = ["compare", str(maps / "before"), str(maps / "after"), "-o", str(out), "--report"]
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install '.[report]'" in done.stderr
    assert not out.exists()


def test_same_results_give_the_same_page_which_is_not_written_again(maps, out):
    results = compared(maps, out)
    first = write_report(results).stat().st_mtime_ns
    assert write_report(read_changes(out)).stat().st_mtime_ns == first


def test_interrupted_run_says_so(maps, out):
    compared(maps, out)
    run = json.loads((out / "run.json").read_text("utf-8"))
    run["run"]["status"] = "interrupted"
    (out / "run.json").write_text(json.dumps(run), "utf-8")
    assert "The run was interrupted" in write_report(out).read_text("utf-8")
