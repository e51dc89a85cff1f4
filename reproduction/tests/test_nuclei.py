"""The images of nuclei."""

from pathlib import Path

import numpy as np
import pytest

from lesioncount.errors import CohortError, MapFileError
from lesioncount_reproduction.nuclei import read_nuclei

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "nuclei"


@pytest.fixture
def arrays():
    """Three made-up images: two nuclei that touch, one alone, and none."""
    instances = np.zeros((3, 16, 16), np.uint16)
    instances[0, 2:6, 2:6], instances[0, 2:6, 6:9] = 4, 9
    instances[1, 8:12, 8:12] = 1
    return {
        "image": np.where(instances > 0, 200, 10).astype(np.uint8),
        "instances": instances,
        "source_id": ["a", "b", "c"],
    }


def written(folder, arrays):
    np.savez(folder / "nuclei.npz", **arrays)
    return folder


def test_nuclei_that_touch_are_counted_one_by_one(tmp_path, arrays):
    nuclei = read_nuclei(written(tmp_path, arrays))
    assert [one.count for one in nuclei] == [2, 1, 0]
    assert [one.name for one in nuclei[1:]] == ["b", "c"]
    assert nuclei[0].image.dtype == np.float32
    assert nuclei[0].image.max() == pytest.approx(200 / 255)


def test_images_are_brought_as_scans_to_learn_from(tmp_path, arrays):
    pytest.importorskip("torch", reason="needs the extra [train]")
    from lesioncount.errors import ConfigError
    from lesioncount.learning.config import DataConfig, TrainingConfig
    from lesioncount_reproduction.sources import sources_of

    many = {name: np.concatenate([np.asarray(of)] * 4) for name, of in arrays.items()}
    many["source_id"] = [f"n{i}" for i in range(12)]
    data = DataConfig(source="nuclei", path=str(written(tmp_path, many)), patients=(), shape=(16, 16), folds=2)
    parts = sources_of(TrainingConfig(data=data))
    assert {name: len(of) for name, of in parts.items()} == {"train": 3, "val": 3, "test": 6}
    names = [of[i].name for of in parts.values() for i in range(len(of))]
    assert sorted(names) == sorted(many["source_id"])
    scan = parts["test"][0]
    assert scan.images.shape == (1, 16, 16)
    assert scan.at_least == scan.at_most
    for wrong, message in (({"folds": 0}, "folds"), ({"shape": (8, 16)}, r"Expected images of \[8, 16\] pixels")):
        config = TrainingConfig(data=DataConfig(**vars(data) | wrong))
        with pytest.raises(ConfigError, match=message):
            sources_of(config)


def test_files_that_are_something_else_are_named(tmp_path, arrays):
    with pytest.raises(MapFileError, match=r"nuclei.npz cannot be read: .*No such file"):
        read_nuclei(tmp_path)
    (tmp_path / "nuclei.npz").write_bytes(b"not an archive")
    with pytest.raises(MapFileError, match=r"nuclei.npz cannot be read"):
        read_nuclei(tmp_path)
    with pytest.raises(CohortError, match="Expected arrays image, instances and source_id"):
        read_nuclei(written(tmp_path, {"image": arrays["image"]}))
    with pytest.raises(CohortError, match=r"Expected images of uint8 .* but got float64"):
        read_nuclei(written(tmp_path, arrays | {"image": arrays["image"] / 255}))


def test_a_file_with_objects_in_it_is_not_unpickled(tmp_path, arrays):
    dangerous = np.array([object()], dtype=object)
    np.savez(tmp_path / "nuclei.npz", **arrays | {"source_id": dangerous}, allow_pickle=True)
    with pytest.raises(MapFileError, match="cannot be read"):
        read_nuclei(tmp_path)


@pytest.mark.skipif(not (REAL / "nuclei.npz").exists(), reason="needs the images of nuclei beside the repository")
def test_the_real_images_have_the_counts_that_come_with_them():
    nuclei = read_nuclei(REAL)
    with np.load(REAL / "nuclei.npz", allow_pickle=False) as found:
        assert [one.count for one in nuclei] == found["count"].tolist()
