"""Thirty real lesion masks, whose counts are known at every connectivity and smallest size."""

import csv

import nibabel
import numpy as np
import pytest

import lesioncount as lc

COLUMNS = {
    "n_cc6": {"connectivity": 6},
    "n_cc18": {"connectivity": 18},
    "n_cc18_ge3vox": {"connectivity": 18, "min_voxels": 3},
    "n_cc18_ge3mm3": {"connectivity": 18, "min_volume_mm3": 3},
    "n_cc18_ge10mm3": {"connectivity": 18, "min_volume_mm3": 10},
    "n_cc26": {"connectivity": 26},
    "n_cc26_ge3vox": {"connectivity": 26, "min_voxels": 3},
    "n_cc26_ge3mm3": {"connectivity": 26, "min_volume_mm3": 3},
    "n_cc26_ge10mm3": {"connectivity": 26, "min_volume_mm3": 10},
}


def test_counts_of_thirty_expert_masks(shared_data):
    folder = shared_data / "open_ms"
    with (folder / "counts.csv").open() as file:
        rows = {row["patient"]: row for row in csv.DictReader(file) if row["space"] == "cs_MNI"}
    files = sorted((folder / "masks_mni").rglob("*.nii*"))
    assert len(files) == 30
    for path in files:
        image = nibabel.load(path)
        mask = np.asanyarray(image.dataobj)  # Fortran order, as it lies in the file
        patient = path.name.removeprefix("patient").split("_")[0]
        spacing = image.header.get_zooms()
        for column, definition in COLUMNS.items():
            protocol = lc.CountingProtocol(threshold=0.5, **definition)
            with pytest.warns(lc.errors.BinaryMapWarning):
                result = lc.count_lesions(mask, protocol=protocol, spacing_mm=spacing)
            assert result.distribution.mode() == int(rows[patient][column]), (path.name, column)
            assert result.distribution.std() == 0
