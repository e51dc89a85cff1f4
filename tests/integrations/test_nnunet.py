"""The trainer for nnU-Net: what it adds to the loss, how nnU-Net finds it, and a short training with the real one."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nibabel
import numpy as np
import pytest

import lesioncount
from lesioncount.cli import main
from lesioncount.runs import count_file

if find_spec("torch"):
    import torch

    from lesioncount.integrations.nnunet_loss import (
        CountWeight,
        SegmentationAndCountLoss,
        foreground_logits,
        foreground_masks,
        patch_counts,
    )
    from lesioncount.torch import CountLoss

FOLDER = Path(lesioncount.__file__).resolve().parent / "integrations" / "nnunet"


@pytest.fixture
def no_trainers(monkeypatch):
    monkeypatch.delenv("nnUNet_extTrainer", raising=False)


class TestEnvironment:
    @pytest.mark.usefixtures("no_trainers")
    def test_line_names_the_folder_that_holds_the_trainer_and_nothing_else(self, capsys):
        assert main(["nnunet-env"]) == 0
        name, value = re.fullmatch(r"export (\w+)=(.+)\n", capsys.readouterr().out).groups()
        assert name == "nnUNet_extTrainer"
        assert shlex.split(value) == [str(FOLDER)]
        # nnU-Net imports all that is in there by its bare name.
        assert sorted(file.name for file in FOLDER.glob("*.py")) == ["__init__.py", "lesioncount_trainer.py"]
        assert "class nnUNetTrainerLesionCount(nnUNetTrainer)" in (FOLDER / "lesioncount_trainer.py").read_text("utf-8")

    def test_trainer_has_no_relative_imports(self):
        assert not re.search(r"^\s*from \.", (FOLDER / "lesioncount_trainer.py").read_text("utf-8"), re.MULTILINE)

    def test_folders_that_were_set_are_kept_and_named(self, monkeypatch, tmp_path, capsys):
        mine = tmp_path / "my trainers"
        monkeypatch.setenv("nnUNet_extTrainer", str(mine))
        main(["nnunet-env"])
        shown = capsys.readouterr()
        expected = os.pathsep.join([str(mine), str(FOLDER)])
        assert shown.out == f"export nnUNet_extTrainer={shlex.quote(expected)}\n"
        assert f"searches {mine} first" in shown.err

    def test_second_time_changes_nothing(self, monkeypatch, capsys):
        monkeypatch.setenv("nnUNet_extTrainer", f"{FOLDER}{os.pathsep}{FOLDER}")
        main(["nnunet-env"])
        shown = capsys.readouterr()
        assert shown.out == f"export nnUNet_extTrainer={shlex.quote(str(FOLDER))}\n"
        assert "first" not in shown.err

    @pytest.mark.usefixtures("no_trainers")
    def test_missing_nnunet_is_told(self, monkeypatch, capsys):
        monkeypatch.setattr("lesioncount.cli.nnunet_env.find_spec", lambda _: None)
        main(["nnunet-env"])
        assert "Install lesioncount in the one where it is" in capsys.readouterr().err

    @pytest.mark.usefixtures("no_trainers")
    def test_line_can_be_evaluated_and_loads_nothing_heavy(self):
        code = (
            "import sys; before = set(sys.modules)\n"  # an environment may load what it likes
            "from lesioncount.cli import main; main(['nnunet-env'])\n"
            "sys.exit(any(name in set(sys.modules) - before for name in ('torch', 'nnunetv2')))"
        )
        line = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        shell = subprocess.run(
            ["sh", "-c", f'{line}printf %s "$nnUNet_extTrainer"'], capture_output=True, text=True, check=True
        )
        assert shell.stdout == str(FOLDER)


def random_output(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)) * 4


def patch_loss(*, spatial_dims=3, weight=1.0, protocol=None, **options):
    """The count loss alone: the segmentation loss beside it is 0."""
    loss = SegmentationAndCountLoss(
        lambda outputs, _: (outputs if torch.is_tensor(outputs) else outputs[0]).sum() * 0,
        CountLoss(4, protocol=protocol, spatial_dims=spatial_dims),
        **options,
    )
    loss.weight = weight
    return loss


def patch_with(*places, high=1.0):
    """Output of a softmax of two classes that shows a lesion in some voxels."""
    output = torch.zeros(1, 2, 6, 7, 8)
    output[:, 1] = -9
    for place in places:
        output[(0, 1, *place)] = high
    return output.requires_grad_()


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra [torch]")
class TestLoss:
    @pytest.mark.parametrize("n_classes", [2, 3, 5])
    def test_sigmoid_of_foreground_logits_is_the_softmax(self, n_classes):
        output = random_output(2, n_classes, 3, 4, 5)
        logits = foreground_logits(output, range(1, n_classes), regions=False)
        torch.testing.assert_close(logits.sigmoid(), output.softmax(1)[:, 1:])

    def test_foreground_logits_of_certain_voxels_are_finite(self):
        output = torch.tensor([-90.0, 90.0, -80.0], dtype=torch.float16).reshape(1, 3, 1, 1)
        logits = foreground_logits(output, [1, 2], regions=False)
        assert logits.dtype == torch.float32
        assert logits.flatten().tolist() == pytest.approx([170, -170], abs=0.01)

    def test_foreground_logits_of_regions_are_the_output(self):
        output = random_output(2, 3, 4, 5)
        torch.testing.assert_close(foreground_logits(output, [0, 2], regions=True), output[:, [0, 2]])

    def test_patch_truth_is_the_number_of_components_of_each_class(self):
        target = torch.tensor([[1, 1, 0, 2], [0, 0, 0, 2], [1, 0, 2, 0]])[None, None]
        masks, inside = foreground_masks(target, [1, 2], regions=False, ignore_label=None)
        assert inside is None
        assert patch_counts(masks, protocol=lesioncount.CountingProtocol()).tolist() == [[2, 1]]
        assert patch_counts(masks, protocol=lesioncount.CountingProtocol(connectivity="faces")).tolist() == [[2, 2]]
        assert patch_counts(masks, protocol=lesioncount.CountingProtocol(min_voxels=2)).tolist() == [[1, 1]]

    def test_lesion_cut_in_two_by_the_border_of_a_patch_is_two(self):
        bow = np.array([[1, 0, 1], [1, 0, 1], [1, 1, 1]], dtype=bool)
        masks = torch.from_numpy(np.stack([bow, bow])[:, None])
        whole = patch_counts(masks, protocol=lesioncount.CountingProtocol())
        cut = patch_counts(masks[:, :, :2], protocol=lesioncount.CountingProtocol())
        assert (whole.tolist(), cut.tolist()) == ([[1], [1]], [[2], [2]])

    def test_ignored_voxels_count_neither_in_truth_nor_in_output(self):
        target = torch.zeros(1, 1, 6, 7, 8)
        target[0, 0, 1, 1, 1], target[0, 0, 4] = 1, 2
        output = patch_with((1, 1, 1), (4, 4, 4))
        with_ignored, without = patch_loss(ignore_label=2), patch_loss()
        p = 1 / (1 + np.exp(-1))
        assert with_ignored(output, target).item() == pytest.approx(-np.log(p))
        assert without(output, target).item() == pytest.approx(-np.log(2 * p * (1 - p)), rel=1e-5)
        regions = torch.stack([target[:, 0] == 1, target[:, 0] == 2], dim=1)
        assert patch_loss(regions=True, ignore_label=2)(output[:, 1:], regions) == with_ignored(output, target)

    def test_patch_that_is_ignored_altogether_has_no_loss(self):
        target = torch.full((1, 1, 6, 7, 8), 2)
        assert patch_loss(ignore_label=2)(patch_with((1, 1, 1)), target).item() == 0

    def test_only_the_full_resolution_is_counted(self):
        fine, coarse = patch_with((1, 1, 1), (4, 4, 4)), random_output(1, 2, 3, 3, 4)
        target = torch.zeros(1, 1, 6, 7, 8)
        target[0, 0, 1, 1, 1] = 1
        single = patch_loss()(fine, target)
        assert patch_loss()([fine, coarse], [target, target[..., ::2, ::2, ::2]]) == single
        single.backward()
        assert sorted({tuple(i) for i in fine.grad.nonzero()[:, 2:].tolist()}) == [(1, 1, 1), (4, 4, 4)]

    def test_peaks_that_touch_are_told_apart_where_the_target_has_two(self):
        output = torch.zeros(1, 2, 6, 7, 8)
        output[:, 1] = -9
        output[0, 1, 3, 3, 2:5] = torch.tensor([2.0, 0.5, 1.0])
        output.requires_grad_()
        target = torch.zeros(1, 1, 6, 7, 8)
        target[0, 0, 3, 3, 2] = target[0, 0, 3, 3, 4] = 1
        patch_loss(protocol="peaks")(output, target).backward()
        assert output.grad[0, 1, 3, 3, 2:5].sign().tolist() == [-1, 1, -1]
        output.grad = None
        target[0, 0, 3, 3, 3] = 1  # the mask joins them
        patch_loss(protocol="peaks")(output, target).backward()
        assert output.grad[0, 1, 3, 3, 3:5].sign().tolist() == [-1, 1]

    def test_channels_choose_what_is_a_lesion(self):
        output, target = random_output(2, 3, 6, 6), torch.zeros(2, 1, 6, 6)
        chosen = patch_loss(spatial_dims=2, channels=[2])
        assert chosen(output, target).item() != patch_loss(spatial_dims=2)(output, target).item()
        assert chosen.tally.n_labels == 2

    def test_maps_of_half_precision_under_autocast(self):
        output = patch_with((1, 1, 1)).detach().bfloat16().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = patch_loss()(output, torch.zeros(1, 1, 6, 7, 8, dtype=torch.int16))
        assert loss.dtype == torch.float32
        loss.backward()
        assert output.grad.isfinite().all()

    def test_output_that_overflowed_is_left_to_nnunet(self):
        output = patch_with((1, 1, 1), high=float("inf"))
        loss = patch_loss()
        assert not loss(output, torch.zeros(1, 1, 6, 7, 8)).isfinite()  # of the segmentation, here inf · 0
        assert (loss.tally.n_labels, loss.tally.n_not_finite) == (1, 1)
        assert "1 left out because the output was not finite" in str(loss.tally)

    def test_without_weight_counts_are_looked_at_in_validation_only(self):
        loss, output, target = patch_loss(weight=0.0), patch_with((1, 1, 1)), torch.ones(1, 1, 6, 7, 8)
        target[:, :, 3] = 0
        assert loss(output, target).item() == 0
        assert loss.tally.n_labels == 0
        with torch.no_grad():
            assert loss(output, target).item() == 0
        assert str(loss.tally) == "100.0000, 1 of 1 labels impossible"

    def test_weight_follows_the_paper_in_its_epochs_and_is_stretched_to_others(self):
        weight = CountWeight()
        assert [weight.at(epoch, 120) for epoch in range(20)] == [0.0] * 20
        assert weight.at(20, 120) == 0.001
        assert weight.at(119, 120) == pytest.approx(0.001 * np.exp(0.06 * 99))
        assert weight.at(166, 1000) == 0
        assert weight.at(167, 1000) == pytest.approx(0.001, rel=0.01)
        assert weight.at(999, 1000) == pytest.approx(weight.at(119, 120), rel=0.06)
        assert CountWeight(masks_only=0).at(0, 5) == 0.001


SHORT_TRAINER = """
import os
import torch
from lesioncount.integrations.nnunet.lesioncount_trainer import nnUNetTrainerLesionCount
from lesioncount.integrations.nnunet_loss import CountWeight

