"""A newcomer with pictures and counts: train, predict, count, evaluate, on the command line."""

import csv
import re
import shlex
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.own_pictures import dots, write_dots  # noqa: E402 - after the checks

from lesioncount.cli import main  # noqa: E402
from lesioncount.errors import ConfigError, MapFileError  # noqa: E402
from lesioncount.learning.checkpoints import read_checkpoint, write_checkpoint  # noqa: E402
from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.networks import counting_network  # noqa: E402
from lesioncount.learning.own_data import read_own_data  # noqa: E402
from lesioncount.learning.prediction import load_checkpoint, predict  # noqa: E402
from lesioncount.learning.training import train  # noqa: E402
from lesioncount.runs import read_results  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "networks.md"

SMALL = """
[network]
filters = 4
levels = 3
[optimizer]
learning_rate = 1e-2
schedule = "one_cycle"
[run]
pretrain_epochs = 0
epochs = {epochs}
batch_size = 4
threads = 1
"""


def toml(data, epochs=1):
    return f"[data]\n{data}\n{SMALL.format(epochs=epochs)}"


def run(command):
    return main(command.split())


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Sixty pictures, and a network that has learned to count them from their counts alone."""
    folder = write_dots(tmp_path_factory.mktemp("newcomer"), 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "dots.toml").write_text(toml('images = "pictures"\ncounts = "counts.csv"', epochs=15))
        assert run("train dots.toml -o net --quiet") == 0
    return folder


def test_sixty_pictures_and_a_table_of_counts(learned, monkeypatch, capsys):
    monkeypatch.chdir(learned)
    assert run("predict net/best.ckpt net/test.txt -o maps") == 0
    assert run("count maps -o out") == 0
    assert run("evaluate out --truth-counts counts.csv -o eval") == 0
    shown = capsys.readouterr().out
    assert "12 maps written to maps" in shown
    assert "12 scans counted" in shown
    with (learned / "eval" / "scores.tsv").open() as file:
        error = {
            row["method"]: float(row["estimate"])
            for row in csv.DictReader(file, delimiter="\t")
            if row["score"] == "mae"
        }
    assert error["lesioncount"] < 0.5 < error["all zero"]
    results = read_results(learned / "out")
    assert all(scan.counted.candidates.n_candidates >= int(scan.name[-2:]) % 4 for scan in results.counted)


def test_lists_name_the_pictures_of_each_part(learned):
    lists = {part: (learned / "net" / f"{part}.txt").read_text().splitlines() for part in ("train", "val", "test")}
    assert [len(lines) for lines in lists.values()] == [36, 12, 12]
    assert len({line for lines in lists.values() for line in lines}) == 60
    assert all((learned / "net" / line).is_file() for lines in lists.values() for line in lines)


def test_the_checkpoint_says_what_it_expects(learned, tmp_path, rng, capsys):
    said = read_checkpoint(learned / "net" / "best.ckpt")["expects"]
    assert said == {"n_channels": 1, "n_axes": 2, "intensities": "whole", "resize": False, "suffixes": []}
    from PIL import Image

    Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(tmp_path / "colour.png")
    assert run(f"predict {learned}/net/best.ckpt {tmp_path}/colour.png -o {tmp_path}/maps") == 2
    assert "trained on images with 1 channel and 2 axes, but" in (shown := capsys.readouterr().err)
    assert "colour.png has 3 channels of 32 × 32 pixels" in shown
    assert not (tmp_path / "maps").exists()
    assert run(f"predict {learned}/net/best.ckpt {tmp_path}/nowhere -o {tmp_path}/maps") == 2
    assert "Errno" not in (shown := capsys.readouterr().err)
    assert "nowhere does not exist, and matches no file.\n" in shown


def test_pictures_of_any_size_in_folders_are_predicted_where_they_are(learned, tmp_path, rng):
    from PIL import Image

    for name, shape in (("a", (20, 50)), ("day1/a", (70, 33))):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(dots(2, rng, shape)[0]).save(tmp_path / "in" / f"{name}.png")
    written = predict(learned / "net" / "best.ckpt", tmp_path / "in", tmp_path / "maps")
    assert [str(path.relative_to(tmp_path / "maps")) for path in written] == ["a.npy", "day1/a.npy"]
    assert [np.load(path).shape for path in written] == [(20, 50), (70, 33)]


def test_maps_among_the_pictures_are_not_predicted_again(learned, tmp_path):
    shutil.copytree(learned / "pictures", tmp_path / "in")
    for _ in range(2):
        assert (
            len(predict(learned / "net" / "best.ckpt", tmp_path / "in", tmp_path / "in" / "maps", overwrite=True)) == 60
        )


def test_members_of_pictures(learned, tmp_path):
    out = tmp_path / "maps"
    assert run(f"predict {learned}/net/best.ckpt {learned}/pictures/dish03.png -o {out} --tta --quiet") == 0
    assert len(list(out.glob("member*/dish03.npy"))) == 4
    assert run(f"count --members {out}/member01 {out}/member02 -o {tmp_path}/out --quiet") == 0


def test_a_training_on_pictures_is_resumed_and_its_lists_are_its_own(learned, tmp_path):
    config = TrainingConfig.from_toml(
        toml(f"images = '{learned / 'pictures'}'\ncounts = '{learned / 'counts.csv'}'\nparts = [1, 1, 1]")
    )
    (tmp_path / "val.txt").write_text("mine")
    with pytest.raises(MapFileError, match=r"val\.txt is not a result"):
        train(config, tmp_path, progress=False)
    (tmp_path / "val.txt").unlink()
    train(config, tmp_path, progress=False)
    train(config, tmp_path, progress=False, resume=True)
    assert len((tmp_path / "val.txt").read_text().splitlines()) == 20


def test_volumes_of_several_channels_with_masks(tmp_path, rng):
    (tmp_path / "scans").mkdir()
    (tmp_path / "masks").mkdir()
    affine = np.diag([2, 2, 3, 1])
    for number in range(6):
        volume, mask = dots(number % 3, rng, (10, 18, 20))
        for suffix in ("_0000", "_0001"):
            nibabel.save(nibabel.Nifti1Image(volume.T + 5, affine), tmp_path / "scans" / f"s{number}{suffix}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(mask.T.astype(np.uint8), affine), tmp_path / "masks" / f"s{number}.nii.gz")
    data = f"images = '{tmp_path / 'scans'}'\nmasks = '{tmp_path / 'masks'}'\nchannels = ['_0000', '_0001']"
    scores = train(TrainingConfig.from_toml(toml(data)), tmp_path / "net", progress=False)
    assert {"test_voxel_f1", "test_accuracy"} <= scores.keys()
    [path, *_] = predict(tmp_path / "net" / "best.ckpt", tmp_path / "scans", tmp_path / "maps")
    image = nibabel.load(path)
    assert (path.name, image.shape) == ("s0.nii.gz", (20, 18, 10))
    np.testing.assert_array_equal(image.affine, affine)
    assert run(f"count {tmp_path}/maps -o {tmp_path}/out --quiet") == 0
    assert run(f"evaluate {tmp_path}/out --truth {tmp_path}/masks -o {tmp_path}/eval --quiet") == 0


def test_resized_pictures_have_maps_of_their_own_size(tmp_path):
    folder = write_dots(tmp_path / "own", 6, masks=True)
    data = f"images = '{folder / 'pictures'}'\nmasks = '{folder / 'masks'}'\nresize = [16, 16]"
    train(TrainingConfig.from_toml(toml(data)), tmp_path / "net", progress=False)
    loaded = load_checkpoint(tmp_path / "net" / "best.ckpt")
    assert (loaded.shape, loaded.expected.resize, loaded.expected.intensities) == ((16, 16), True, "whole")
    [path] = predict(tmp_path / "net" / "best.ckpt", folder / "pictures" / "dish02.png", tmp_path / "maps")
    assert np.load(path).shape == (32, 32)


def test_networks_of_photographs_predict_from_photographs(tmp_path, rng):
    from PIL import Image

    network = counting_network("map", spatial_dims=2, in_channels=3, filters=2, levels=2)
    content = {"network_options": network.options, "network": network.state_dict(), "shape": [16, 32]}
    expects = {"intensities": "unit", "resize": True, "suffixes": []}
    write_checkpoint(content | {"expects": expects}, tmp_path / "leaf.ckpt")
    photograph = rng.integers(0, 255, (16, 32, 3), dtype=np.uint8)
    Image.fromarray(photograph).save(tmp_path / "leaf.png")
    [path] = predict(tmp_path / "leaf.ckpt", tmp_path / "leaf.png", tmp_path / "maps")
    given = torch.from_numpy(photograph.transpose(2, 0, 1)[None] / np.float32(255))
    with torch.inference_mode():
        expected = torch.sigmoid(network.eval().segment(given))[0, 0].numpy()
    np.testing.assert_allclose(np.load(path), expected, atol=1e-5)


def test_bounds_alone_cannot_choose_an_epoch(tmp_path):
    folder = write_dots(tmp_path / "own", 6)
    table = (folder / "counts.csv").read_text().replace("scan,count", "scan,at_least")
    (folder / "counts.csv").write_text(table)
    config = TrainingConfig.from_toml(toml(f"images = '{folder / 'pictures'}'\ncounts = '{folder / 'counts.csv'}'"))
    with pytest.raises(ConfigError, match="No validation scan has a mask or an exact count"):
        train(config, tmp_path / "net", progress=False)


def block(kind):
    """The first block of a kind in the walk through one's own data."""
    page = PAGE.read_text("utf-8")
    return re.search(rf"^```{kind}\n(.*?)^```", page[page.index("## Your own") :], re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def as_documented(tmp_path, monkeypatch):
    """The pictures and the configuration that the page makes."""
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python"), str(PAGE), "exec"), {})  # noqa: S102 - our own documentation
    (tmp_path / "spots.toml").write_text(block("toml"))
    return tmp_path


def test_the_page_on_own_data_describes_pictures_that_can_be_learned_from(as_documented):
    config = TrainingConfig.load(as_documented / "spots.toml")
    data = read_own_data(config.data)
    assert str(data) == (
        "60 pictures (1 channel of 64 × 64 pixels), learned from counts alone: 36 train, 12 val, 12 test"
    )
    assert data.completed(config).loss.max_count == 5
    assert [shlex.split(line)[1] for line in block("console").splitlines()] == ["train", "predict", "count", "evaluate"]


@pytest.mark.slow
def test_the_page_on_own_data_can_be_followed(as_documented, capsys):
    for line in block("console").splitlines():
        assert main(shlex.split(line)[1:]) == 0
    assert "The most probable count is right in 100 % of scans." in capsys.readouterr().out
    assert (as_documented / "eval" / "evaluation.html").exists()
