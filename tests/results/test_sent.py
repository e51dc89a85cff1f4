"""What goes from process to process arrives as it was sent."""

import pickle
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.whose import Whose
from lesioncount.results.record_parts import MapFacts
from lesioncount.runs import Settings, count_batch


def sent(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


@pytest.mark.parametrize(
    "one",
    [
        Whose("sub-01", "ses-02", {"run": "1"}),
        ScanFiles("a", Path("a.nii.gz"), relative=PurePosixPath("a.nii.gz"), whose=Whose("sub-01"), was_known=True),
        FileFacts("/a.nii.gz", "0" * 64, members=("/b", "/c"), session_id="ses-02"),
        MapFacts("NIfTI", (4, 5, 6), "float32", (1.0, 1.0, 2.0), None, "no affine"),
    ],
)
def test_values_arrive_as_they_were(one):
    assert sent(one) == one


def test_the_summary_of_a_scan_arrives_whole(tmp_path, rng):
    save(tmp_path / "a.nii.gz", rng.random((6, 7, 8), dtype=np.float32) ** 4)
    summary = count_batch([tmp_path / "a.nii.gz"], tmp_path / "out", settings=Settings()).scans[0]
    arrived = sent(summary)
    assert arrived.numbers == summary.numbers
    assert arrived.files == summary.files
    assert arrived.map is summary.map  # held once
    assert arrived.tables[0].peak.tolist() == summary.tables[0].peak.tolist()
    assert arrived.tables[0].names is summary.tables[0].names  # held once
    assert arrived.tables[0].saddle is summary.tables[0].saddle
