"""Files of pictures and scans: their channels and sizes, where they are found, and what is said of odd ones."""

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

Image = pytest.importorskip("PIL.Image", reason="needs the extra [train]")

from lesioncount.errors import CohortError, LesionCountError, MapFileError  # noqa: E402 - after the check
from lesioncount.learning.expected import prepared  # noqa: E402
from lesioncount.learning.picture_files import find_pictures  # noqa: E402
from lesioncount.learning.pictures import Picture, open_picture  # noqa: E402

GRAY = np.arange(48, dtype=np.uint8).reshape(6, 8)
COLOUR = np.arange(144, dtype=np.uint8).reshape(6, 8, 3)


def values_of(path, **options):
    (values,) = open_picture([path], **options).read()
    return values


def save(path, array, **options):
    Image.fromarray(array).save(path, **options)
    return path


@pytest.mark.parametrize(
    ("name", "array", "expected"),
    [
        ("gray.png", GRAY, GRAY[None]),
        ("deep.png", GRAY.astype(np.uint16) * 1000, GRAY[None].astype(int) * 1000),
        ("colour.png", COLOUR, COLOUR.transpose(2, 0, 1)),
        ("glass.png", np.dstack([COLOUR, GRAY]), COLOUR.transpose(2, 0, 1)),  # transparency is no channel
        ("mist.png", np.dstack([GRAY, GRAY]), GRAY[None]),
        ("bits.png", GRAY > 20, (GRAY > 20)[None]),
        ("gray.bmp", GRAY, GRAY[None]),
    ],
)
def test_channels_of_pictures(tmp_path, name, array, expected):
    path = save(tmp_path / name, array)
    np.testing.assert_array_equal(values_of(path), expected)
    assert (open_picture([path]).n_channels, open_picture([path]).shape) == (len(expected), (6, 8))


def test_a_palette_is_colours_in_a_picture_and_numbers_in_a_mask(tmp_path):
    picture = Image.fromarray(GRAY % 3).convert("P")
    picture.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    picture.save(tmp_path / "a.png")
    assert values_of(tmp_path / "a.png").shape == (3, 6, 8)
    np.testing.assert_array_equal(values_of(tmp_path / "a.png", labels=True), (GRAY % 3)[None])


def test_photographs_are_turned_as_the_camera_was_held(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "a.jpg", COLOUR, exif=exif)
    assert open_picture([tmp_path / "a.jpg"]).shape == (8, 6)
    assert values_of(tmp_path / "a.jpg").shape == (3, 8, 6)


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ((6, 8), {}, (1, 6, 8)),
        ((5, 6, 8), {}, (1, 5, 6, 8)),  # pages are planes
        ((6, 8, 3), {"photometric": "rgb"}, (3, 6, 8)),
        ((5, 2, 6, 8), {"ome": True, "metadata": {"axes": "ZCYX"}}, (2, 5, 6, 8)),
        ((2, 6, 8), {"ome": True, "metadata": {"axes": "CYX"}}, (2, 6, 8)),
        ((2, 3, 6, 8), {"ome": True, "metadata": {"axes": "TZYX"}}, (2, 3, 6, 8)),  # times are channels
    ],
)
def test_channels_and_planes_of_tiff(tmp_path, shape, options, expected):
    tifffile = pytest.importorskip("tifffile", reason="needs the extra [tiff]")
    stored = np.arange(np.prod(shape), dtype=np.uint16).reshape(shape)
    tifffile.imwrite(tmp_path / "a.tif", stored, **options)
    picture, values = open_picture([tmp_path / "a.tif"]), values_of(tmp_path / "a.tif")
    assert values.shape == (picture.n_channels, *picture.shape) == expected
    if shape == (5, 2, 6, 8):
        np.testing.assert_array_equal(values, stored.transpose(1, 0, 2, 3))


@pytest.mark.parametrize(
    ("shape", "expected"), [((4, 3), (1, 3, 4)), ((4, 3, 2), (1, 2, 3, 4)), ((4, 3, 2, 5), (5, 2, 3, 4))]
)
def test_channels_of_nifti(tmp_path, shape, expected):
    stored = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    nibabel.save(nibabel.Nifti1Image(stored, np.diag([2, 2, 3, 1])), tmp_path / "a.nii.gz")
    picture, values = open_picture([tmp_path / "a.nii.gz"]), values_of(tmp_path / "a.nii.gz")
    assert values.shape == (picture.n_channels, *picture.shape) == expected
    np.testing.assert_array_equal(values[-1].T, stored if len(shape) < 4 else stored[..., -1])
    np.testing.assert_array_equal(picture.grid.affine, np.diag([2, 2, 3, 1]))


def test_values_that_are_not_finite_are_refused_in_a_picture_and_outside_in_a_mask(tmp_path):
    nibabel.save(nibabel.Nifti1Image(np.full((4, 3, 2), np.nan), np.eye(4)), tmp_path / "a.nii.gz")
    with pytest.raises(CohortError, match=r"a\.nii\.gz has values that are not finite"):
        values_of(tmp_path / "a.nii.gz")
    assert np.isnan(values_of(tmp_path / "a.nii.gz", labels=True)).all()


@pytest.mark.parametrize(("shape", "affine"), [((4, 3, 3), np.eye(4)), ((4, 3, 2), np.diag([2, 2, 2, 1]))])
def test_channels_lie_pixel_on_pixel(tmp_path, shape, affine):
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 3, 2)), np.eye(4)), tmp_path / "a.nii.gz")
    nibabel.save(nibabel.Nifti1Image(np.zeros(shape), affine), tmp_path / "b.nii.gz")
    with pytest.raises(CohortError, match=r"(?s)a\.nii\.gz: channels and masks must lie pixel on pixel.*the channel"):
        open_picture([tmp_path / "a.nii.gz", tmp_path / "b.nii.gz"])


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif", "a.nii.gz"])
@given(content=st.binary(min_size=1, max_size=300))
def test_damaged_files_are_refused_in_a_sentence(tmp_path_factory, name, content):
    if name == "a.tif":
        pytest.importorskip("tifffile", reason="needs the extra [tiff]")
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(content)
    with pytest.raises(LesionCountError, match="a\\."):
        values_of(path)


