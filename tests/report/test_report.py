"""The page as a reader finds it: made from real files that were counted for it."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from change_pairs import AFFINE, SHAPE, bumps, save
from html_page import Page

from lesioncount import CountingProtocol
from lesioncount.errors import MapFileError, MissingExtraError
from lesioncount.results.settings import Settings
from lesioncount.runs.count import count_batch

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from lesioncount.report import write_report

PEAKS = {(4, 10, 10): 0.9, (11, 30, 8): 0.5, (8, 20, 28): 0.3}


def report(maps, out, *, images=None, mask=None, **settings):
    count_batch([maps], out, settings=Settings(**settings), mask=mask)
    return Page(write_report(out, images=images).read_text("utf-8"))


@pytest.fixture
def maps(tmp_path):
    """Two scans with three candidates each, and one without."""
    save(tmp_path / "maps" / "sub-01.nii.gz", bumps(PEAKS))
    save(tmp_path / "maps" / "sub-02.nii.gz", bumps(PEAKS))
    save(tmp_path / "maps" / "sub-03.nii.gz", bumps({}))
    return tmp_path / "maps"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def test_page_needs_no_other_file(maps, out):
    page = report(maps, out)
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,", "data:image/jpeg;base64,"))
    text = (out / "report.html").read_text("utf-8")
    assert not page.all("link")
    assert not re.search(r"https?://|@import|url\((?!#)", text)


def test_ids_are_unique_and_links_lead_to_them(maps, out):
    page = report(maps, out)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"][1:] for attributes in page.all("a") if "href" in attributes}
    assert {"scan-1", "scan-2", "scan-3"} <= links <= set(ids)
    used = set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', (out / "report.html").read_text("utf-8")))
    assert used <= set(ids)


def test_every_scan_is_shown_and_failed_ones_with_their_error(maps, out):
    (maps / "broken.nii.gz").write_bytes(b"no map")
    page = report(maps, out)
    for name in ("sub-01", "sub-02", "sub-03", "broken"):
        assert name in page.text
    error = json.loads((out / "broken.json").read_text("utf-8"))["error"]
    assert f"failed: {' '.join(error.split())}" in page.text
    assert "3 scans counted 1 failed" in page.text


def test_total_adds_up_all_scans(maps, out):
    # Six candidates, 2 × (0.9 + 0.5 + 0.3)
    assert "3.4 lesions expected in total 2 to 5 90 % interval of the total" in report(maps, out).text


def test_most_uncertain_scan_comes_first(tmp_path, out):
    save(tmp_path / "maps" / "a.nii.gz", bumps({(4, 10, 10): 0.99}))
    save(tmp_path / "maps" / "b.nii.gz", bumps({(4, 10, 10): 0.5}))
    page = report(tmp_path / "maps", out)
    assert [section["id"] for section in page.all("details")] == ["scan-2", "scan-1"]


def test_candidates_come_by_their_share_of_the_variance(maps, out):
    labels = [card["aria-label"] for card in report(maps, out).all("article")]
    # 0.5, 0.3, 0.9, numbered as a reader of the map meets them: 0.9, 0.3, 0.5
    assert labels == ["Candidate 3", "Candidate 2", "Candidate 1"] * 2


def test_nearly_certain_candidates_are_not_rounded_to_certain_ones(tmp_path, out):
    peaks = {(4, 10, 10): 0.9999, (11, 30, 8): 0.5, (8, 20, 28): 1.0}
    save(tmp_path / "maps" / "a.nii.gz", bumps(peaks))
    text = report(tmp_path / "maps", out, protocol=CountingProtocol(threshold=0)).text
    assert "Existence > 0.999 Share of variance < 0.1 %" in text
    assert "Existence 1.000 Share of variance 0 %" in text


def test_very_weak_candidates_are_not_rounded_to_none(tmp_path, out):
    save(tmp_path / "maps" / "a.nii.gz", bumps({(4, 10, 10): 0.0002}))
    assert "Existence < 0.001" in report(tmp_path / "maps", out, protocol=CountingProtocol(threshold=0)).text


def test_protocol_is_in_plain_words(maps, out):
    page = report(maps, out, protocol=CountingProtocol(threshold=0.2, connectivity=26, min_voxels=2))
    assert "voxels above 0.2, connected through 26 neighbours, at least 2 voxels" in page.text


def test_figures_and_pictures_have_descriptions(maps, out):
    page = report(maps, out)
    pictures = [svg for svg in page.all("svg") if "figure" not in svg.get("class", "")]
    assert len(page.all("svg", class_="figure")) == 1 + 3
    assert len(pictures) == 2 * 3 * 3
    assert all(svg.get("role") == "img" and svg["aria-label"] for svg in page.all("svg"))
    assert all(header.get("scope") in ("col", "row") for header in page.all("th"))


def test_pictures_keep_the_shape_of_the_voxels(maps, out):
    boxes = [svg["viewbox"] for svg in report(maps, out).all("svg") if "figure" not in svg.get("class", "")]
    # The whole map of 16 × 40 × 36 voxels, 48 × 40 × 36 mm: axial, coronal, sagittal
    assert boxes[:3] == ["0 0 48 40", "0 0 48 36", "0 0 40 36"]


def test_names_and_errors_cannot_become_markup(maps, out):
    count_batch([maps], out)
    run = json.loads((out / "run.json").read_text("utf-8"))
    hostile = "x<script>alert('1')&amp;\"$a$ 山"
    record = json.loads((out / "sub-01.json").read_text("utf-8"))
    record |= {"scan": hostile, "warnings": ["<b id=w>&</b>"]}
    del record["checksum"]
    (out / f"{hostile}.json").write_text(json.dumps(record), "utf-8")
    failed = record | {"scan": "sub-02", "status": "failed", "error": "<img src=e>"}
    (out / "sub-02.json").write_text(json.dumps(failed), "utf-8")
    run["inputs"][0]["scan"] = hostile
    (out / "run.json").write_text(json.dumps(run), "utf-8")
    page = Page(write_report(out).read_text("utf-8"))
    assert len(page.all("script")) == 1  # ours
    assert not page.all("img")
    assert not page.all("b", id="w")
    assert page.text.count(hostile) >= 3  # figure, table, section
    assert "failed: <img src=e>" in page.text


def test_scan_without_candidates_says_so(maps, out):
    assert "There is no candidate: no voxel is above the threshold. The count is 0." in report(maps, out).text


def test_two_dimensional_array_is_shown_as_one_plane_without_letters(tmp_path, out):
    (tmp_path / "maps").mkdir()
    np.save(tmp_path / "maps" / "slide.npy", bumps({(10, 20): 0.8, (40, 60): 0.4}, (50, 80)))
    page = report(tmp_path / "maps", out)
    pictures = [svg["viewbox"] for svg in page.all("svg") if "figure" not in svg.get("class", "")]
    assert pictures == ["0 0 80 50", "0 0 80 50"]
    assert "patient's right" not in page.text
    assert "Peak voxel (40, 60)" in page.text
    assert "RAS mm" not in page.text


@pytest.mark.parametrize("settings", [{"logits": True}, {"scale": 1 / 200}], ids=["logits", "scale"])
def test_maps_that_do_not_hold_probabilities_are_shown(tmp_path, out, settings):
    probabilities = np.clip(bumps(PEAKS), 0.01, 0.99)
    stored = (
        np.log(probabilities / (1 - probabilities)) if "logits" in settings else (200 * bumps(PEAKS)).astype(np.uint8)
    )
    save(tmp_path / "maps" / "a.nii.gz", stored)
    page = report(tmp_path / "maps", out, **settings)
    assert len(page.all("article")) == 3
    assert not page.all("p", class_="note")


def test_mask_cuts_the_outline(tmp_path, out):
    mask = np.ones(SHAPE, np.uint8)
    mask[:, :, 11:] = 0
    save(tmp_path / "maps" / "a.nii.gz", bumps({(4, 10, 10): 0.9}))
    page = report(tmp_path / "maps", out, mask=save(tmp_path / "mask.nii.gz", mask))
    outlines = [path["d"] for path in page.all("path") if "transform" in path]
    # Sagittal: three columns, and of three rows those two that the mask leaves; rows count from superior.
    assert outlines[2] == "M28 25h3M28 27h3M28 25v2M31 25v2"


def test_image_is_shown_behind_the_candidates(maps, out, rng):
    for scan in ("sub-01", "sub-02"):
        save(maps.parent / "flair" / f"{scan}.nii.gz", rng.integers(0, 4000, SHAPE).astype(np.int16))
    page = report(maps, out, images=maps.parent / "flair")
    assert page.text.count("on the image.") == 2
    assert not page.all("p", class_="note")


@pytest.mark.parametrize(
    ("shape", "affine"),
    [((8, 40, 36), AFFINE), (SHAPE, AFFINE * (-1, 1, 1, 1))],
    ids=["shape", "place"],
)
def test_image_on_another_grid_gives_way_to_the_map(maps, out, shape, affine):
    image = save(maps.parent / "flair.nii.gz", np.ones(shape, np.float32), affine)
    page = report(maps, out, images=image)
    assert page.text.count("Shown on the map, because the image could not be used: Expected the image on the grid") == 2
    assert "2 scans could not be shown as requested" in page.text
    assert len(page.all("article")) == 6


def test_missing_image_gives_way_to_the_map(maps, out):
    save(maps.parent / "flair" / "sub-01.nii.gz", np.zeros(SHAPE, np.float32))
    page = report(maps, out, images=maps.parent / "flair")
    assert page.text.count("because there is no image of this scan in") == 1
    assert len(page.all("article")) == 6


def test_numbers_stay_when_the_map_is_gone(maps, out):
    count_batch([maps], out)
    (maps / "sub-01.nii.gz").unlink()
    page = Page(write_report(out).read_text("utf-8"))
    assert "No pictures, because the map can no longer be read as it was counted" in page.text
    assert len(page.all("article")) == 3  # of the other scan
    assert len(page.all("table")) == 2  # all scans, and the candidates without pictures


def in_fewer_voxels():
    """The same peaks, in candidates of another shape."""
    other = bumps(PEAKS)
    other[3, 9:12, 9:12] = 0
    return other


@pytest.mark.parametrize(
    "other", [bumps(PEAKS)[:8], bumps(PEAKS) / 2, in_fewer_voxels()], ids=["shape", "values", "outline"]
)
@pytest.mark.parametrize("most", [10**9, 1000], ids=["whole", "windows"])
def test_map_that_changed_is_not_shown(maps, out, other, most, monkeypatch):
    monkeypatch.setattr("lesioncount.report.slices.MOST_SHADES", most)
    count_batch([maps], out)
    save(maps / "sub-01.nii.gz", other)
    page = Page(write_report(out).read_text("utf-8"))
    assert page.text.count("No pictures, because") == 1
    assert f"{maps / 'sub-01.nii.gz'} has changed since it was counted" in page.text


@pytest.mark.parametrize("shape", [(4, 4, 2), (4, 4, 300)])
def test_mask_that_changed_is_not_used(tmp_path, out, shape):
    probabilities = np.zeros((4, 4, 300), np.float32)
    probabilities[..., 290] = 0.8
    path = save(tmp_path / "map.nii.gz", probabilities)
    mask = save(tmp_path / "mask.nii.gz", np.ones((4, 4, 300), np.uint8))
    count_batch([path], out, mask=mask)
    save(mask, np.zeros(shape, np.uint8))
    page = Page(write_report(out).read_text("utf-8"))
    assert page.text.count("No pictures, because") == 1
    assert f"{mask} has changed since it was counted" in page.text


def test_all_candidates_are_in_a_table_and_the_most_doubtful_and_the_surest_have_pictures(tmp_path, out):
    probabilities = np.zeros((16, 40, 36), dtype=np.float32)
    probabilities[::4, ::4, ::8] = 0.5
    probabilities[0, 0, ::8] = 0.97
    save(tmp_path / "maps" / "many.nii.gz", probabilities)
    page = report(tmp_path / "maps", out)
    cards = [float(card["data-existence"]) for card in page.all("article")]
    assert cards == [0.5] * 5 + [pytest.approx(0.97)] * 5
    assert "the 5 candidates with the largest shares of the variance and the 5 surest ones" in page.text
    assert len(page.all("th", scope="row")) == 1 + 4 * 10 * 5  # the scan, and its candidates


def test_limits_are_stated(tmp_path, out):
    probabilities = np.zeros((64, 64, 3), dtype=np.float32)
    probabilities[::2, ::2, 1] = 0.5
    save(tmp_path / "maps" / "many.nii.gz", probabilities)
    assert (
        "24 more candidates, with 2.3 % of the variance together, are not shown" in report(tmp_path / "maps", out).text
    )


def test_pictures_are_whole_slices_with_a_close_up(tmp_path, out):
    save(tmp_path / "maps" / "a.nii.gz", bumps({(20, 30, 40): 0.6, (70, 30, 40): 0.8}, (90, 100, 80)), np.eye(4))
    page = report(tmp_path / "maps", out)
    pictures = [svg for svg in page.all("svg") if "figure" not in svg.get("class", "")]
    assert [svg["data-far"] for svg in pictures[:3]] == ["0 0 90 100", "0 0 90 80", "0 0 100 80"]
    assert pictures[0]["viewbox"] == pictures[0]["data-far"]
    # 64 mm around the candidate, turned with the patient: right and front come first.
    assert pictures[0]["data-near"] == "26 36 64 64"
    # The axial slice through one candidate shows the other one.
    assert page.source.count('class="neighbours"') == 4


def test_run_without_any_count_has_a_page(tmp_path, out):
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "a.nii.gz").write_bytes(b"no map")
    page = report(tmp_path / "maps", out)
    assert "0 scans counted 1 failed 0.0 lesions expected" in page.text


def test_record_that_is_gone_is_a_failed_scan(maps, out):
    count_batch([maps], out)
    (out / "sub-02.json").unlink()
    page = Page(write_report(out).read_text("utf-8"))
    assert "sub-02.json is missing or not a valid record" in page.text


def test_same_results_give_the_same_bytes(maps, out):
    count_batch([maps], out)
    first, second = (re.sub("<time>.*?</time>", "", write_report(out).read_text("utf-8")) for _ in range(2))
    assert first == second


def test_warnings_are_at_the_top_and_at_the_scan(tmp_path, out):
    save(tmp_path / "maps" / "binary.nii.gz", (bumps(PEAKS) > 0.4).astype(np.float32))
    page = report(tmp_path / "maps", out)
    warning = json.loads((out / "binary.json").read_text("utf-8"))["warnings"][0]
    assert page.text.count(warning) == 1
    assert page.text.count("This map is binary (only 0 and 1)") == 3  # in the table and at the scan, its first words


def test_warnings_about_several_scans_are_one_at_the_top(tmp_path, out):
    for i in range(3):
        p = np.zeros((12, 5 + i, 5), np.float32)
        p[::2, 2, 2] = 0.4 + i / 10
        save(tmp_path / "maps" / f"s{i}.nii.gz", p)
    page = report(tmp_path / "maps", out)
    assert page.text.count("3 of 3 scans ( s0 , s1 , s2 ): Most of the expected lesions are candidates of one") == 1
    assert page.text.count("In this map: 6 of 6 candidates") == 3


def test_interrupted_run_says_so(maps, out):
    count_batch([maps], out)
    run = json.loads((out / "run.json").read_text("utf-8"))
    run["run"]["status"] = "interrupted"
    (out / "run.json").write_text(json.dumps(run), "utf-8")
    assert "The run was interrupted" in write_report(out).read_text("utf-8")


def test_folder_without_results_is_an_error(tmp_path):
    with pytest.raises(MapFileError, match="Count first"):
        write_report(tmp_path)


def test_a_folder_of_maps_is_not_where_results_are_to_go(tmp_path):
    save(tmp_path / "map.nii.gz", np.zeros((4, 4, 4)))
    with pytest.raises(MapFileError, match=f"lesioncount count {re.escape(str(tmp_path))} -o FOLDER"):
        write_report(tmp_path)


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_missing_package_names_the_extra(maps, out, monkeypatch, package):
    count_batch([maps], out)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*pip install '\.\[report\]'"):
        write_report(out)
    assert not (out / "report.html").exists()


def test_import_does_not_load_matplotlib():
    code = "import sys, lesioncount.report; sys.exit('matplotlib' in sys.modules or 'jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def pair_that_touches():
    """Two bumps side by side, 0.9 and 0.7, with 0.4 between them in another slice than the peaks."""
    probabilities = np.zeros(SHAPE, dtype=np.float32)
    probabilities[7:10, 14:17, 10:13] = 0.3
    probabilities[7:10, 14:17, 14:17] = 0.3
    probabilities[8, 15, 11], probabilities[8, 15, 15] = 0.9, 0.7
    probabilities[9, 15, 12:15] = 0.4
    return probabilities


def test_candidates_that_touch_have_an_outline_each_and_the_bridge_is_marked(tmp_path, out):
    page = report(
        save(tmp_path / "maps" / "sub-01.nii.gz", pair_that_touches()),
        out,
        protocol=CountingProtocol(candidates="peaks"),
    )
    assert page.text.count("Peak, bridge") == 1
    assert "0.700, 0.400" in page.text
    assert page.source.count('class="neighbours"') == 4  # the plane between the two cuts one only
    assert page.source.count('<circle class="halo"') == 3  # of the lower peak only, which ends at the bridge
    assert page.source.count('class="elsewhere"') == 2  # the bridge is in the coronal plane only
