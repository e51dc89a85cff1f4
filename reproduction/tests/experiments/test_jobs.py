"""Trainings, predictions and dropout as jobs: what is kept is what the network says."""

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import assert_same, tiny, weights  # noqa: E402 - after the checks

from lesioncount.errors import ConfigError  # noqa: E402
from lesioncount.learning.prediction import load_checkpoint  # noqa: E402
from lesioncount.learning.scans import LearningScan  # noqa: E402
from lesioncount_reproduction.experiments.arms import Arm  # noqa: E402
from lesioncount_reproduction.experiments.jobs import (  # noqa: E402
    Attacked,
    DropoutCounted,
    Trained,
    _mask,
    _predicted,
    parts_of,
)
from lesioncount_reproduction.experiments.lowdata import _tried  # noqa: E402
from lesioncount_reproduction.experiments.presets import PRESETS, AttackSettings  # noqa: E402
from lesioncount_reproduction.experiments.study import EVERY_METHOD, HEADS, Study  # noqa: E402

KEPT = Path(__file__).parents[2] / "evening"

BEFORE = Arm("pretrained", tiny(run={"epochs": 0}, data={"patients": (6, 2, 6)}))
OURS = Arm("ours", replace(BEFORE.config, run=replace(BEFORE.config.run, pretrain_epochs=0, epochs=1)), BEFORE)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    for one in (BEFORE, OURS):
        assert not Trained(one).is_done(folder)
        assert not Trained(one).is_at_hand(folder)
        Trained(one).run(folder)
        assert Trained(one).is_done(folder)
        assert Trained(one).is_at_hand(folder)
    return folder


def test_scans_are_predicted_as_by_the_network_itself(cache):
    stats = Trained(OURS).stats(cache, "test")
    network = load_checkpoint(Trained(OURS).folder(cache) / "best.ckpt").network
    scans = parts_of(OURS.config)["test"]
    assert len(stats) == len(scans) > 8  # more than go through the network together
    for i in range(len(scans)):
        with torch.inference_mode():
            logits, log_probs = network(torch.from_numpy(scans[i].images)[None])
        np.testing.assert_allclose(np.exp(stats.log_probs[i]), log_probs[0].exp(), atol=1e-4)
        map_ = logits.sigmoid()[0, 0].numpy()
        assert stats.voxel_confidence[i].sum() == pytest.approx(float(map_.sum(dtype=float)), rel=1e-3)
        assert stats.lesion_voxels[i].sum() == scans[i].mask.sum()
        assert (stats.names[i], stats.patients[i]) == (scans[i].name, scans[i].patient)
        assert stats.counts[i] == scans[i].at_least == scans[i].at_most


def test_what_is_predicted_has_a_name_of_its_own():
    jobs = [DropoutCounted(OURS, 3), DropoutCounted(OURS, 4), DropoutCounted(BEFORE, 3)]
    few, many = (AttackSettings(n_scans=2, max_steps=steps) for steps in (1, 2))
    jobs += [
        Attacked(OURS, few, 0.1),
        Attacked(OURS, few, 0.5),
        Attacked(OURS, many, 0.1),
        Attacked(OURS, few, 0.1, 0.01),
    ]
    assert len({job.key for job in jobs}) == len(jobs)
    for job in jobs:
        assert job.needs == (Trained(job.arm),)
    assert Trained(OURS).needs == (Trained(BEFORE),)
    assert Trained(BEFORE).needs == ()


def test_dropout_samples_can_be_drawn_again(cache, tmp_path):
    job = DropoutCounted(OURS, 5)
    shutil.copytree(cache / "networks", tmp_path / "networks")
    for folder in (cache, tmp_path):
        job.run(folder)
    counts = job.load(cache)
    assert counts.shape == (len(parts_of(OURS.config)["test"]), 5)
    np.testing.assert_array_equal(job.load(tmp_path), counts)


def test_attacks_are_kept(cache):
    job = Attacked(OURS, AttackSettings(n_scans=3, max_steps=2), 0.5)
    job.run(cache)
    found = job.load(cache)
    assert len(found.labels) == len(set(found.patients)) == 3
    assert (found.labels <= 4).all()


def test_a_training_goes_on_in_a_folder_that_was_moved(cache, tmp_path):
    """Half-way, with what it begins with at another place: it begins again, and comes out the same."""
    moved = shutil.copytree(cache, tmp_path / "moved")
    job = Trained(OURS)
    before = job.path(moved).read_bytes()
    (job.folder(moved) / "best.ckpt").unlink()
    assert not job.is_at_hand(moved)
    job.run(moved)
    assert job.is_at_hand(moved)
    assert job.path(moved).read_bytes() == before
    for name in ("best.ckpt", "last.ckpt"):
        assert_same(weights(job.folder(moved) / name), weights(job.folder(cache) / name))


def test_a_training_leaves_one_small_file_that_says_how_it_went(cache):
    with np.load(Trained(OURS).path(cache)) as found:
        about = json.loads(str(found["about"]))
    assert about["title"] == "train synthetic, ours, seed 0"
    assert about["seconds"] > 0
    assert about["settings"]["run"]["epochs"] == 1
    assert str(cache) not in json.dumps(about)
    assert Trained(OURS).minutes(cache) == about["seconds"] / 60
    assert Trained(OURS).curve(cache).shape == (1,)
    assert (cache / "networks" / ".gitignore").read_text() == "*\n"
    last = Trained(OURS).stats(cache, "test", "last")
    expected = _predicted(Trained(OURS).network(cache, "last"), parts_of(OURS.config)["test"])
    np.testing.assert_array_equal(last.log_probs, expected.log_probs)


def test_trainings_on_the_same_data_share_their_scans():
    other = replace(OURS.config, run=replace(OURS.config.run, seed=5), loss=replace(OURS.config.loss, count_weight=0.0))
    assert parts_of(OURS.config) is parts_of(other)
    few = replace(other, data=replace(other.data, share=0.5))
    assert parts_of(few)["test"] is parts_of(other)["test"]
    assert 0 < len(parts_of(few)["train"]) < len(parts_of(other)["train"])


def test_scans_without_masks_cannot_be_compared():
    scan = LearningScan("a", "a", np.zeros((1, 2, 2), np.float32), None, 0, 0)
    with pytest.raises(ConfigError, match="a has no mask"):
        _mask(scan)


def test_kept_trainings_are_those_of_the_preset():
    """If what names depend on changes, hours of work would be done again."""
    if not KEPT.exists():
        pytest.skip("they are not in a source distribution")
    study = Study("synthetic", "evening", PRESETS["evening"]["synthetic"], (0, 1, 2), KEPT)
    recipe = study.recipe
    few = [_tried(study, *one) for one in product(HEADS, recipe.low_data_rates, recipe.low_data_budgets)]
    studies = [(study, 1.0), *((one, 0.1) for one in (study, *few))]
    jobs = [job for one, share in studies for method in EVERY_METHOD for job in one.trainings(method, share=share)]
    jobs += [need for job in jobs for need in job.needs]
    kept = list(KEPT.glob("trained/*.npz"))
    assert kept
    assert {path.name for path in kept} <= {job.path(KEPT).name for job in jobs}
    done = [job for job in jobs if job.path(KEPT) in kept]
    assert all(job.is_done(KEPT) and job.minutes(KEPT) > 0 and len(job.stats(KEPT, "test")) == 791 for job in done)
