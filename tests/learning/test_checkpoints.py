"""Checkpoints: damage is noticed, foreign files are refused in a sentence, and nothing in them is ever run."""

import os
import pickle
import shutil
import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from lesioncount.errors import MapFileError  # noqa: E402 - after the checks
from lesioncount.learning.checkpoints import CHECKSUM, read_checkpoint, write_checkpoint  # noqa: E402
from lesioncount.learning.networks import counting_network  # noqa: E402
from lesioncount.learning.prediction import load_checkpoint  # noqa: E402

SAMPLE = Path(str(files("lesioncount") / "samples" / "network.ckpt"))


def content(**changes):
    network = counting_network("map", filters=2, levels=2)
    plain = {"network_options": network.options, "network": network.state_dict(), "shape": [8, 16, 16]}
    expects = {"intensities": "unit", "resize": False, "suffixes": []}
    return plain | {"expects": expects} | changes


@pytest.fixture
def checkpoint(tmp_path):
    write_checkpoint(content(), tmp_path / "good.ckpt")
    return tmp_path / "good.ckpt"


def without_checksum(path):
    plain = torch.load(path, weights_only=True)
    del plain[CHECKSUM]
    torch.save(plain, path)


def values(loaded):
    state = {name: value.numpy().tobytes() for name, value in loaded.network.state_dict().items()}
    return state, loaded.network.options, loaded.shape, loaded.expected


@pytest.mark.parametrize("has_checksum", [False, True])
def test_flipped_bits_are_an_error_or_make_no_difference(checkpoint, tmp_path, has_checksum):
    if not has_checksum:
        without_checksum(checkpoint)
    good, expected = checkpoint.read_bytes(), values(load_checkpoint(checkpoint))
    rng, refused = np.random.default_rng(0), 0
    for _ in range(150):
        bad = bytearray(good)
        place = int(rng.integers(8 * len(bad)))
        bad[place // 8] ^= 1 << place % 8
        (tmp_path / "bad.ckpt").write_bytes(bad)
        try:
            assert values(load_checkpoint(tmp_path / "bad.ckpt")) == expected
        except MapFileError:
            refused += 1
    assert refused > 50


def test_weights_that_were_exchanged_in_a_whole_file_are_noticed(checkpoint):
    changed = torch.load(checkpoint, weights_only=True)
    next(iter(changed["network"].values())).add_(1e-3)
    torch.save(changed, checkpoint)
    with pytest.raises(MapFileError, match=r"good\.ckpt is damaged"):
        load_checkpoint(checkpoint)


@pytest.mark.parametrize("change", [{"shape": [8, 16, 17]}, {"expects": None}])
def test_what_prediction_depends_on_is_part_of_the_check_sum(checkpoint, change):
    torch.save(torch.load(checkpoint, weights_only=True) | change, checkpoint)
    with pytest.raises(MapFileError, match="is damaged"):
        read_checkpoint(checkpoint)


def test_the_network_that_ships_has_a_check_sum(tmp_path):
    assert CHECKSUM in read_checkpoint(SAMPLE)
    damaged = bytearray(SAMPLE.read_bytes())
    damaged[300_000] ^= 4
    (tmp_path / "n.ckpt").write_bytes(damaged)
    with pytest.raises(MapFileError, match="is damaged"):
        load_checkpoint(tmp_path / "n.ckpt")


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.9, 0.999])
def test_truncated_files_are_refused(checkpoint, share):
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(MapFileError, match="no checkpoint of lesioncount train, or it is damaged"):
        load_checkpoint(checkpoint)


class Malicious:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_code_in_a_file_is_never_run(checkpoint, tmp_path):
    trap = tmp_path / "trapped"
    for change in ({"network": Malicious(trap)}, {"extra": Malicious(trap)}):
        torch.save(content(**change), checkpoint)
        with pytest.raises(MapFileError) as refused:
            load_checkpoint(checkpoint)
        assert "weights_only" not in str(refused.value)
    checkpoint.write_bytes(pickle.dumps(Malicious(trap)))
    with pytest.raises(MapFileError):
        load_checkpoint(checkpoint)
    assert not trap.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"network_options": {"method": "map", "filters": 10**6}},
        {"network_options": {"method": "map", "levels": 10**9}},
        {"network_options": {"method": "map", "max_count": 10**12}},
        {"network_options": {"method": ["map"]}},
        {"network_options": {"method": "map", "unheard": 1}},
        {"network_options": 7},
        {"network": {}},
        {"network": [1, 2]},
        {"network": {"unet.output.bias": 3}},
        {"shape": [10**6, 10**6, 10**6]},
        {"shape": "large"},
        {"shape": []},
        {"shape": [-1, 2, 3]},
    ],
)
def test_content_that_makes_no_network_is_refused(checkpoint, change):
    write_checkpoint(content(**change), checkpoint)
    with pytest.raises(MapFileError, match="make no network"):
        load_checkpoint(checkpoint)


def test_files_that_would_take_much_more_memory_than_disk_are_refused(checkpoint, tmp_path):
    torch.save(content(network=torch.zeros(1).expand(10**12)), checkpoint)
    with pytest.raises(MapFileError):
        load_checkpoint(checkpoint)
    laughs = ["ha"] * 10
    for _ in range(30):
        laughs = [laughs] * 10
    torch.save(content(laughs=laughs), checkpoint)
    with pytest.raises(MapFileError):
        load_checkpoint(checkpoint)
    with zipfile.ZipFile(tmp_path / "bomb.ckpt", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("bomb/data.pkl", bytes(1 << 26))
    with pytest.raises(MapFileError):
        load_checkpoint(tmp_path / "bomb.ckpt")


def test_what_is_no_file_is_refused(checkpoint, tmp_path):
    os.mkfifo(tmp_path / "pipe.ckpt")
    with pytest.raises(MapFileError, match="There is no checkpoint"):
        load_checkpoint(tmp_path / "nothing.ckpt")
    for path in (tmp_path, tmp_path / "pipe.ckpt"):
        with pytest.raises(MapFileError, match="it is no file"):
            load_checkpoint(path)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a.txt", "not a checkpoint")
    with pytest.raises(MapFileError, match="no checkpoint of lesioncount train"):
        load_checkpoint(tmp_path / "other.zip")
    shutil.copy(checkpoint, tmp_path / "copy.ckpt")
    load_checkpoint(tmp_path / "copy.ckpt")
