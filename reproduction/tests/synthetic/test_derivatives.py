"""Areas, lesions and changes in files."""

import json

import nibabel
import numpy as np
import pytest
from written_cohort import rows, scans_in

from lesioncount_reproduction.synthetic import AgeingCohort, GadCohort
from lesioncount_reproduction.synthetic.areas import AREAS
from lesioncount_reproduction.synthetic.derivatives import write_synthetic

SMALL = (12, 24, 20)


def labels(folder, derivative, patient, session, name):
    anat = folder / "derivatives" / derivative / f"sub-{patient}" / f"ses-{session}" / "anat"
    image = nibabel.load(anat / f"sub-{patient}_ses-{session}_desc-{name}_dseg.nii.gz")
    return np.asarray(image.dataobj).T


@pytest.fixture(scope="module")
def ageing():
    return AgeingCohort(3, seed=8, shape=SMALL, n_sessions=3)


@pytest.fixture(scope="module")
def folder(ageing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ageing") / "cohort"
    write_synthetic(folder, ageing)
    return folder


def test_label_maps_are_those_of_the_cohort(ageing, folder):
    for before, after in ageing.pairs:
        first, second = ageing.visits[before], ageing.visits[after]
        changes = ageing.changes(before, after)
        at_first, at_second = ((visit.patient_label, visit.session_label) for visit in (first, second))
        np.testing.assert_array_equal(labels(folder, "changes", *at_second, "new"), changes.new)
        np.testing.assert_array_equal(labels(folder, "changes", *at_first, "gone"), changes.gone)
        np.testing.assert_array_equal(labels(folder, "changes", *at_first, "lesions"), changes.before)
        np.testing.assert_array_equal(labels(folder, "changes", *at_second, "lesions"), changes.after)
        np.testing.assert_array_equal(labels(folder, "areas", *at_second, "areas"), ageing.areas(second))


def test_nothing_is_new_at_the_first_session_nor_gone_at_the_last(folder):
    found = {path.name for path in (folder / "derivatives" / "changes").rglob("sub-001*.nii.gz")}
    assert {"sub-001_ses-01_desc-gone_dseg.nii.gz", "sub-001_ses-03_desc-new_dseg.nii.gz"} <= found
    assert not {"sub-001_ses-01_desc-new_dseg.nii.gz", "sub-001_ses-03_desc-gone_dseg.nii.gz"} & found


def test_the_table_of_changes_has_a_row_per_pair(ageing, folder):
    table = rows(folder / "changes.tsv")
    assert [(row["participant_id"], row["baseline"], row["followup"]) for row in table[:3]] == [
        ("sub-001", "ses-01", "ses-02"),
        ("sub-001", "ses-02", "ses-03"),
        ("sub-002", "ses-01", "ses-02"),
    ]
    for row, pair in zip(table, ageing.pairs, strict=True):
        changes = ageing.changes(*pair)
        assert {name: int(row[name]) for name in changes.counts} == changes.counts
        assert float(row["misregistration_mm"]) == pytest.approx(changes.misregistration_mm, rel=1e-4)


def test_the_table_of_areas_adds_up_to_the_lesions_that_were_marked(ageing, folder):
    lesions, areas = rows(folder / "lesions.tsv"), rows(folder / "areas.tsv")
    for visit in ageing.visits:
        ids = (f"sub-{visit.patient_label}", f"ses-{visit.session_label}")
        here = [row for row in lesions if (row["participant_id"], row["session_id"]) == ids]
        assert {int(row["lesion"]) for row in here} == ageing.lesions(visit).keys()
        counts = {row["region"]: int(row["count"]) for row in areas if row["scan"] == "_".join(ids)}
        assert counts.keys() == {*AREAS.values(), "elsewhere"}
        for region, count in counts.items():
            assert count == sum(row["region"] == region and row["marked"] == "1" for row in here)
    assert sum(int(row["count"]) for row in areas) == sum(row["marked"] == "1" for row in lesions) > 0


def test_places_of_lesions_are_in_the_space_of_the_images(ageing, folder):
    affine = ageing.lattice.affine
    for row in rows(folder / "lesions.tsv"):
        if row["marked"] == "1":
            place = [float(row[name]) for name in ("x_mm", "y_mm", "z_mm")]
            voxel = np.round(np.linalg.solve(affine, [*place, 1])[:3]).astype(int)[::-1]
            found = labels(folder, "changes", row["participant_id"][4:], row["session_id"][4:], "lesions")
            assert found[tuple(voxel)] == int(row["lesion"])


def test_names_of_areas_are_beside_them(folder):
    table = rows(folder / "derivatives" / "areas" / "desc-areas_dseg.tsv")
    assert {int(row["index"]): row["name"] for row in table} == AREAS
    for name in ("areas", "changes"):
        description = json.loads((folder / "derivatives" / name / "dataset_description.json").read_text())
        assert description["DatasetType"] == "derivative"


def test_scans_are_read_as_those_of_any_cohort(ageing, folder):
    for mine, yours in zip(ageing, scans_in(folder), strict=True):
        np.testing.assert_array_equal(mine.images, yours.images)
        assert (mine.name, mine.count, mine.split) == (yours.name, yours.count, yours.split)


def test_files_are_the_same_for_any_number_of_processes(ageing, folder, tmp_path):
    told = []
    write_synthetic(tmp_path / "two", ageing, jobs=2, progress=lambda *what: told.append(what))
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(tmp_path / "two") for path in (tmp_path / "two").rglob("*") if path.is_file()
    )
    assert all((folder / path).read_bytes() == (tmp_path / "two" / path).read_bytes() for path in files)
    assert told[-1] == ("changes", 9, 9)
    assert ("areas", 9, 9) in told


def test_a_cohort_without_pairs_has_no_changes(tmp_path):
    write_synthetic(tmp_path / "one", AgeingCohort(1, seed=8, shape=SMALL, n_sessions=1))
    assert rows(tmp_path / "one" / "changes.tsv") == []
    write_synthetic(tmp_path / "gad", GadCohort(1, seed=8, shape=SMALL))
    assert not (tmp_path / "gad" / "changes.tsv").exists()
    assert (tmp_path / "gad" / "areas.tsv").is_file()
