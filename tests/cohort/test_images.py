"""Which image is shown of which session: by names, folders, BIDS entities or patterns, never by guess."""

from dataclasses import replace

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cohort.images import session_images
from lesioncount.errors import MapFileError
from lesioncount.runs import CourseSelection, Selection

MAP = np.zeros((2, 3, 4), np.float32)


@pytest.fixture
def maps(tmp_path):
    """Two folders in which maps have the same names."""
    return [save(tmp_path / "maps" / time / "a.nii.gz", MAP).parent for time in ("one", "two")]


def images_of(inputs, images, **options):
    found = CourseSelection(Selection(images=images, **options)).find(inputs)
    return [[scan.image for scan in course.scans] for course in found.courses]


def test_folders_of_the_same_names_tell_times_apart(maps, tmp_path):
    paths = [save(tmp_path / "flair" / time / "a.nii.gz", MAP) for time in ("one", "two")]
    assert images_of(maps, tmp_path / "flair") == [paths]


def test_pattern_has_the_folder_of_each_time(maps, tmp_path):
    paths = [save(tmp_path / "flair" / f"a-{time}.nii.gz", MAP) for time in ("one", "two")]
    assert images_of(maps, tmp_path / "flair" / "{name}-{folder}.nii.gz") == [paths]


def test_sessions_of_bids_names_are_found_in_one_folder(tmp_path):
    for session in ("01", "02"):
        save(tmp_path / "maps" / f"sub-1_ses-{session}_probseg.nii.gz", MAP)
    paths = [save(tmp_path / "flair" / f"sub-1_ses-{session}_FLAIR.nii.gz", MAP) for session in ("01", "02")]
    assert images_of([tmp_path / "maps"], tmp_path / "flair") == [paths]
    assert images_of([tmp_path / "maps"], tmp_path / "flair", images_suffix="_FLAIR") == [paths]


def test_session_without_an_image_has_none(maps, tmp_path):
    path = save(tmp_path / "flair" / "two" / "a.nii.gz", MAP)
    assert images_of(maps, tmp_path / "flair") == [[None, path]]


@pytest.mark.parametrize("where", ["flair", "flair/{name}.nii.gz"])
def test_one_image_is_never_shown_as_two_times(maps, tmp_path, where):
    save(tmp_path / "flair" / "a.nii.gz", MAP)
    if where == "flair":
        with pytest.raises(MapFileError, match="There is no image of any scan"):
            images_of(maps, tmp_path / where)
    else:
        with pytest.raises(MapFileError, match=r"a\.nii\.gz would be the image of both .*one.* and .*two"):
            images_of(maps, tmp_path / where)


def test_image_that_is_given_for_all_is_meant_for_all(maps, tmp_path):
    template = save(tmp_path / "template.nii.gz", MAP)
    assert images_of(maps, template) == [[template, template]]


def test_images_are_not_needed(maps):
    assert images_of(maps, None) == [[None, None]]


def test_nothing_is_asked_of_no_course(tmp_path):
    assert session_images([], tmp_path) == []


def test_selection_keeps_its_own_settings(maps, tmp_path):
    save(tmp_path / "flair" / "one" / "a.nii.gz", MAP)
    selection = CourseSelection(Selection(images=tmp_path / "flair"))
    before = replace(selection)
    selection.find(maps)
    assert selection == before


def test_map_in_two_pairs_has_one_image(tmp_path):
    for name in "abc":
        save(tmp_path / "maps" / f"{name}.nii.gz", MAP)
    a, b, c = (save(tmp_path / "flair" / f"{name}.nii.gz", MAP) for name in "abc")
    (tmp_path / "pairs.csv").write_text("baseline,followup\nmaps/a.nii.gz,maps/b.nii.gz\nmaps/b.nii.gz,maps/c.nii.gz\n")
    selection = CourseSelection(Selection(images=tmp_path / "flair"), pairs=tmp_path / "pairs.csv")
    assert [[scan.image for scan in course.scans] for course in selection.find([]).courses] == [[a, b], [b, c]]
