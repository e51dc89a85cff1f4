"""Files that say how large their voxels are, but not where they lie: no side and no place is made up for them."""

import csv

import nibabel
import numpy as np
import pytest
from html_page import Page

from lesioncount.cli import main
from lesioncount.errors import MapFileError
from lesioncount.files import open_map
from lesioncount.runs.file_counts import count_file


@pytest.fixture
def unplaced(tmp_path):
    """A map whose header has sform_code = qform_code = 0, as many converters write it."""
    probabilities = np.zeros((12, 14, 16), dtype=np.float32)
    probabilities[2:5, 3:6, 4:7] = 0.6
    probabilities[8, 9, 10] = 0.4
    image = nibabel.Nifti1Image(probabilities, None)
    image.header.set_zooms((0.5, 1.0, 3.0))
    (tmp_path / "maps").mkdir()
    nibabel.save(image, tmp_path / "maps" / "scan.nii.gz")
    return tmp_path / "maps" / "scan.nii.gz"


def test_sizes_are_known_and_places_are_not(unplaced):
    source = open_map(unplaced)
    assert source.affine is None
    assert source.spacing_mm == (0.5, 1.0, 3.0)
    assert count_file(unplaced).result.candidates.volume_mm3[-1] == 1.5
    assert "sform_code 0 and qform_code 0" in source.grid.why_unplaced


@pytest.mark.parametrize("code", ["sform_code", "qform_code"])
def test_one_code_is_enough_for_a_place(tmp_path, code):
    image = nibabel.Nifti1Image(np.zeros((4, 5, 6), dtype=np.float32), None)
    affine = np.diag([1.0, 2.0, 3.0, 1.0])
    (image.set_sform if code == "sform_code" else image.set_qform)(affine, 1)
    nibabel.save(image, tmp_path / "map.nii.gz")
    np.testing.assert_allclose(open_map(tmp_path / "map.nii.gz").affine, affine)


def test_sizes_of_nothing_are_refused(tmp_path):
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 5, 6), dtype=np.float32), None), tmp_path / "map.nii")
    with (tmp_path / "map.nii").open("r+b") as file:
        file.seek(80)  # pixdim[1]
        file.write(np.float32(np.inf).tobytes())
    with pytest.raises(MapFileError, match="does not place the voxels in space"):
        open_map(tmp_path / "map.nii")


def test_tables_have_volumes_but_no_coordinates(unplaced, tmp_path):
    out = tmp_path / "out"
    assert main(["count", str(unplaced), "-o", str(out), "--write=labels", "--quiet"]) == 0
    with (out / "lesions.tsv").open() as table:
        row = next(csv.DictReader(table, delimiter="\t"))
    assert float(row["volume_mm3"]) == 27 * 1.5
    assert {row[f"{what}_{axis}_mm"] for what in ("peak", "centroid") for axis in "xyz"} == {"n/a"}
    labels = nibabel.load(out / "scan_lesions.nii.gz")
    assert (int(labels.header["sform_code"]), int(labels.header["qform_code"])) == (0, 0)
    assert labels.header.get_zooms() == (0.5, 1.0, 3.0)


def test_the_page_names_no_side_and_says_why(unplaced, tmp_path):
    pytest.importorskip("jinja2")
    out = tmp_path / "out"
    assert main(["count", str(unplaced), "-o", str(out), "--report", "--quiet"]) == 0
    page = Page((out / "report.html").read_text("utf-8"))
    assert "patient's right" not in page.text
    assert "its header has sform_code 0 and qform_code 0" in page.text
    assert "Peak in RAS mm" not in page.text
    assert "axial" not in page.text
