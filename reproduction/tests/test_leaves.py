"""The leaf data set."""

import sys

import numpy as np
import pytest

from lesioncount.errors import CohortError, MapFileError, MissingExtraError
from lesioncount_reproduction.leaves import read_leaves


@pytest.fixture
def leaves(tmp_path):
    """Two made-up leaves: one with two lesions in a green leaf, one without."""
    pillow = pytest.importorskip("PIL.Image")
    (tmp_path / "counts.csv").write_text("split,id,n_full\ntrain,3,2\ntest,4,0\n")
    mask = np.zeros((32, 64), np.uint8)
    mask[4:28, 4:60] = 1
    spotted = mask.copy()
    spotted[8:12, 8:12] = spotted[20:24, 40:48] = 2
    for split, name, values in (("train", "3", spotted), ("test", "4", mask)):
        for kind in ("images", "masks"):
            (tmp_path / kind / split).mkdir(parents=True)
        green = np.zeros((32, 64, 3), np.uint8)
        green[..., 1] = 200
        pillow.fromarray(green).save(tmp_path / "images" / split / f"{name}.jpg")
        pillow.fromarray(values).save(tmp_path / "masks" / split / f"{name}.png")
    return tmp_path


def test_leaves_have_images_masks_and_counts(leaves):
    cohort = read_leaves(leaves, size=(16, 32))
    assert [leaf.count for leaf in cohort] == [2, 0]
    leaf = cohort[0]
    assert (leaf.name, leaf.split) == ("3", "train")
    assert leaf.images.shape == (3, 16, 32)
    assert leaf.images.dtype == np.float32
    assert leaf.images[1].mean() == pytest.approx(200 / 255, abs=0.02)
    assert leaf.lesions.sum() == 4 + 8
    assert (leaf.leaf & leaf.lesions).sum() == leaf.lesions.sum()
    assert [each.name for each in cohort[:]] == ["3", "4"]
    assert [each.name for each in cohort.split("test")] == ["4"]
    assert len(cohort.split("val")) == 0


def test_what_is_wrong_with_a_leaf_is_named(leaves):
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(np.full((32, 64), 7, np.uint8)).save(leaves / "masks" / "train" / "3.png")
    with pytest.raises(CohortError, match="Leaf 3: expected a mask of 0, 1 and 2"):
        read_leaves(leaves)[0]
    (leaves / "images" / "test" / "4.jpg").write_bytes(b"")
    with pytest.raises(MapFileError, match=r"4.jpg cannot be read"):
        read_leaves(leaves)[1]


def test_a_folder_that_is_not_the_data_set_is_refused(tmp_path):
    with pytest.raises(MapFileError, match=r"counts.csv cannot be read"):
        read_leaves(tmp_path)
    (tmp_path / "counts.csv").write_text("id\n3\n")
    with pytest.raises(CohortError, match="Expected a column 'split'"):
        read_leaves(tmp_path)
    with pytest.raises(CohortError, match="Expected a size of two numbers"):
        read_leaves(tmp_path, size=(0, 3))


def test_without_pillow_the_message_names_the_extra(leaves, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[report\]'"):
        read_leaves(leaves)[0]


def test_real_leaves(shared_data):
    """Counts at full size fall into five classes as the data set's own table says; a few change with the size."""
    cohort = read_leaves(shared_data / "coffee_leaf_lesions", size=(128, 256))
    assert [len(cohort.split(name)) for name in ("train", "val", "test")] == [400, 50, 50]
    counts = np.bincount([min(leaf.count, 4) for leaf in cohort.split("test")], minlength=5)
    np.testing.assert_allclose(counts, [10, 10, 5, 8, 17], atol=2)
