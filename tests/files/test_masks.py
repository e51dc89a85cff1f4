"""One reading of masks: what is neither 0 nor NaN is inside, for arrays, files, truth and pictures alike."""

import json

import nibabel
import numpy as np
import pytest
from html_page import Page
from nifti_files import AFFINE, save

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.files import open_map

SHAPE = (10, 12, 14)


@pytest.fixture
def probabilities():
    """Two lesions, of which a mask with NaN shows the first only."""
    p = np.full(SHAPE, 0.01, dtype=np.float32)
    p[2, 2:4, 2:4] = 0.8
    p[7, 8:10, 9:11] = 0.7
    return p


@pytest.fixture
def mask():
    inside = np.full(SHAPE, np.nan, dtype=np.float32)
    inside[:5] = 1
    inside[0] = 0
    return inside


def test_arrays(probabilities, mask):
    assert len(lc.count_lesions(probabilities, mask=mask).candidates) == 1


def test_files(probabilities, mask, tmp_path):
    save(tmp_path / "map.nii.gz", probabilities)
    save(tmp_path / "mask.nii.gz", mask)
    options = ["-o", str(tmp_path / "out"), "--mask", str(tmp_path / "mask.nii.gz"), "--quiet"]
    assert main(["count", str(tmp_path / "map.nii.gz"), *options]) == 0
    assert json.loads((tmp_path / "out" / "map.json").read_text())["count"]["n_candidates"] == 1


def test_scaled_masks_have_their_scale(tmp_path):
    image = nibabel.Nifti1Image(np.array([[[0, 1, 2, 3]]], dtype=np.uint8), AFFINE)
    image.header.set_slope_inter(0.5, -1.0)
    nibabel.save(image, tmp_path / "mask.nii.gz")
    np.testing.assert_array_equal(open_map(tmp_path / "mask.nii.gz").mask(), [[[True, True, False, True]]])


def test_the_truth_inside_of_a_mask(probabilities, mask, tmp_path):
    """Truth and count look at the same voxels: one lesion is inside, and it is found."""
    save(tmp_path / "maps" / "s.nii.gz", probabilities)
    save(tmp_path / "truth" / "s.nii.gz", np.where(probabilities > 0.5, 1.0, np.nan).astype(np.float32))
    save(tmp_path / "masks" / "s.nii.gz", mask)
    options = ["-o", str(tmp_path / "out"), "--mask", str(tmp_path / "masks"), "--quiet"]
    assert main(["count", str(tmp_path / "maps"), *options]) == 0
    truth = ["--truth", str(tmp_path / "truth"), "-o", str(tmp_path / "eval"), "--quiet"]
    assert main(["evaluate", str(tmp_path / "out"), *truth]) == 0
    [scan] = json.loads((tmp_path / "eval" / "evaluation.json").read_text())["scans"]
    assert (scan["truth"], scan["predicted"], scan["cc"]) == (1, 1, 1)


def test_pictures(probabilities, tmp_path):
    """A candidate that a NaN cuts off from its neighbour is outlined without it."""
    pytest.importorskip("jinja2")
    probabilities[2, 2:4, 4:8] = 0.5
    mask = np.ones(SHAPE, dtype=np.float32)
    mask[:, :, 4:] = np.nan
    save(tmp_path / "s.nii.gz", probabilities)
    save(tmp_path / "m.nii.gz", mask)
    with_mask = ["--mask", str(tmp_path / "m.nii.gz"), "--report", "--quiet"]
    assert main(["count", str(tmp_path / "s.nii.gz"), "-o", str(tmp_path / "out"), *with_mask]) == 0
    page = Page((tmp_path / "out" / "report.html").read_text("utf-8"))
    outlines = {path["d"] for path in page.all("path") if "transform" in path and "h" in path.get("d", "")}
    assert outlines
    longest = max(int(part.split("h")[1].split("M")[0]) for d in outlines for part in d.split("M") if "h" in part)
    assert longest <= 2


def test_the_intercept_of_truth_masks_and_of_pictures(probabilities, tmp_path):
    """Stored as 1 and 2 with an intercept of -1, so that the first is outside: for count, truth and picture."""
    pytest.importorskip("jinja2")

    def shifted(path, inside):
        image = nibabel.Nifti1Image(inside.astype(np.uint8) + 1, AFFINE)
        image.header.set_slope_inter(1.0, -1.0)
        path.parent.mkdir(exist_ok=True)
        nibabel.save(image, path)
        np.testing.assert_array_equal(open_map(path).mask(), inside)

    save(tmp_path / "maps" / "s.nii.gz", probabilities)
    where = np.zeros(SHAPE, bool)
    where[:5, :, :3] = True
    shifted(tmp_path / "masks" / "s.nii.gz", where)
    shifted(tmp_path / "truth" / "s.nii.gz", probabilities > 0.5)
    options = ["-o", str(tmp_path / "out"), "--mask", str(tmp_path / "masks"), "--report", "--quiet"]
    assert main(["count", str(tmp_path / "maps"), *options]) == 0
    truth = ["--truth", str(tmp_path / "truth"), "-o", str(tmp_path / "eval"), "--quiet"]
    assert main(["evaluate", str(tmp_path / "out"), *truth]) == 0
    [scan] = json.loads((tmp_path / "eval" / "evaluation.json").read_text())["scans"]
    assert (scan["truth"], scan["predicted"], scan["cc"]) == (1, 1, 1)
    page = Page((tmp_path / "out" / "report.html").read_text("utf-8"))
    outlines = {path["d"] for path in page.all("path") if "transform" in path and "h" in path.get("d", "")}
    longest = max(int(part.split("h")[1].split("M")[0]) for d in outlines for part in d.split("M") if "h" in part)
    assert longest <= 2
