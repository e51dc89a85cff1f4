"""HDF5, as ilastik exports it and as others write it."""

import json

import numpy as np
import pytest

from lesioncount import count_file
from lesioncount.errors import ChannelError, MapError, MapFileError
from lesioncount.files.formats import open_map

h5py = pytest.importorskip("h5py", reason="needs the extra [hdf5]")


def write(path, array, axes=None, name="exported_data", **options):
    with h5py.File(path, "w") as file:
        stored = file.create_dataset(name, data=array, **options)
        if axes is not None:
            stored.attrs["axistags"] = json.dumps({"axes": [{"key": key, "typeFlags": 2} for key in axes]})
    return path


@pytest.mark.parametrize("axes", ["zyx", "zyxc", "czyx", "tzyxc", "yx", "yxc", "cyx"])
@pytest.mark.parametrize("options", [{}, {"chunks": True}, {"chunks": True, "compression": "gzip"}])
def test_axes_are_those_of_the_file(tmp_path, rng, axes, options):
    n = {"t": 1, "c": 2, "z": 5, "y": 6, "x": 7}
    array = rng.random([n[axis] for axis in axes], np.float32)
    source = open_map(write(tmp_path / "a.h5", array, axes, **options), channel=1 if "c" in axes else None)
    expected = np.take(array, 1, axes.index("c")) if "c" in axes else array
    np.testing.assert_array_equal(source.array(), expected[0] if "t" in axes else expected)
    assert source.n_channels == (2 if "c" in axes else 1)


def test_large_arrays_come_in_pieces(tmp_path, rng):
    array = rng.random((50, 300, 300), np.float32)
    source = open_map(write(tmp_path / "a.hdf5", array, name="group/map", chunks=(4, 100, 300)))
    assert [len(piece) for piece in source.pieces()] == [4] * 12 + [2]
    np.testing.assert_array_equal(source.array(), array)


def test_it_is_counted(tmp_path):
    array = np.zeros((6, 9, 9, 2), np.float32)
    array[3, 4, [2, 6], 0] = 0.5
    count = count_file(write(tmp_path / "a.h5", array, "zyxc"), channel=0)
    assert count.result.distribution.mean() == pytest.approx(1.0)


def test_several_channels_need_a_choice(tmp_path):
    with pytest.raises(ChannelError):
        open_map(write(tmp_path / "a.h5", np.zeros((4, 5, 2)), "yxc"))


def test_whole_numbers_need_a_scale(tmp_path):
    with pytest.raises(MapError, match="--scale 1/255"):
        open_map(write(tmp_path / "a.h5", np.zeros((4, 5), np.uint8), "yx")).check_scale()


@pytest.mark.parametrize(
    ("shape", "axes"), [((4, 5, 6), "xyz"), ((3, 4, 5), "tyx"), ((4,), None), ((4, 5), "zyx"), ((0, 5), "yx")]
)
def test_other_axes_are_errors(tmp_path, shape, axes):
    with pytest.raises(MapFileError, match="a map has axes z, y and x"):
        open_map(write(tmp_path / "a.h5", np.zeros(shape), axes))


def test_what_is_no_map_is_an_error(tmp_path):
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(MapFileError, match="is damaged, or not an HDF5 file"):
        open_map(tmp_path / "text.h5")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = np.zeros((4, 5)), np.zeros((4, 5))
    with pytest.raises(MapFileError, match=r"holds 2 arrays \(a, b\)"):
        open_map(tmp_path / "two.h5")
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["a"] = h5py.ExternalLink("two.h5", "a")
    with pytest.raises(MapFileError, match="holds 0 arrays"):
        open_map(tmp_path / "link.h5")
    with h5py.File(tmp_path / "bomb.h5", "w") as file:
        file.create_dataset("exported_data", shape=(4000, 4000, 4000), dtype="f4", chunks=(1, 64, 64))
    with pytest.raises(MapFileError, match="or a bomb"):
        open_map(tmp_path / "bomb.h5")
    write(tmp_path / "tags.h5", np.zeros((4, 5)))
    with h5py.File(tmp_path / "tags.h5", "a") as file:
        file["exported_data"].attrs["axistags"] = "{"
    with pytest.raises(MapFileError, match="is damaged"):
        open_map(tmp_path / "tags.h5")
