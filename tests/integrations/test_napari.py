"""The reader for napari: what it gives, and how it looks in a real window (make napari)."""

import os
import re
from importlib import import_module, resources

import numpy as np
import pytest
import qt_libraries
from nifti_files import save

from lesioncount.integrations.napari import MOST_SCANS, get_reader, read_layers
from lesioncount.runs import count_batch

# To the right, front and head, with voxels of three sizes.
AFFINE = np.diag([1.0, 2.0, 3.0, 1.0])


@pytest.fixture
def probabilities():
    values = np.zeros((10, 12, 14), np.float32)
    values[2:4, 3:5, 4:6], values[2, 3, 4] = 0.5, 0.8
    values[7, 8, 9] = 0.3
    return values


@pytest.fixture
def map_path(tmp_path, probabilities):
    return save(tmp_path / "maps" / "scan.nii.gz", probabilities, AFFINE)


def test_a_map_becomes_image_labels_with_a_table_and_points(map_path, probabilities):
    (image, image_options, _), (labels, label_options, _), (points, point_options, _) = layers = read_layers(
        str(map_path)
    )
    assert [kind for _, _, kind in layers] == ["image", "labels", "points"]
    np.testing.assert_array_equal(image, probabilities.T)  # slices first
    np.testing.assert_array_equal(labels > 0, probabilities.T > 0.1)
    assert points.tolist() == [[4, 3, 2], [9, 8, 7]]
    for index, label in zip(points, (1, 2), strict=True):
        assert labels[tuple(index)] == label
    np.testing.assert_allclose(label_options["features"]["existence"], [0.8, 0.3], rtol=1e-6)
    assert label_options["features"]["index"] == [1, 2]
    assert label_options["features"]["n_voxels"] == [8, 1]
    np.testing.assert_allclose(point_options["features"]["existence"], [0.8, 0.3], rtol=1e-6)
    # Towards the feet, the back and the left: as radiologists look at patients.
    assert image_options["scale"] == label_options["scale"] == point_options["scale"] == (-3.0, -2.0, -1.0)


def test_results_are_shown_as_they_were_counted(map_path, tmp_path, probabilities):
    other = save(tmp_path / "maps" / "other.nii.gz", probabilities[::-1], AFFINE)
    results = count_batch([map_path, other], tmp_path / "out")
    both = read_layers(str(tmp_path / "out"))
    assert [options["name"] for _, options, _ in both[::3]] == ["scan", "other"]
    assert [options["visible"] for _, options, _ in both] == [True] * 3 + [False] * 3
    only = read_layers(str(tmp_path / "out" / "other.json"))
    np.testing.assert_array_equal(only[1][0], both[4][0])
    assert only[1][1]["features"]["volume_mm3"] == [row.volume_mm3 for row in results.record("other").lesions]


def test_a_map_that_changed_or_went_is_told(map_path, tmp_path, probabilities):
    count_batch([map_path], tmp_path / "out")
    save(map_path, np.zeros_like(probabilities), AFFINE)
    with pytest.raises(OSError, match="has changed since it was counted"):
        read_layers(str(tmp_path / "out"))
    map_path.unlink()
    with pytest.raises(OSError, match="no longer there"):
        read_layers(str(tmp_path / "out"))


def test_many_scans_are_cut_off_and_said_to_be(tmp_path, probabilities):
    for number in range(MOST_SCANS + 2):
        save(tmp_path / "maps" / f"s{number:02}.nii.gz", probabilities, AFFINE)
    count_batch([tmp_path / "maps"], tmp_path / "out")
    with pytest.warns(UserWarning, match="first 10 scans are shown.*s10.json"):
        assert len(read_layers(str(tmp_path / "out"))) == 3 * MOST_SCANS


def test_only_what_can_be_shown_has_a_reader(map_path, tmp_path):
    count_batch([map_path], tmp_path / "out")
    for path in (map_path, tmp_path / "out", tmp_path / "out" / "scan.json"):
        assert get_reader(str(path)) is read_layers
        assert get_reader([str(path)]) is read_layers
    (tmp_path / "picture.png").write_bytes(b"")
    for path in (tmp_path / "picture.png", tmp_path / "maps", tmp_path / "out" / "run.json", tmp_path / "nothing"):
        assert get_reader(str(path)) is None
    assert get_reader([]) is None


def test_a_map_without_candidates_has_empty_layers(tmp_path, probabilities):
    path = save(tmp_path / "none.nii.gz", np.zeros_like(probabilities), AFFINE)
    _, (labels, options, _), (points, _, _) = read_layers(str(path))
    assert not labels.any()
    assert points.shape == (0, 3)
    assert options["features"] == {"index": []}


def test_the_manifest_names_a_function_that_is_there():
    text = resources.files("lesioncount.integrations").joinpath("napari.yaml").read_text("utf-8")
    module, name = re.search(r"python_name: (\S+):(\S+)", text).groups()
    assert getattr(import_module(module), name) is get_reader
    npe2 = pytest.importorskip("npe2", reason="npe2 is not installed: make napari")
    manifest = npe2.PluginManifest.from_file(resources.files("lesioncount.integrations") / "napari.yaml")
    assert manifest.contributions.readers[0].accepts_directories


@pytest.mark.filterwarnings("ignore")  # of napari, Qt and the drivers of the screen
def test_a_window_shows_map_candidates_and_peaks(map_path, tmp_path):
    napari = pytest.importorskip("napari", reason="napari is not installed: make napari")
    if not os.environ.get("DISPLAY"):
        pytest.skip("needs a screen: make napari")
    count_batch([map_path], tmp_path / "out")
    viewer = napari.Viewer()
    try:
        for path in (map_path, tmp_path / "out"):
            viewer.layers.clear()
            viewer.open(str(path), plugin="lesioncount")
            assert [type(layer).__name__ for layer in viewer.layers] == ["Image", "Labels", "Points"]
            _, labels, points = viewer.layers
            np.testing.assert_allclose(labels.features["existence"], [0.8, 0.3], rtol=1e-6)
            # In the window, the peak of the first candidate lies where its label does.
            peak = points.data_to_world(points.data[0])
            viewer.dims.set_point(0, peak[0])
            assert labels.get_value(peak, world=True) == 1
            shown = viewer.screenshot(canvas_only=True, flash=False)
            viewer.layers["scan candidates"].visible = viewer.layers["scan peaks"].visible = False
            without = viewer.screenshot(canvas_only=True, flash=False)
            assert shown[..., :3].std() > 0
            assert (shown != without).any()
    finally:
        viewer.close()


def test_what_the_system_lacks_for_a_window_is_named(monkeypatch):
    monkeypatch.setitem(qt_libraries.PACKAGES, "libnothing1", "libnothing-at-all.so.1")
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("PATH", "")
    assert {"libnothing1", "xvfb"} <= set(qt_libraries.missing())
    monkeypatch.setattr(qt_libraries, "PACKAGES", {})
    monkeypatch.setenv("DISPLAY", ":0")
    assert qt_libraries.missing() == []
