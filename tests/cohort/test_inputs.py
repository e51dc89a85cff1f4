"""Which maps are meant by files, folders and globs."""

import csv

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main
from lesioncount.cohort.inputs import find_maps


@pytest.fixture
def linked(tmp_path):
    """Two scans whose files are links to one: what git-annex makes of two identical, empty predictions."""
    save(tmp_path / "store" / "object.nii.gz", np.zeros((4, 5, 6), dtype=np.float32))
    (tmp_path / "maps").mkdir()
    for name in ("sub-01", "sub-02"):
        (tmp_path / "maps" / f"{name}.nii.gz").symlink_to(tmp_path / "store" / "object.nii.gz")
    return tmp_path / "maps"


def test_two_names_of_one_file_are_two_scans(linked, tmp_path):
    assert main(["count", str(linked), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    with (tmp_path / "out" / "counts.tsv").open() as table:
        assert [row["scan"] for row in csv.DictReader(table, delimiter="\t")] == ["sub-01", "sub-02"]


def test_a_map_that_is_meant_twice_is_counted_once(linked, monkeypatch):
    monkeypatch.chdir(linked.parent)
    assert len(find_maps([linked, "maps/*.nii.gz", "maps/../maps/sub-01.nii.gz"])) == 2


def test_results_below_the_output_folder_are_no_inputs(linked):
    save(linked / "out" / "sub-01_lesions.nii.gz", np.zeros((4, 5, 6), dtype=np.uint16))
    assert [path.name for path in find_maps([linked], leave_out=linked / "out")] == ["sub-01.nii.gz", "sub-02.nii.gz"]
