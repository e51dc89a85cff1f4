"""Cohorts in files: what is written comes back, and what does not fit is named."""

import csv
import json
import shutil

import nibabel
import numpy as np
import pytest
from nifti_files import AFFINE

from lesioncount.errors import CohortError, LesionCountError, MapFileError
from lesioncount.learning.cohort import SEQUENCES
from lesioncount.learning.cohort_files import write_cohort
from lesioncount.learning.folder import read_cohort
from lesioncount.learning.layout import ALL_LESIONS, BRAIN, LESIONS, image_path, mask_path

FIRST = ("001", "01")


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def save(path, data, affine=AFFINE):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(data, affine), path)


def files_of(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def set_cells(folder, name, **cells):
    """Change the row of a scan in ``scans.tsv``."""
    table = rows(folder / "scans.tsv")
    for row in table:
        if row["scan"] == name:
            row.update(cells)
    lines = ["\t".join(table[0]), *("\t".join(row.values()) for row in table)]
    (folder / "scans.tsv").write_text("\n".join(lines) + "\n")


def with_lesions(cohort):
    return next(i for i, visit in enumerate(cohort.visits) if visit.n_lesions >= 2)


@pytest.fixture
def folder(written, tmp_path):
    """A copy that may be spoilt."""
    return shutil.copytree(written, tmp_path / "cohort")


def test_a_cohort_comes_back_as_it_was(cohort, written):
    again = read_cohort(written)
    assert len(again) == len(cohort)
    for mine, yours in zip(cohort, again, strict=True):
        for name in ("images", "brain", "lesions", "all_lesions"):
            assert getattr(yours, name).dtype == getattr(mine, name).dtype
            np.testing.assert_array_equal(getattr(yours, name), getattr(mine, name))
        assert (yours.name, yours.split, yours.count) == (mine.name, mine.split, mine.count)
        np.testing.assert_allclose(yours.affine, mine.affine, atol=1e-4)
        np.testing.assert_allclose(yours.spacing_mm, mine.spacing_mm, rtol=1e-6)
    assert [scan.name for scan in again.split("val")] == [scan.name for scan in cohort.split("val")]
    assert str(written) in repr(again)


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
    image = nibabel.load(image_path(written, *FIRST, "T1w"))
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
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "scans.tsv").write_text("participant_id\tcount\nsub-x\t3\n")
    volume = rng.normal(500, 100, (6, 5, 4)).astype(np.float32)
    for sequence in SEQUENCES:
        save(image_path(tmp_path / "real", "x", "", sequence), volume)
    cohort = read_cohort(tmp_path / "real", normalize=True)
    assert cohort[0].images[0].mean() == pytest.approx(0, abs=1e-5)
    write_cohort(tmp_path / "again", read_cohort(tmp_path / "real"))
    scan = read_cohort(tmp_path / "again")[0]
    np.testing.assert_array_equal(scan.images[0], volume.T)
    assert (scan.patient, scan.session, scan.name) == ("x", "", "sub-x")
    assert (scan.split, scan.count, scan.lesions, scan.all_lesions) == (None, 3, None, None)
    assert scan.brain.all()


def test_scans_without_a_mask_have_a_count_or_bounds(folder):
    for name in (LESIONS, ALL_LESIONS, BRAIN):
        mask_path(folder, *FIRST, name).unlink()
    set_cells(folder, "sub-001_ses-01", count="n/a", at_least="2", at_most="")
    scan = read_cohort(folder)[0]
    assert scan.lesions is None
    assert (scan.count, scan.at_least, scan.at_most) == (None, 2, None)
    assert scan.brain.any()
    set_cells(folder, "sub-001_ses-01", count="5", at_least="")
    assert read_cohort(folder)[0].count == 5


def test_a_mask_without_a_count_is_counted(cohort, folder):
    index = with_lesions(cohort)
    set_cells(folder, cohort[index].name, count="n/a")
    assert read_cohort(folder)[index].count == cohort[index].count


def test_masks_of_0_and_255_are_masks(cohort, folder):
    index = with_lesions(cohort)
    scan = cohort[index]
    save(mask_path(folder, scan.patient, scan.session, LESIONS), (scan.lesions * 255).astype(np.uint8).T, scan.affine)
    np.testing.assert_array_equal(read_cohort(folder)[index].lesions, scan.lesions)


def test_nan_in_a_mask_is_outside(cohort, folder):
    place = with_lesions(cohort)
    scan = cohort[place]
    for name, mask in ((LESIONS, scan.lesions), (BRAIN, scan.brain)):
        save(mask_path(folder, scan.patient, scan.session, name), np.where(mask, 1.0, np.nan).T, scan.affine)
    again = read_cohort(folder)[place]
    np.testing.assert_array_equal(again.lesions, scan.lesions)
    np.testing.assert_array_equal(again.brain, scan.brain)


