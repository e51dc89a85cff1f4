"""Keys of trainings change with all that a network depends on, and with nothing else."""

import shutil
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="needs the extra [train]")

from lesioncount.errors import ConfigError
from lesioncount_reproduction.experiments.arms import HEADS, LOW_DATA, OURS, OURS_PEAKS, SEGMENTATION, Arm, arm
from lesioncount_reproduction.experiments.presets import PRESETS, HeadRecipe, recipe_of

SMOKE = recipe_of("smoke", "synthetic")


@pytest.fixture
def leaves(tmp_path):
    """A folder with the table of a data set."""
    folder = tmp_path / "leaves"
    folder.mkdir()
    (folder / "counts.csv").write_text("split,id,n_full\ntrain,3,2\ntest,4,0\n")
    return folder


def leaf_key(folder):
    return arm(recipe_of("smoke", "leaf", str(folder)), "ours", seed=0).key


def test_keys_are_the_same_for_the_same_training():
    assert arm(SMOKE, "ours", seed=0).key == arm(recipe_of("smoke", "synthetic"), "ours", seed=0).key


def test_keys_are_those_of_trainings_that_are_in_caches():
    """Hours of training are found again under these, whatever else a configuration may come to hold."""
    laptop = recipe_of("laptop", "synthetic")
    assert arm(laptop, "ours", seed=0).key == "f58f639c6e595c95"
    assert arm(laptop, "multihead", seed=1, share=LOW_DATA).key == "5a3ca2d6ecf463e7"
    assert arm(SMOKE, "ours", seed=0).key == "2420c98c9e5c4db8"


def test_keys_of_data_in_files_are_those_of_caches(leaves):
    assert leaf_key(leaves) == "26c42eef1375fd63"
    (leaves / "nuclei.npz").write_bytes(b"hashed and not read")
    assert arm(recipe_of("laptop", "nuclei", str(leaves)), "ours", seed=0, fold=1).key == "25b9a373c582e713"


def test_keys_change_with_what_is_trained():
    arms = [arm(SMOKE, method, seed=seed) for method in (SEGMENTATION, *HEADS, OURS, OURS_PEAKS) for seed in (0, 1)]
    arms += [
        arm(SMOKE, "ours", seed=0, share=LOW_DATA),
        arm(replace(SMOKE, epochs=SMOKE.epochs + 1), "ours", seed=0),
        arm(replace(SMOKE, pretrain_epochs=SMOKE.pretrain_epochs + 1), "ours", seed=0),  # what it begins with
        arm(replace(SMOKE, rate=1e-3), "ours", seed=0),
        arm(replace(SMOKE, data=replace(SMOKE.data, seed=1)), "ours", seed=0),
        arm(replace(SMOKE, network=replace(SMOKE.network, filters=3)), "ours", seed=0),
        arm(replace(SMOKE, heads=(("bottleneck", HeadRecipe(1e-2, 7)),)), "bottleneck", seed=0),
        arm(replace(SMOKE, heads=(("bottleneck", HeadRecipe(1.0, 1)),)), "bottleneck", seed=0),
        arms[0].before,
    ]
    assert len({one.key for one in arms}) == len(arms)


def test_keys_do_not_change_with_what_makes_no_difference():
    one = arm(SMOKE, "ours", seed=0)
    threads = Arm(one.method, replace(one.config, run=replace(one.config.run, threads=7)), one.before)
    attack = replace(SMOKE, attack=replace(SMOKE.attack, max_steps=99), mc_samples=7)
    warm = replace(SMOKE, heads=())  # ours has no head
    assert {threads.key, arm(attack, "ours", seed=0).key, arm(warm, "ours", seed=0).key} == {one.key}


def test_keys_do_not_change_with_the_place_of_the_files(leaves, tmp_path):
    shutil.copytree(leaves, tmp_path / "copy")
    assert leaf_key(leaves) == leaf_key(tmp_path / "copy")


def test_keys_change_with_the_table_of_the_data_set(leaves, tmp_path):
    shutil.copytree(leaves, tmp_path / "copy")
    with (tmp_path / "copy" / "counts.csv").open("a") as file:
        file.write("test,5,1\n")
    assert leaf_key(leaves) != leaf_key(tmp_path / "copy")


def test_folds_are_trainings_of_their_own(leaves):
    recipe = recipe_of("smoke", "leaf", str(leaves))
    first, second = (arm(recipe, "ours", seed=0, fold=fold) for fold in (0, 1))
    assert first.key != second.key
    assert first.before.key != second.before.key
    assert second.title == "leaf, ours, seed 0, fold 2/2"


def test_a_folder_without_a_data_set_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"There is no data set in .*nothing: No such file"):
        leaf_key(tmp_path / "nothing")


@pytest.mark.parametrize("preset", PRESETS)
def test_all_methods_begin_with_the_same_network_and_learn_for_as_long_unless_said_otherwise(preset):
    recipe = recipe_of(preset, "synthetic")
    for share in (1.0, LOW_DATA):
        arms = [arm(recipe, method, seed=2, share=share) for method in (SEGMENTATION, *HEADS, "ours")]
        assert len({one.before.key for one in arms}) == 1
        own = {name for name, head in recipe.heads if head.epochs}
        assert own <= {"bottleneck"}  # it has to teach its UNet what it reads
        usual = [one.config.run for one in arms if one.method not in own]
        assert len({(run.epochs, run.validate_every) for run in usual}) == 1
        assert len({one.config.data for one in arms}) == 1
        assert {one.config.loss.count_weight for one in arms[1:]} != {0}
        assert arms[0].config.loss.count_weight == 0
        warmed = {one.method for one in arms if one.config.run.warmup_epochs}
        assert "downstream" in warmed
        assert own.isdisjoint(warmed)
        assert {one.config.run.seed for one in arms} == {one.before.config.run.seed for one in arms} == {2}


def test_in_the_evening_networks_learn_from_masks_for_as_long_as_ours_but_for_bottleneck():
    recipe = recipe_of("evening", "synthetic")
    methods = (SEGMENTATION, OURS, OURS_PEAKS, *HEADS)
    epochs = {method: arm(recipe, method, seed=0).segmentation_epochs for method in methods}
    assert epochs.pop("bottleneck") > 24
    assert set(epochs.values()) == {24}
    assert recipe.data.patients[2] > recipe_of("laptop", "synthetic").data.patients[2]


def test_unknown_presets_and_data_sets_name_the_known_ones():
    with pytest.raises(ConfigError, match=r"'desktop' is not a preset. Choose from smoke, laptop"):
        recipe_of("desktop", "synthetic")
    with pytest.raises(ConfigError, match=r"'gad' is not a data set. Choose from synthetic, leaf"):
        recipe_of("smoke", "gad")