@pytest.mark.parametrize("cut", [30, 60])
def test_truncated_pictures_are_refused(tmp_path, rng, cut):
    path = save(tmp_path / "a.png", rng.integers(0, 255, (20, 20), dtype=np.uint8))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(MapFileError, match=r"a\.png cannot be read as a picture"):
        values_of(path)


def test_values_as_a_network_is_given_them():
    values = np.array([[[0, 255], [0, 51]]], np.uint8)
    picture = Picture(None, (2, 2), 1, lambda: [values])
    np.testing.assert_allclose(prepared(picture, "unit"), [[[0, 1], [0, 0.2]]])
    np.testing.assert_allclose(prepared(picture, "stored"), values)
    whole = prepared(picture, "whole")
    assert (whole.mean(), whole.std()) == (pytest.approx(0, abs=1e-6), pytest.approx(1))
    np.testing.assert_allclose(prepared(picture, "brain"), [[[0, 1], [0, -1]]])
    other = np.array([[[7.0, 3.0], [0, 3.0]]])  # where one channel is 0, the other may be inside
    both = prepared(Picture(None, (2, 2), 2, lambda: [values, other]), "brain")
    assert (both[:, 1, 0] == 0).all()
    assert both[0, 0, 0] < 0 < both[1, 0, 0]


@pytest.fixture
def folder(tmp_path):
    for name in ("b.png", "a.png", "day1/a.png", ".hidden/c.png", "masks/a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        save(tmp_path / name, GRAY)
    (tmp_path / "notes.txt").write_text("# a list\nb.png\n\nday1/a.png\n")
    return tmp_path


def names(*inputs, **options):
    return [picture.name for picture in find_pictures(inputs, **options)]


def test_pictures_are_found_in_folders_files_patterns_and_lists(folder):
    assert names(folder, leave_out=[folder / "masks"]) == ["a", "b", "day1/a"]
    assert names(folder / "b.png", folder / "a.png") == ["b", "a"]
    assert names(f"{folder}/*.png") == ["a", "b"]
    assert names(folder / "notes.txt") == ["b", "day1/a"]
    assert names(folder / "a.png", folder / "a.png") == ["a"]
    (folder / "day1" / "list.txt").write_text(f"../b.png\n{folder / 'day1' / 'a.png'}\n")
    assert names(folder / "day1" / "list.txt") == ["b", "day1/a"]


def test_what_is_not_there_or_has_one_name_twice_is_said(folder, tmp_path):
    with pytest.raises(MapFileError, match=r"nowhere does not exist, and matches no file\.$"):
        names(tmp_path / "nowhere")
    with pytest.raises(CohortError, match="would both be called 'a'"):
        names(folder / "a.png", folder / "day1" / "a.png")
    save(folder / "b.bmp", GRAY)
    with pytest.raises(CohortError, match=r"b\.bmp and .*b\.png would both be called 'b'"):
        names(folder)
    (folder / "notes.txt").write_text("b.png\nlost.png\n")
    with pytest.raises(MapFileError, match=r"lists files that are not there: .*lost"):
        names(folder / "notes.txt")
    (folder / "empty").mkdir()
    with pytest.raises(MapFileError, match="There are no pictures in"):
        names(folder / "empty")
    with pytest.raises(MapFileError, match="input"):
        names("")


def test_channels_in_files_of_their_own(tmp_path):
    for name in ("p1_T1.png", "p1_T2.png", "p2_T1.png"):
        save(tmp_path / name, GRAY)
    with pytest.raises(CohortError, match=r"there is no p2_T2\.png"):
        find_pictures([tmp_path], channels=["_T1", "_T2"])
    save(tmp_path / "p2_T2.png", GRAY)
    found = find_pictures([tmp_path], channels=["_T1", "_T2"])
    assert [picture.name for picture in found] == ["p1", "p2"]
    assert [path.name for path in found[1].paths] == ["p2_T1.png", "p2_T2.png"]
    assert find_pictures([tmp_path / "p2_T1.png"], channels=["_T1", "_T2"])[0].paths == found[1].paths
    with pytest.raises(MapFileError, match=r"p2_T2\.png: expected a file whose name ends in _T1"):
        find_pictures([tmp_path / "p2_T2.png"], channels=["_T1", "_T2"])
    with pytest.raises(MapFileError, match="no pictures that end in _FLAIR"):
        find_pictures([tmp_path], channels=["_FLAIR"])


def test_a_tree_of_bids_has_names_without_its_folders_and_channels_by_their_longest_ending(tmp_path):
    for visit in ("sub-1/ses-1", "sub-2"):
        for channel in ("_T1w", "_ce-gadolinium_T1w"):
            path = tmp_path / "data" / visit / "anat" / f"{visit.replace('/', '_')}{channel}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            save(path, GRAY)
    found = find_pictures([tmp_path], channels=["_T1w", "_ce-gadolinium_T1w"])
    assert [picture.name for picture in found] == ["data/sub-1_ses-1", "data/sub-2"]
    assert [path.name for path in found[1].paths] == ["sub-2_T1w.png", "sub-2_ce-gadolinium_T1w.png"]
    assert [picture.name for picture in find_pictures([tmp_path / "data" / "sub-2"])] == [
        "anat/sub-2_T1w",
        "anat/sub-2_ce-gadolinium_T1w",
    ]
