"""Given instances: label images with scores, or on maps."""

import json

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main


@pytest.fixture
def cells(tmp_path):
    labels = np.zeros((12, 10, 8), np.int16)
    labels[1:3, 1:3, 1:3], labels[3:5, 1:3, 1:3], labels[8, 8, 4] = 1, 2, 7  # the first two touch
    save(tmp_path / "masks" / "a.nii.gz", labels, np.eye(4))
    probabilities = np.where(labels > 0, 0.2, 0.0).astype(np.float32)
    probabilities[1, 1, 1], probabilities[4, 2, 2], probabilities[8, 8, 4] = 0.875, 0.5, 0.25
    save(tmp_path / "maps" / "a.nii.gz", probabilities, np.eye(4))
    return tmp_path


def _existence(folder):
    return [row["existence"] for row in json.loads((folder / "out" / "a.json").read_text())["lesions"]]


def test_each_label_has_its_score(cells):
    (cells / "cells.csv").write_text("label,score\n7,0.25\n1,0.9\n2,0.5\n")
    options = ["--instances-scores", str(cells / "cells.csv"), "--quiet"]
    assert main(["count", str(cells / "masks" / "a.nii.gz"), "-o", str(cells / "out"), *options]) == 0
    assert _existence(cells) == [0.9, 0.5, 0.25]


def test_existence_is_the_highest_value_of_the_map_in_each(cells):
    options = ["--instances", str(cells / "masks"), "--quiet"]
    assert main(["count", str(cells / "maps"), "-o", str(cells / "out"), *options]) == 0
    assert _existence(cells) == [0.875, 0.5, 0.25]


def test_labels_without_a_score_are_refused(cells, capsys):
    (cells / "cells.csv").write_text("label,score\n1,0.9\n2,0.5\n")
    options = ["--instances-scores", str(cells / "cells.csv")]
    assert main(["count", str(cells / "masks" / "a.nii.gz"), "-o", str(cells / "out"), *options]) == 2
    assert "but 7 is in one of them only" in capsys.readouterr().err
