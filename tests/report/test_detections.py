"""Pages of what a detector has found: on images where there are some, else a list."""

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main

TABLE = "scan,x_mm,y_mm,z_mm,diameter_mm,score\na,6,6,6,4,0.9\na,20,6,6,4,0.5\nb,6,6,6,4,0.25\n"


@pytest.fixture
def table(tmp_path):
    (tmp_path / "d.csv").write_text(TABLE)
    (tmp_path / "scans.tsv").write_text("scan\na\nb\nc\n")
    for name in "abc":
        save(
            tmp_path / "images" / f"{name}.nii.gz",
            np.arange(24 * 16 * 12, dtype=np.float32).reshape(24, 16, 12),
            np.eye(4),
        )
    return tmp_path / "d.csv"


def test_without_images_candidates_are_a_list(table, tmp_path):
    assert (
        main(["count", str(table), "-o", str(tmp_path / "out"), "--scans", str(tmp_path / "scans.tsv"), "--report"])
        == 0
    )
    page = (tmp_path / "out" / "report.html").read_text()
    assert "could not be shown" not in page
    assert "detections above 0.5" in page
    assert "there is no map" in page
    assert "20.0, 6.0, 6.0" in page
    assert ">nan" not in page
    assert "data:image/png" not in page


def test_with_images_they_are_shown_on_these(table, tmp_path):
    options = ["--images", str(tmp_path / "images"), "--report"]
    assert main(["count", str(table), "-o", str(tmp_path / "out"), *options]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count('<article class="card"') == 3
    assert "its box" in page
    assert "No pictures" not in page


def test_columns_that_detections_do_not_fill_are_left_out(tmp_path):
    (tmp_path / "d.csv").write_text("scan,x_mm,y_mm,z_mm,score\na,6,6,6,0.9\n")
    (tmp_path / "e.csv").write_text(TABLE)
    for name, has_volumes in (("d", False), ("e", True)):
        assert main(["count", str(tmp_path / f"{name}.csv"), "-o", str(tmp_path / name), "--report"]) == 0
        page = (tmp_path / name / "report.html").read_text()
        assert '<th scope="col">Voxels</th>' not in page
        assert ('<th scope="col">Volume</th>' in page) == has_volumes
