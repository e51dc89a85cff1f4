"""What is written of a scan for viewers: label maps, existence maps, colour tables."""

import nibabel
import numpy as np
import pytest
from nifti_files import AFFINE, save

from lesioncount.cli import main
from lesioncount.outputs.colours import colour_of
from lesioncount.runs import Settings, count_batch
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit


@pytest.fixture
def map_path(tmp_path):
    values = np.zeros((6, 7, 8), np.float32)
    values[1:3, 1:3, 1:3], values[4, 5, 5:7] = 0.5, (0.75, 0.25)
    return save(tmp_path / "scan.nii.gz", values)


def test_label_maps_say_that_their_values_are_labels(map_path, tmp_path):
    assert main(["count", str(map_path), "-o", str(tmp_path / "out"), "--write=labels", "--quiet"]) == 0
    image = nibabel.load(tmp_path / "out" / "scan_lesions.nii.gz")
    assert image.header.get_intent()[0] == "label"
    assert int(image.header["intent_code"]) == 1002
    np.testing.assert_array_equal(image.affine, AFFINE)


def test_an_existence_map_has_the_existence_of_each_candidate(map_path, tmp_path):
    out = tmp_path / "out"
    assert main(["count", str(map_path), "-o", str(out), "--write=existence", "--quiet"]) == 0
    image = nibabel.load(out / "scan_existence.nii.gz")
    values = np.asarray(image.dataobj)
    assert values.dtype == np.float32
    assert int(image.header["intent_code"]) == 0
    np.testing.assert_array_equal(values[1:3, 1:3, 1:3], 0.5)
    np.testing.assert_array_equal(values[4, 5, 5:7], 0.75)  # that of the peak, in all voxels
    assert (values > 0).sum() == 10
    assert not (out / "scan_lesions.nii.gz").exists()


def test_an_existence_map_is_calibrated_where_there_is_a_calibration(map_path, tmp_path):
    fit = CalibrationFit(Calibration(slope=1.0, offset=-1.0))
    settings = Settings(calibration=fit, save_existence=True)
    results = count_batch([map_path], tmp_path / "out", settings=settings)
    values = np.asarray(nibabel.load(tmp_path / "out" / "scan_existence.nii.gz").dataobj)
    rows = results.record("scan").lesions
    assert [row.existence_calibrated < row.existence for row in rows] == [True, True]
    np.testing.assert_allclose(np.unique(values)[1:], sorted(row.existence_calibrated for row in rows), rtol=1e-6)


def test_colour_tables_have_a_row_for_each_candidate(map_path, tmp_path):
    out = tmp_path / "out"
    assert main(["count", str(map_path), "-o", str(out), "--write=colours", "--quiet"]) == 0
    assert (out / "scan_lesions.nii.gz").exists()
    red, green, blue = colour_of(0.75)
    itksnap = (out / "scan_lesions.label").read_text().splitlines()
    assert [line.split() for line in itksnap if line.split()[:1] == ["2"]] == [
        ["2", str(red), str(green), str(blue), "1", "1", "1", '"lesion', "2", '(0.75)"']
    ]
    assert any(line.split(maxsplit=7)[:4] == ["0", "0", "0", "0"] and "Clear Label" in line for line in itksnap)
    slicer = (out / "scan_lesions.ctbl").read_text().splitlines()
    assert slicer[0].startswith("# Color table file")
    assert slicer[2:] == ["0 Background 0 0 0 0", "1 lesion_1_(0.50) 254 224 144 255",
                          f"2 lesion_2_(0.75) {red} {green} {blue} 255"]  # fmt: skip
    fsleyes = [line.split(maxsplit=4) for line in (out / "scan_lesions.lut").read_text().splitlines()]
    assert [row[0] for row in fsleyes] == ["1", "2"]
    assert [row[4] for row in fsleyes] == ["lesion 1 (0.50)", "lesion 2 (0.75)"]
    np.testing.assert_allclose(np.array(fsleyes[1][1:4], float) * 255, colour_of(0.75), atol=1e-2)


def test_colours_go_from_blue_to_red():
    shades = np.array([colour_of(p) for p in np.linspace(0, 1, 101)])
    assert shades.min() >= 0
    assert shades.max() <= 255
    assert (np.abs(np.diff(shades, axis=0)) < 12).all()
    assert shades[0, 2] > shades[0, 0]
    assert shades[-1, 0] > shades[-1, 2]


def test_what_is_no_longer_wanted_goes_when_results_are_replaced(map_path, tmp_path):
    out = tmp_path / "out"
    everything = Settings(save_labels=True, save_existence=True, save_colours=True)
    count_batch([map_path], out, settings=everything)
    names = {path.name for path in out.glob("scan_*")}
    assert names == {f"scan_{one}" for one in ("lesions.nii.gz", "existence.nii.gz", "lesions.label", "lesions.ctbl",
                                               "lesions.lut")}  # fmt: skip
    count_batch([map_path], out, settings=Settings(save_existence=True), overwrite=True)
    assert {path.name for path in out.glob("scan_*")} == {"scan_existence.nii.gz"}


def test_a_run_goes_on_where_a_file_is_missing(map_path, tmp_path):
    out, settings = tmp_path / "out", Settings(save_existence=True, save_colours=True)
    count_batch([map_path], out, settings=settings)
    (out / "scan_lesions.lut").unlink()
    before = (out / "scan.json").stat().st_mtime_ns
    count_batch([map_path], out, settings=settings, resume=True)
    assert (out / "scan_lesions.lut").exists()
    again = (out / "scan.json").stat().st_mtime_ns
    assert again != before
    count_batch([map_path], out, settings=settings, resume=True)
    assert (out / "scan.json").stat().st_mtime_ns == again
