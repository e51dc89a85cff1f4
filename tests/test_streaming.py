import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import LesionCountError, NonFiniteError, RunsNotKeptError, ShapeError, VoxelTypeError


@pytest.fixture
def probabilities(rng):
    return (rng.random((12, 20, 70), dtype=np.float32) ** 3 * 0.4).astype(np.float32)


def test_pieces_of_any_size_give_the_whole_count(probabilities):
    counter = lc.StreamingCounter((20, 70), np.float32)
    counter.push(probabilities[0])
    counter.push(probabilities[1:1])
    counter.push(probabilities[1:8])
    counter.push(probabilities[8:])
    assert counter.n_planes == 12
    result = counter.result()
    assert str(result) == str(lc.count_lesions(probabilities))
    assert result.candidates.shape == (12, 20, 70)
    np.testing.assert_array_equal(result.candidates.bbox, lc.count_lesions(probabilities).candidates.bbox)


def test_result_may_be_asked_for_on_the_way(probabilities):
    counter = lc.StreamingCounter((20, 70), np.float32)
    for n, plane in enumerate(probabilities, 1):
        counter.push(plane)
        assert len(counter.result().candidates) == len(lc.count_lesions(probabilities[:n]).candidates)
    assert str(counter.result()) == str(counter.result())


def test_fortran_planes_along_the_last_axis(probabilities):
    fortran = np.asfortranarray(probabilities)
    counter = lc.StreamingCounter((12, 20), np.float32, axis=-1, spacing_mm=(1, 2, 3), keep_runs=True)
    for begin in range(0, 70, 9):
        counter.push(fortran[..., begin : begin + 9])
    expected = lc.count_lesions(probabilities, spacing_mm=(1, 2, 3))
    assert str(counter.result()) == str(expected)
    np.testing.assert_array_equal(counter.result().candidates.label_map(), expected.candidates.label_map())


def test_rows_of_an_image(probabilities):
    image = probabilities[0]
    counter = lc.StreamingCounter((70,), np.float32)
    for row in image:
        counter.push(row)
    assert str(counter.result()) == str(lc.count_lesions(image))


def test_masks_come_with_their_planes(probabilities, rng):
    mask = rng.random(probabilities.shape) < 0.5
    counter = lc.StreamingCounter((20, 70), np.float32)
    for planes, inside in zip(np.split(probabilities, 3), np.split(mask, 3), strict=True):
        counter.push(planes, inside)
    assert str(counter.result()) == str(lc.count_lesions(probabilities, mask=mask))


def test_other_encodings(probabilities):
    stored = np.round(probabilities * 65535).astype(">u2")
    counter = lc.StreamingCounter((20, 70), ">u2", scale=1 / 65535)
    counter.push(stored[:5])
    counter.push(stored[5:])
    assert str(counter.result()) == str(lc.count_lesions(stored, scale=1 / 65535))


def test_a_bad_push_leaves_the_count_as_it_was(probabilities):
    counter = lc.StreamingCounter((20, 70), np.float32)
    counter.push(probabilities[:6])
    broken = probabilities[6:].copy()
    broken[1, 2, 3] = np.nan
    with pytest.raises(NonFiniteError, match=r"1 is NaN or infinite, the first at index \(7, 2, 3\)"):
        counter.push(broken)
    counter.push(probabilities[6:])
    assert str(counter.result()) == str(lc.count_lesions(probabilities))


def test_masked_planes_hide_their_voxels(probabilities):
    hidden = np.ma.masked_array(probabilities, mask=probabilities > 0.2)
    counter = lc.StreamingCounter((20, 70), np.float32)
    counter.push(hidden[:5])
    counter.push(hidden[5:])
    assert str(counter.result()) == str(lc.count_lesions(hidden))


def test_a_long_stream_forgets_regions_that_have_merged(rng):
    counter = lc.StreamingCounter((64, 64), np.float32, "faces")
    planes = (rng.random((300, 64, 64), dtype=np.float32) < 0.5) * np.float32(0.4)
    for plane in planes:
        counter.push(plane)
    assert str(counter.result()) == str(lc.count_lesions(planes, protocol="faces"))


def test_label_map_needs_the_runs(probabilities):
    counter = lc.StreamingCounter((20, 70), np.float32)
    counter.push(probabilities)
    with pytest.raises(RunsNotKeptError, match="keep_runs=True"):
        counter.result().candidates.label_map()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda c: c.push(np.zeros((3, 4), np.float32)),
            ShapeError,
            r"shape \(n, 20, 70\) or \(20, 70\), but got \(3, 4\)",
        ),
        (lambda c: c.push(np.zeros((1, 1, 20, 70), np.float32)), ShapeError, "Expected planes of shape"),
        (lambda c: c.push(np.zeros((20, 70))), VoxelTypeError, "dtype float32, but their dtype is float64"),
        (
            lambda c: c.push(np.zeros((2, 20, 70), np.float32), np.ones((3, 20, 70))),
            ShapeError,
            "but the mask has shape",
        ),
        (lambda c: c.result(), ShapeError, "none were pushed"),
    ],
)
def test_wrong_calls_are_explained(call, error, message):
    with pytest.raises(error, match=message):
        call(lc.StreamingCounter((20, 70), np.float32))


@pytest.mark.parametrize("shape", [(), (3, 4, 5), (0, 4)])
def test_wrong_shapes_of_planes_are_refused(shape):
    with pytest.raises(ShapeError, match="shape of a plane"):
        lc.StreamingCounter(shape, np.float32)


def test_wrong_axis_is_refused():
    with pytest.raises(ShapeError, match="one of the 3 axes"):
        lc.StreamingCounter((4, 4), np.float32, axis=3)


STRANGE = [
    "x",
    None,
    3.5,
    (3.5, 4),
    ("y", "z"),
    (),
    (10**400, 2),
    10**400,
    (True, 2.5),
    {},
    [[1, 2], [3, 4]],
    np.nan,
    1j,
]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize(
    "slot",
    ["shape", "dtype", "axis", "protocol", "spacing_mm", "scale", "offset", "logits", "keep_runs"],
)
def test_wrong_types_are_explained(slot, value):
    if (value is None and slot in ("protocol", "spacing_mm", "scale")) or (
        value == 3.5 and slot in ("scale", "offset")
    ):
        pytest.skip("is what it should be")
    options = {"shape": (4, 5), "dtype": np.float32} | {slot: value}
    with pytest.raises(LesionCountError):
        lc.StreamingCounter(options.pop("shape"), options.pop("dtype"), **options)


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: repr(value)[:20])
def test_planes_that_are_none(value):
    counter = lc.StreamingCounter((4, 5), np.float32)
    with pytest.raises(LesionCountError):
        counter.push(value)
    if value is not None:
        with pytest.raises(LesionCountError):
            counter.push(np.zeros((2, 4, 5), np.float32), value)
    assert counter.n_planes == 0
