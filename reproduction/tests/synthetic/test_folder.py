"""Cohorts in files: what is written can be read by anybody, and nothing is written over or half."""

import json
import re
from pathlib import Path

import nibabel
import numpy as np
import pytest
from written_cohort import SEQUENCES, rows, scans_in

from lesioncount.errors import CohortError, LesionCountError, MapFileError
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.own_data import read_own_data
from lesioncount_reproduction import cohort as cohorts
from lesioncount_reproduction.cohort_files import image_path, save_volume, write_cohort


def files_of(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def test_a_cohort_comes_back_as_it_was(cohort, written):
    again = list(scans_in(written))
    assert len(again) == len(cohort)
    assert cohorts.SEQUENCES == SEQUENCES
    for mine, yours in zip(cohort, again, strict=True):
        for name in ("images", "brain", "lesions", "all_lesions"):
            np.testing.assert_array_equal(getattr(yours, name), getattr(mine, name))
        assert (yours.name, yours.split, yours.count) == (mine.name, mine.split, mine.count)
        np.testing.assert_allclose(yours.affine, mine.affine, atol=1e-4)


def test_the_folder_can_be_learned_from_as_documented(cohort, written, monkeypatch):
    page = (Path(__file__).resolve().parents[3] / "docs" / "networks.md").read_text("utf-8")
    block = re.search(r"learns from such a folder.*?```toml\n(.*?)```", page, re.DOTALL)[1]
    monkeypatch.chdir(written.parent)
    data = read_own_data(TrainingConfig.from_toml(block).data)
    assert [(scan.files.name, scan.split, scan.at_least) for scan in data.scans] == [
        (scan.name, scan.split, scan.count) for scan in cohort
    ]
    assert all(scan.mask is not None and len(scan.files.paths) == len(SEQUENCES) for scan in data.scans)


def test_the_folder_is_laid_out_as_bids_has_it(cohort, written):
    anat = written / "sub-001" / "ses-01" / "anat"
    assert sorted(path.name for path in anat.iterdir()) == sorted(
        f"sub-001_ses-01_{sequence}.nii.gz" for sequence in SEQUENCES
    )
    description = json.loads((written / "dataset_description.json").read_text())
    assert description["Synthetic"] is True
    assert description["Seed"] == 4
    assert description["Command"].startswith("lesioncount synthesize")
    assert (written / "derivatives" / "masks" / "dataset_description.json").is_file()
    assert {row["split"] for row in rows(written / "participants.tsv")} == {"train", "val", "test"}
    counts = rows(written / "scans.tsv")
    assert [int(row["count"]) for row in counts] == [scan.count for scan in cohort]
    assert [int(row["count_all"]) for row in counts] == [visit.n_lesions for visit in cohort.visits]
    assert not list(written.rglob(".lesioncount-*"))


def test_right_is_right_in_the_file(cohort, written):
    image = nibabel.load(image_path(written, "001", "01", "T1w"))
    assert image.shape == (20, 24, 12)
    assert nibabel.aff2axcodes(image.affine) == ("R", "A", "S")
    np.testing.assert_array_equal(np.asarray(image.dataobj).T, cohort[0].images[0])


def test_files_are_the_same_for_any_number_of_processes(cohort, written, tmp_path):
    told = []
    write_cohort(tmp_path / "two", cohort, jobs=2, progress=lambda *what: told.append(what))
    files = files_of(written)
    assert files == files_of(tmp_path / "two")
    assert all((written / path).read_bytes() == (tmp_path / "two" / path).read_bytes() for path in files)
    assert told[-1] == (cohort[-1].name, len(cohort), len(cohort))


def test_images_of_any_values_come_back(tmp_path, rng):
    """Real images are no multiples of our step: they are kept as they are."""
    volume = rng.normal(500, 100, (6, 5, 4)).astype(np.float32)
    save_volume(tmp_path / "a.nii.gz", volume, np.eye(4))
    np.testing.assert_array_equal(np.asarray(nibabel.load(tmp_path / "a.nii.gz").dataobj).T, volume)


def test_nothing_is_written_over(cohort, written, tmp_path):
    with pytest.raises(CohortError, match="is not empty"):
        write_cohort(written, cohort)
    (tmp_path / "file").write_text("")
    with pytest.raises(MapFileError, match="cannot be made"):
        write_cohort(tmp_path / "file", cohort)
    with pytest.raises(CohortError, match="at least one process"):
        write_cohort(tmp_path / "new", cohort, jobs=0)
    assert issubclass(CohortError, LesionCountError)
    assert issubclass(CohortError, ValueError)


def test_an_interrupted_cohort_is_not_taken_for_a_whole_one(cohort, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    for jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            write_cohort(tmp_path / str(jobs), cohort, jobs=jobs, progress=stop)
        assert not (tmp_path / str(jobs) / "scans.tsv").exists()
        assert not list(tmp_path.rglob(".lesioncount-*"))
