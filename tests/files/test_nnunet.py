"""Real predictions of nnU-Net v2, in three configurations."""

import json
import pickle
import shutil
import tracemalloc
from pathlib import Path

import nibabel
import numpy as np
import pytest

from lesioncount.cli import main
from lesioncount.errors import ChannelError, MapFileError
from lesioncount.files import open_map
from lesioncount.runs import count_file

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "nnunet"
CASES = ["test_001", "test_002"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("configuration", ["normal", "reorient"])
def test_lesion_channel_reproduces_the_segmentation(configuration, case):
    segmentation = nibabel.load(FIXTURES / configuration / f"{case}.nii.gz")
    source = open_map(FIXTURES / configuration / f"{case}.npz", channel=1)
    np.testing.assert_array_equal(source.array() > 0.5, np.asarray(segmentation.dataobj) == 1)
    np.testing.assert_allclose(source.affine, segmentation.affine)
    assert count_file(source.path, channel=1).component_count == 3


@pytest.mark.parametrize("case", CASES)
def test_regions_reproduce_the_segmentation(case):
    labels = np.asarray(nibabel.load(FIXTURES / "regions" / f"{case}.nii.gz").dataobj)
    whole, core = (open_map(FIXTURES / "regions" / f"{case}.npz", channel=c).array() for c in (0, 1))
    np.testing.assert_array_equal(core > 0.5, labels == 2)
    np.testing.assert_array_equal((whole > 0.5) | (core > 0.5), labels > 0)


def test_the_only_label_is_counted_and_named():
    source = open_map(FIXTURES / "normal" / "test_001.npz")
    assert source.format == "nnU-Net, channel 1: lesion"
    chosen = open_map(FIXTURES / "normal" / "test_001.npz", channel=1)
    np.testing.assert_array_equal(source.array(), chosen.array())


def test_one_of_several_labels_must_be_chosen_by_its_name():
    with pytest.raises(ChannelError, match=r"holds 2 channels, 0 to 1 \(0 is whole, 1 is core\)"):
        open_map(FIXTURES / "regions" / "test_001.npz")


def test_the_label_of_the_maps_of_a_fold_is_named_in_the_folder_of_the_model(tmp_path, monkeypatch):
    fold = tmp_path / "nnUNetTrainer__nnUNetPlans__3d_fullres" / "fold_0"
    shutil.copytree(FIXTURES / "normal", fold / "validation")
    for name in ("dataset.json", "plans.json"):
        (fold / "validation" / name).rename(fold.parent / name)
    monkeypatch.chdir(fold)
    source = open_map(Path("validation/test_001.npz"))
    assert source.format == "nnU-Net, channel 1: lesion"
    assert fold.parent / "dataset.json" in source.files
    assert main(["count", "validation", "-o", "../counts", "--quiet"]) == 0


@pytest.mark.parametrize("labels", [None, {"background": 0}, {"background": 0, "a": 1, "b": 2}, ["background", "a"]])
def test_channel_must_be_chosen_where_dataset_json_does_not_say_it(tmp_path, labels):
    shutil.copy(FIXTURES / "normal" / "test_001.npz", tmp_path)
    if labels is not None:
        (tmp_path / "dataset.json").write_text(json.dumps({"labels": labels}), "utf-8")
    with pytest.raises(ChannelError, match=r"holds 2 channels, 0 to 1\. Choose"):
        open_map(tmp_path / "test_001.npz")


@pytest.mark.parametrize(("labels", "order"), [({"ignore": 3, "b": 2, "background": 0, "a": 1}, "1 is a, 2 is b")])
def test_labels_are_in_the_order_of_their_numbers(tmp_path, labels, order):
    np.savez(tmp_path / "map.npz", probabilities=np.zeros((3, 2, 2, 2), np.float32))
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": labels}), "utf-8")
    with pytest.raises(ChannelError, match=order):
        open_map(tmp_path / "map.npz")


def test_probabilities_that_do_not_fit_their_segmentation_are_refused(tmp_path):
    shutil.copytree(FIXTURES / "reorient", tmp_path, dirs_exist_ok=True)
    shutil.copy(FIXTURES / "normal" / "test_001.nii.gz", tmp_path / "test_001.nii.gz")
    with pytest.raises(MapFileError, match="do not reproduce the segmentation"):
        open_map(tmp_path / "test_001.npz", channel=1)


def test_what_is_beside_the_probabilities_takes_less_memory_than_they_do(tmp_path):
    lesion = np.zeros((128, 128, 128), np.float32)
    lesion[8:12, 8:12, 8:12] = 0.9
    probabilities = np.stack([1 - lesion, lesion])
    np.savez_compressed(tmp_path / "map.npz", probabilities=probabilities)
    nibabel.save(nibabel.Nifti1Image((lesion > 0.5).astype(np.uint8).T, np.eye(4)), tmp_path / "map.nii.gz")
    open_map(tmp_path / "map.npz", channel=1)  # imports
    tracemalloc.start()
    source = open_map(tmp_path / "map.npz", channel=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(source.array(), lesion.T)
    assert peak < 2 * probabilities.nbytes


def test_without_segmentation_there_is_no_place_in_space(tmp_path):
    shutil.copy(FIXTURES / "normal" / "test_001.npz", tmp_path / "test_001.npz")
    source = open_map(tmp_path / "test_001.npz", channel=1)
    assert source.affine is None
    assert source.shape == (20, 24, 16)


@pytest.mark.parametrize(("configuration", "turned"), [("normal", False), ("reorient", True)])
def test_reader_in_the_plans_decides_where_the_segmentation_is_empty(tmp_path, configuration, turned):
    shutil.copytree(FIXTURES / configuration, tmp_path, dirs_exist_ok=True)
    image = nibabel.load(tmp_path / "test_002.nii.gz")
    with np.load(tmp_path / "test_002.npz") as archive:
        faint = archive["probabilities"] * np.float32([0.4, 0.4]).reshape(2, 1, 1, 1)
    faint[0] = 1 - faint[1]
    np.savez_compressed(tmp_path / "test_002.npz", probabilities=faint)
    nibabel.save(nibabel.Nifti1Image(np.zeros(image.shape, np.uint8), image.affine), tmp_path / "test_002.nii.gz")
    lesion = open_map(tmp_path / "test_002.npz", channel=1).array()
    assert np.array_equal(lesion, faint[1].T) != turned
    if turned:
        np.testing.assert_array_equal(lesion, faint[1].T[::-1, ::-1])


def test_the_pickle_beside_it_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    shutil.copytree(FIXTURES / "normal", tmp_path, dirs_exist_ok=True)
    (tmp_path / "test_001.pkl").write_bytes(pickle.dumps(Bomb()))
    count_file(tmp_path / "test_001.npz", channel=1)
    assert not (tmp_path / "ran").exists()


def test_regions_that_do_not_match_the_channels_are_refused(tmp_path):
    shutil.copytree(FIXTURES / "regions", tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "dataset.json").read_text()
    import json

    content = json.loads(text)
    content["regions_class_order"] = [1, 2, 3]
    (tmp_path / "dataset.json").write_text(json.dumps(content))
    with pytest.raises(MapFileError, match="order of regions"):
        open_map(tmp_path / "test_001.npz", channel=1)
