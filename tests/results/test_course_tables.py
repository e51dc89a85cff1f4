"""Rows of lineages: what has become of a lesion, in words and numbers."""

import csv
from pathlib import Path

import numpy as np
import pytest
from nifti_files import save

from lesioncount.results.tables import change_in_words
from lesioncount.runs import ChangeSettings, compare_batch


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0, 0, "absent"), (0, 1, "new"), (0, 3, "new"), (1, 0, "gone"), (4, 0, "gone"), (1, 1, "persisting"),
        (1, 2, "split"), (2, 1, "merged"), (2, 2, "rearranged"), (3, 2, "rearranged"),
    ],
)  # fmt: skip
def test_what_has_become_of_a_lesion(before, after, words):
    assert change_in_words(before, after) == words


def rows(path):
    with Path(path).open() as table:
        return list(csv.DictReader(table, delimiter="\t"))


@pytest.fixture
def split(tmp_path):
    """One lesion that splits into two of .9 and .5, and merges again; in thick slices, elsewhere in space."""
    affine = np.diag([1.0, 1.0, 2.0, 1.0])
    affine[:3, 3] = -10, 20, 5
    whole = np.zeros((20, 6, 6), np.float32)
    whole[4:16, 2:4, 2:4] = 0.8
    halves = whole.copy()
    halves[9:11] = 0
    halves[11:16, 2:4, 2:4] = 0.4
    halves[14, 2, 2] = 0.5
    return [save(tmp_path / f"{n}.nii.gz", one, affine) for n, one in enumerate([whole, halves, whole])]


def test_a_lesion_that_splits_and_merges_is_one_lineage(split, tmp_path):
    compare_batch(split, tmp_path / "out")
    table = rows(tmp_path / "out" / "lineages.tsv")
    assert [(row["lineage"], row["session"], row["change"]) for row in table] == [
        ("1", "1", "n/a"),
        ("1", "2", "split"),
        ("1", "3", "merged"),
    ]
    two = table[1]
    assert (two["n_candidates"], two["labels"]) == ("2", "1 2")
    assert float(two["existence"]) == pytest.approx(1 - 0.2 * 0.5)
    assert float(two["expected"]) == pytest.approx(1.3)
    assert (two["n_voxels"], float(two["volume_mm3"])) == ("40", 80)
    assert [float(two[f"peak_{axis}_mm"]) for axis in "xyz"] == [-6, 22, 9]
    assert table[0]["p_new"] == "n/a"
    assert table[2]["p_gone"] == "n/a"


def test_without_a_voxel_size_there_is_no_volume(tmp_path):
    for n, height in enumerate((0.5, 0.6)):
        values = np.zeros((6, 6, 6), np.float32)
        values[2, 2, 2] = height
        np.save(tmp_path / f"{n}.npy", values)
    compare_batch([tmp_path / "0.npy", tmp_path / "1.npy"], tmp_path / "out")
    row = rows(tmp_path / "out" / "lineages.tsv")[1]
    assert (row["change"], row["volume_mm3"], row["peak_x_mm"]) == ("persisting", "n/a", "n/a")


def test_peaks_have_their_lineages(split, tmp_path):
    from lesioncount.protocol import CountingProtocol

    results = compare_batch(split, tmp_path / "out", settings=ChangeSettings(CountingProtocol.named("peaks")))
    record = results.record("2")
    assert all(lesion.peak_probability is not None for session in record.sessions for lesion in session.lesions)


def test_a_cohort_without_lesions_has_tables_without_rows_of_lineages(tmp_path):
    for time in "ab":
        save(tmp_path / time / "p.nii.gz", np.zeros((4, 4, 4), np.float32))
    compare_batch([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert rows(tmp_path / "out" / "lineages.tsv") == []
    (row,) = rows(tmp_path / "out" / "changes.tsv")
    assert (row["new_mean"], row["new_p_any"], row["new_components"]) == ("0", "0", "0")