class nnUNetTrainerLesionCountShort(nnUNetTrainerLesionCount):
    count_weight = CountWeight(alpha=0.01, masks_only=60)  # of 120: the second of two epochs

    def __init__(self, plans, configuration, fold, dataset_json, device=torch.device("cpu")):
        super().__init__(plans, configuration, fold, dataset_json, device)
        self.num_epochs = int(os.environ.get("N_EPOCHS", 2))
        self.num_iterations_per_epoch, self.num_val_iterations_per_epoch = 8, 2
"""
LABELS = {"labels": {"background": 0, "lesion": 1}}
REGIONS = {
    "labels": {"background": 0, "whole": [1, 2], "core": [2], "ignore": 3},
    "regions_class_order": [1, 2],
}


def save_case(folder, name, rng, *, regions):
    """A noisy image with three bright balls, and its labels."""
    grid = np.stack(np.meshgrid(*map(np.arange, (20, 24, 16)), indexing="ij"), -1)
    distance = np.min([np.linalg.norm(grid - c, axis=-1) for c in ((5, 6, 5), (14, 8, 11), (8, 18, 8))], axis=0)
    labels = (distance < 3.2).astype(np.uint8)
    if regions:
        labels += distance < 2
        labels[:, :, -2:] = 3
    image = (100 + 60 * (distance < 3.2) + 60 * (distance < 2) + rng.normal(0, 6, labels.shape)).astype(np.float32)
    for array, file in ((image, f"images{folder.name}/{name}_0000"), (labels, f"labels{folder.name}/{name}")):
        path = folder.parent / f"{file}.nii.gz"
        path.parent.mkdir(exist_ok=True)
        nibabel.save(nibabel.Nifti1Image(array, np.diag([1, 1, 2, 1])), path)


@pytest.fixture
def nnunet(tmp_path):
    """The command line tools of nnU-Net in empty folders, with a short trainer beside ours."""
    trainers = tmp_path / "trainers"
    trainers.mkdir()
    (trainers / "short_trainer.py").write_text(SHORT_TRAINER)
    environment = {
        **os.environ,
        **{f"nnUNet_{kind}": str(tmp_path / kind) for kind in ("raw", "preprocessed", "results")},
        "nnUNet_def_n_proc": "1",
        "nnUNet_n_proc_DA": "1",  # planning divides by it
        "nnUNet_extTrainer": f"{trainers}{os.pathsep}{FOLDER}",
        "nnUNet_compile": "f",
        "OMP_NUM_THREADS": "2",
        "PYTHONWARNINGS": "ignore",
    }

    def run(*command, **variables):
        tool = Path(sys.executable).with_name(command[0])
        done = subprocess.run(
            [str(tool), *map(str, command[1:])],
            env={**environment, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    return run


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nnunetv2") is None, reason="needs nnunetv2 in an environment of its own: make nnunet")
class TestRealNnunet:
    def test_our_trainer_is_found_by_its_name(self, nnunet):
        shown = nnunet("python", "-c", (
            "from nnunetv2.utilities.find_objects import recursive_find_trainer_class_by_name as find\n"
            "print([c.__name__ for c in find('nnUNetTrainerLesionCount').__mro__])"
        ))  # fmt: skip
        assert "Found class nnUNetTrainerLesionCount in " in shown
        assert "['nnUNetTrainerLesionCount', 'nnUNetTrainer', 'object']" in shown

    @pytest.mark.parametrize(
        ("content", "configuration", "channel"), [(LABELS, "3d_fullres", 1), (REGIONS, "2d", 0)], ids=["3d", "2d"]
    )
    def test_plan_train_continue_predict_and_count(self, nnunet, tmp_path, rng, content, configuration, channel):
        dataset = tmp_path / "raw" / "Dataset901_Balls"
        dataset.mkdir(parents=True)
        for i in range(3):
            save_case(dataset / "Tr", f"case{i}", rng, regions=content is REGIONS)
        save_case(dataset / "Ts", "new", rng, regions=content is REGIONS)
        described = {**content, "channel_names": {"0": "T1"}, "numTraining": 3, "file_ending": ".nii.gz"}
        (dataset / "dataset.json").write_text(json.dumps(described))
        short = ("-tr", "nnUNetTrainerLesionCountShort", "-device", "cpu")

        nnunet("nnUNetv2_plan_and_preprocess", "-d", "901", "-c", configuration, "-np", "1", "-npfp", "1")
        log = nnunet("nnUNetv2_train", "901", configuration, "all", *short, nnUNet_n_proc_DA="0")
        assert re.findall(r"count_weight ([\d.]+)", log) == ["0", "0.01"]
        assert len(re.findall(r"train_count_loss [\d.]+, \d+ of \d+ labels impossible", log)) == 1
        assert len(re.findall(r"val_count_loss [\d.]+, \d+ of \d+ labels impossible", log)) == 2
        assert "Mean Validation Dice" in log
        log = nnunet("nnUNetv2_train", "901", configuration, "all", "--c", *short, nnUNet_n_proc_DA="0", N_EPOCHS="3")
        assert re.findall(r"count_weight ([\d.]+)", log) == ["0.0332"]  # α e^{β · 20}, in the third of three epochs

        nnunet(
            "nnUNetv2_predict", "-d", "901", "-c", configuration, "-f", "all", "-i", dataset / "imagesTs",
            "-o", tmp_path / "predicted", "--save_probabilities", "-npp", "1", "-nps", "1", *short,
        )  # fmt: skip
        count = count_file(tmp_path / "predicted" / "new.npz", channel=channel)
        assert count.result.candidates.spacing_mm == (1, 1, 2)
        assert 0 <= count.result.distribution.mean() < 50
