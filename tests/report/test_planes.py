"""The planes through a candidate: turned, cut and outlined as they should be."""

import base64
import zlib
from io import BytesIO

import numpy as np
import pytest

from lesioncount.files.formats import open_map
from lesioncount.report.pictures import SHADES, address_of, outline
from lesioncount.report.planes import View, planes_through, window_of
from lesioncount.report.slices import read_windows
from lesioncount.results.lesion_rows import LesionRow

image = pytest.importorskip("PIL.Image")

# Each runs through the same head: as RAS, as LPS, and with axes in another order.
ORIENTATIONS = {
    "RAS": ((0, 1, 2), (1, 1, 1)),
    "LPS": ((0, 1, 2), (-1, -1, 1)),
    "SAL": ((2, 1, 0), (1, 1, -1)),
}


# 32 shades of grey, each as bright as the first of the eight values that it stands for.
GREY = bytes(np.repeat(np.arange(0, 256, 8, dtype=np.uint8), 3))


def pixels(plane):
    kind, _, data = plane.picture.partition(";base64,")
    assert kind == "data:image/png"
    return np.asarray(image.open(BytesIO(base64.b64decode(data))).convert("L"))


@pytest.mark.parametrize("name", ORIENTATIONS)
def test_planes_do_not_depend_on_how_the_map_is_stored(name, rng):
    axes, signs = ORIENTATIONS[name]
    head = rng.integers(0, 32, (6, 8, 10)).astype(np.uint8) * 8  # right, anterior, superior
    peak = (1, 5, 7)
    stored, index = head.transpose(axes), [peak[axis] for axis in axes]
    affine = np.zeros((4, 4))
    affine[3, 3] = 1
    for axis, (world, sign) in enumerate(zip(axes, signs, strict=True)):
        affine[world, axis] = sign * (world + 1)
        if sign < 0:
            stored, index[axis] = np.flip(stored, axis), stored.shape[axis] - 1 - index[axis]
    spacing = [abs(affine[world, axis]) for axis, world in enumerate(axes)]
    view = View.of(affine)
    axial, coronal, sagittal = planes_through(stored, stored > 127, index, view=view, spacing_mm=spacing, palette=GREY)
    # Right, anterior and superior come first: on the left and at the top.
    np.testing.assert_array_equal(pixels(axial), head[::-1, ::-1, 7].T)
    np.testing.assert_array_equal(pixels(coronal), head[::-1, 5, ::-1].T)
    np.testing.assert_array_equal(pixels(sagittal), head[1, ::-1, ::-1].T)
    assert [plane.name for plane in (axial, coronal, sagittal)] == ["axial", "coronal", "sagittal"]
    assert axial.letters == ("R", "L", "A", "P")
    assert sagittal.letters == ("A", "P", "S", "I")
    assert (axial.width_mm, axial.height_mm) == (6 * 1, 8 * 2)
    assert (sagittal.width_mm, sagittal.height_mm) == (8 * 2, 10 * 3)
    assert axial.peak == (6 - 1 - 1 + 0.5, 8 - 1 - 5 + 0.5)


def test_array_without_geometry_is_shown_as_it_is_printed(rng):
    array = rng.integers(0, 32, (4, 5, 6)).astype(np.uint8) * 8
    planes = planes_through(array, array > 9, (1, 2, 3), view=View.of(None), spacing_mm=None, palette=GREY)
    np.testing.assert_array_equal(pixels(planes[0]), array[1])
    np.testing.assert_array_equal(pixels(planes[1]), array[:, 2])
    np.testing.assert_array_equal(pixels(planes[2]), array[:, :, 3])
    assert [plane.name for plane in planes] == ["across axis 0", "across axis 1", "across axis 2"]
    assert planes[0].peak == (3.5, 2.5)


def test_two_dimensional_map_with_geometry_is_one_plane():
    array = np.arange(12, dtype=np.uint8).reshape(3, 4) * 8
    (plane,) = planes_through(array, array > 9, (0, 1), view=View.of(np.eye(4)), spacing_mm=(1, 2), palette=GREY)
    np.testing.assert_array_equal(pixels(plane), array[::-1, ::-1].T)
    assert (plane.name, plane.width_mm, plane.height_mm) == ("in plane", 3, 8)


def test_outline_encloses_holes_too():
    ring = np.ones((3, 3), dtype=bool)
    ring[1, 1] = False
    assert outline(ring) == "M0 0h3M1 1h1M1 2h1M0 3h3M0 0v3M1 1v1M2 1v1M3 0v3"


def lesion(low, high, peak):
    index = dict(zip(("peak_i", "peak_j", "peak_k"), (*map(int, peak), None), strict=False))
    return LesionRow(**index | {"bbox": " ".join(map(str, (*low, *high)))})


def test_window_stays_in_the_map_and_shows_64_mm():
    window = window_of(lesion((0, 50, 90), (3, 53, 95), (1, 51, 92)), (30, 200, 96), (4.0, 1.0, 1.0))
    assert window.box == (slice(0, 16), slice(19, 83), slice(32, 96))
    assert window.peak_inside == (1, 32, 60)


def test_window_grows_with_the_candidate_but_not_without_end():
    shape, spacing = (1000, 1000), (1.0, 1.0)
    fits = window_of(lesion((400, 400), (460, 460), (410, 410)), shape, spacing)
    assert fits.box == (slice(380, 480), slice(380, 480))
    huge = window_of(lesion((0, 0), (900, 900), (700, 100)), shape, spacing)
    assert huge.box == (slice(620, 780), slice(20, 180))


def test_window_of_tiny_voxels_is_not_finer_than_a_screen():
    window = window_of(lesion((500, 500), (510, 510), (505, 505)), (2000, 2000), (0.001, 0.001))
    assert all(part.stop - part.start == 160 for part in window.box)


def test_windows_are_cut_from_a_file_that_comes_in_pieces(tmp_path, rng):
    array = rng.random((100, 128, 128), dtype=np.float32)  # several pieces, along the first axis
    np.save(tmp_path / "map.npy", array)
    source = open_map(tmp_path / "map.npy")
    assert len(list(source.pieces())) > 2
    peaks = [(0, 0, 0), (50, 60, 70), (99, 127, 127)]
    windows = [window_of(lesion(peak, np.add(peak, 1), peak), array.shape, None) for peak in peaks]
    for window, cut in zip(windows, read_windows(source, windows), strict=True):
        np.testing.assert_array_equal(cut, array[window.box])


def test_bytes_of_a_picture_are_a_function_of_its_pixels(rng):
    shades = (rng.random((10, 8)) ** 3 * SHADES).astype(np.uint8)
    address = address_of(shades * (256 // SHADES), GREY)
    lines = b"".join(b"\0" + bytes(line) for line in shades)
    assert zlib.compress(lines, 1) in base64.b64decode(address.partition(",")[2])  # isal has packed some in two ways
