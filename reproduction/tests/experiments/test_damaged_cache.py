"""A cache whose files were damaged or exchanged: what can be made again is, and nothing is lost."""

import io
import shutil
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from experiments.fake_jobs import Written  # noqa: E402
from experiments.test_jobs import BEFORE, OURS  # noqa: E402
from learning.test_training import assert_same, weights  # noqa: E402 - after the checks

from lesioncount.errors import ExperimentError, MapFileError  # noqa: E402
from lesioncount_reproduction.experiments.jobs import Trained  # noqa: E402
from lesioncount_reproduction.experiments.kept_files import set_aside  # noqa: E402
from lesioncount_reproduction.experiments.reproduce import reproduce  # noqa: E402
from lesioncount_reproduction.experiments.scheduling import run_jobs  # noqa: E402


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    cache = tmp_path_factory.mktemp("whole") / "cache"
    for job in (Trained(BEFORE), Trained(OURS)):
        job.run(cache)
    return cache


@pytest.fixture
def cache(whole, tmp_path):
    """A copy at another place: what starts from a checkpoint there would begin again."""
    return shutil.copytree(whole, tmp_path / "cache")


def with_one_bit_flipped(good):
    """Of the largest array; a header may have another date."""
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        largest = max(archive.infolist(), key=lambda one: one.compress_size)
    flipped = bytearray(good)
    flipped[largest.header_offset + len(largest.FileHeader()) + largest.compress_size // 2] ^= 1
    return bytes(flipped)


DAMAGE = {
    "empty": lambda _: b"",
    "cut off": lambda good: good[:-100],
    "one bit": with_one_bit_flipped,
    "foreign": lambda _: b"mine",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_predictions_are_seen(cache, damage):
    job = Trained(OURS)
    job.path(cache).write_bytes(DAMAGE[damage](job.path(cache).read_bytes()))
    assert not job.is_done(cache)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_predictions_are_made_again_and_set_aside(cache, whole, damage):
    job = Trained(OURS)
    bad = DAMAGE[damage](job.path(cache).read_bytes())
    job.path(cache).write_bytes(bad)
    job.run(cache)
    for part in ("val", "test"):
        np.testing.assert_array_equal(job.stats(cache, part).log_probs, job.stats(whole, part).log_probs)
    assert bad in {path.read_bytes() for path in job.path(cache).parent.glob("*.damaged*")}


def test_arrays_of_something_else_are_named(cache):
    job = Trained(OURS)
    np.savez(job.path(cache), counts=np.zeros(3))
    with pytest.raises(ExperimentError, match=r"npz does not hold what lesioncount reproduce has written there"):
        job.stats(cache, "val")


@pytest.mark.parametrize("name", ["config.json", "best.ckpt", "last.ckpt"])
@pytest.mark.parametrize("bad", [b"", b"mine", b"[" * 100_000])
def test_a_damaged_network_is_not_taken_for_a_whole_one(whole, tmp_path, name, bad):
    job = Trained(OURS)
    cache = shutil.copytree(whole, tmp_path / "cache")
    (job.folder(cache) / name).write_bytes(bad)
    assert job.is_at_hand(whole)
    assert not job.is_at_hand(cache)
    assert job.is_done(cache)


def test_a_damaged_training_is_done_again_and_set_aside(cache, whole):
    job = Trained(OURS)
    (job.folder(cache) / "last.ckpt").write_bytes(b"mine")
    job.run(cache)
    assert_same(weights(job.folder(cache) / "last.ckpt"), weights(job.folder(whole) / "last.ckpt"))
    assert (job.folder(cache).with_name(f"{job.name}.damaged") / "last.ckpt").read_bytes() == b"mine"


def test_what_is_set_aside_replaces_nothing(tmp_path):
    for i in range(3):
        (tmp_path / "a").write_text(str(i))
        set_aside(tmp_path / "a")
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["0", "1", "2"]


def test_files_of_others_in_a_cache_stay(tmp_path):
    (tmp_path / "lock").write_text("mine")
    run_jobs([Written("one")], tmp_path)
    assert (tmp_path / "lock").read_text() == "mine"


@pytest.mark.parametrize("name", ["synthetic-threshold.json", "synthetic-threshold.md"])
def test_results_of_others_stop_a_run_before_it_begins(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(MapFileError, match=f"{name} is not a result"):
        reproduce(tmp_path, experiments=["threshold"], preset="smoke", n_seeds=1)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"
