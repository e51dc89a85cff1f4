"""The network and the maps that ship with the package."""

from importlib.resources import files
from pathlib import Path

import nibabel
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import tiny, train  # noqa: E402 - after the checks

from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.prediction import load_network  # noqa: E402
from lesioncount.paper.samples import main  # noqa: E402
from lesioncount.paper.sources import synthetic_cohorts  # noqa: E402

SAMPLES = Path(str(files("lesioncount") / "samples"))


def test_they_are_small():
    assert (SAMPLES / "network.ckpt").stat().st_size < 1 << 20
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*.nii.gz")) < 1 << 20


def test_the_maps_are_those_of_the_network():
    network, shape = load_network(SAMPLES / "network.ckpt")
    cohort = synthetic_cohorts(TrainingConfig.load("laptop").data)["test"]
    paths = sorted((SAMPLES / "maps").iterdir())
    assert len(paths) == 12
    scan = next(scan for scan in cohort if f"{scan.name}.nii.gz" == paths[0].name)
    assert scan.shape == shape
    with torch.inference_mode():
        p = torch.sigmoid(network.segment(torch.from_numpy(scan.images)[None]))[0, 0].numpy()
    stored = np.asarray(nibabel.load(paths[0]).dataobj).T / 255
    np.testing.assert_allclose(stored, p, atol=0.05)  # bytes, and weights of half precision
    mask = np.asarray(nibabel.load(SAMPLES / "masks" / paths[0].name).dataobj).T
    np.testing.assert_array_equal(mask, scan.lesions)


def test_samples_can_be_made_again(tmp_path):
    train(tiny(data={"patients": (4, 2, 8)}, run={"epochs": 0}), tmp_path / "net", progress=False)
    assert main([str(tmp_path / "net" / "best.ckpt"), str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out" / "maps").iterdir()}
    assert names == {path.name for path in (tmp_path / "out" / "masks").iterdir()}
    assert len((tmp_path / "out" / "counts.tsv").read_text().splitlines()) == len(names) + 1
    assert load_network(tmp_path / "out" / "network.ckpt")[1] == (8, 16, 16)