def test_a_count_that_disagrees_with_its_mask_names_the_scan(cohort, folder):
    index = with_lesions(cohort)
    scan = cohort[index]
    set_cells(folder, scan.name, count="99")
    with pytest.raises(CohortError, match=f"{scan.name}: .*says 99 lesions, but the mask has {scan.count}"):
        read_cohort(folder)[index]
    set_cells(folder, scan.name, count="n/a", at_most="1")
    with pytest.raises(CohortError, match=f"{scan.name}: .*says 0 to 1 lesions, but the mask has {scan.count}"):
        read_cohort(folder)[index]


def test_images_of_different_grids_name_the_scan(cohort, folder):
    path = image_path(folder, *FIRST, "FLAIR")
    save(path, np.zeros((20, 24, 13), np.float32), cohort[0].affine)
    with pytest.raises(CohortError, match=r"(?s)sub-001_ses-01: .*voxel on voxel.*FLAIR.*\(20, 24, 13\)"):
        read_cohort(folder)[0]
    save(path, np.zeros((20, 24, 12), np.float32), np.diag([2.0, 2, 2, 1]))
    with pytest.raises(CohortError, match=r"(?s)sub-001_ses-01: .*mm away"):
        read_cohort(folder)[0]


def test_a_mask_of_another_grid_names_the_scan(cohort, folder):
    save(mask_path(folder, *FIRST, LESIONS), np.zeros((20, 24, 13), np.uint8), cohort[0].affine)
    with pytest.raises(CohortError, match=r"sub-001_ses-01: .*the mask label-lesion_mask"):
        read_cohort(folder)[0]


def test_missing_sequences_name_the_scan_before_anything_is_read(folder):
    image_path(folder, *FIRST, "T2w").unlink()
    with pytest.raises(CohortError, match=r"sub-001_ses-01: expected 5 images, but T2w is missing: .*T2w.nii"):
        read_cohort(folder)
    image_path(folder, *FIRST, "PDw").unlink()
    with pytest.raises(CohortError, match="but T2w, PDw are missing"):
        read_cohort(folder)


@pytest.mark.parametrize("name", [BRAIN, LESIONS, ALL_LESIONS])
def test_masks_that_are_not_binary_name_the_scan(cohort, folder, name):
    values = np.arange(20 * 24 * 12, dtype=np.float32).reshape(20, 24, 12) % 9 / 8
    save(mask_path(folder, *FIRST, name), values, cohort[0].affine)
    with pytest.raises(CohortError, match=r"sub-001_ses-01: expected a mask of 0 and 1, but .* holds 0, 0.125, .* …"):
        read_cohort(folder)[0]


def test_voxels_that_are_not_finite_name_the_scan(cohort, folder):
    save(image_path(folder, *FIRST, "PDw"), np.full((20, 24, 12), np.nan, np.float32), cohort[0].affine)
    with pytest.raises(CohortError, match=r"sub-001_ses-01: .*PDw.nii.gz has voxels that are not finite"):
        read_cohort(folder)[0]


def test_flat_images_name_the_scan(folder):
    save(image_path(folder, *FIRST, "T1w"), np.zeros((20, 24), np.float32))
    with pytest.raises(CohortError, match="sub-001_ses-01: expected three axes"):
        read_cohort(folder)[0]


def test_a_damaged_image_is_named(folder):
    image_path(folder, *FIRST, "T1w").write_bytes(b"nothing")
    with pytest.raises(MapFileError, match="sub-001_ses-01_T1w"):
        read_cohort(folder)[0]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"count": "some"},
            "expected a whole number below a billion or n/a as count of sub-001 ses-01, but got 'some'",
        ),
        ({"count": "-1"}, "but got '-1'"),
        ({"count": "n/a", "at_least": "3", "at_most": "2"}, "of sub-001_ses-01 contradict each other"),
        ({"count": "1", "at_least": "3"}, "of sub-001_ses-01 contradict each other"),
        ({"participant_id": "sub-002", "session_id": "ses-01"}, "sub-002_ses-01 has more than one row"),
    ],
)
def test_tables_that_make_no_sense_are_refused(folder, cells, message):
    set_cells(folder, "sub-001_ses-01", **cells)
    with pytest.raises(CohortError, match=message):
        read_cohort(folder)


def test_a_part_that_is_none_is_refused(folder):
    text = (folder / "participants.tsv").read_text()
    (folder / "participants.tsv").write_text(text.replace("train", "learn"))
    with pytest.raises(CohortError, match=r"participants.tsv: expected train, val, test or n/a for sub-.*'learn'"):
        read_cohort(folder)


def test_parts_that_nobody_named_cannot_be_had(folder):
    (folder / "participants.tsv").unlink()
    with pytest.raises(CohortError, match=r"Nothing says which scans of .* are for train"):
        read_cohort(folder).split("train")


def test_a_folder_without_tables_is_no_cohort(tmp_path):
    with pytest.raises(MapFileError, match=r"scans.tsv cannot be read"):
        read_cohort(tmp_path)
    (tmp_path / "scans.tsv").write_text("scan\tcount\na\t1\n")
    with pytest.raises(CohortError, match="Expected a column participant_id"):
        read_cohort(tmp_path)


def test_nothing_is_written_over(cohort, folder, tmp_path):
    with pytest.raises(CohortError, match="is not empty"):
        write_cohort(folder, cohort)
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
