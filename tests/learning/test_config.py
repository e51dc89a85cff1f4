"""Configurations: presets, files, and what is said of mistakes."""

import pytest

from lesioncount.errors import ConfigError
from lesioncount.learning.config import PRESETS, TrainingConfig


@pytest.mark.parametrize("name", PRESETS)
def test_presets_load_and_survive_a_round_trip(name):
    config = TrainingConfig.load(name)
    assert TrainingConfig.from_dict(config.to_dict()) == config


def test_paper_preset_is_the_protocol_of_the_paper():
    config = TrainingConfig.load("paper")
    assert (config.network.filters, config.network.levels) == (32, 5)
    assert (config.run.pretrain_epochs, config.run.epochs) == (20, 100)
    assert (config.optimizer.learning_rate, config.optimizer.weight_decay, config.optimizer.decay) == (
        1e-4,
        1e-5,
        0.995,
    )
    assert (config.loss.positive_weight, config.loss.count_weight, config.loss.count_growth) == (3, 0.001, 0.06)


def test_a_file_changes_some_of_a_preset(tmp_path):
    (tmp_path / "mine.toml").write_text('preset = "laptop"\n[network]\nmethod = "bottleneck"\n[run]\nseed = 5\n')
    config = TrainingConfig.load(tmp_path / "mine.toml")
    laptop = TrainingConfig.load("laptop")
    assert config.network.method == "bottleneck"
    assert config.run.seed == 5
    assert config.network.filters == laptop.network.filters
    assert config.data == laptop.data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run]\nepoch = 3\n", "no key in \\[run\\] called 'epoch'. Did you mean 'epochs'?"),
        ("[optimiser]\n", "no section called 'optimiser'. Did you mean 'optimizer'?"),
        ("[run]\nxyz = 3\n", "called 'xyz'. Known are start, pretrain_epochs"),
        (
            "[run]\nepochs = 'many'\n",
            "Expected epochs in \\[run\\] to be a whole number, but got 'many'. Write, for example: epochs = 100",
        ),
        ("[run]\nepochs = 1.5\n", "to be a whole number, but got 1.5"),
        ("[run]\nepochs = true\n", "but got True"),
        (
            "[data]\nshape = 24\n",
            "shape in \\[data\\] to be a list in square brackets, but got 24. Write, for example: shape = ",
        ),
        ("run = 3\n", "Expected a section \\[run\\]"),
        ("[run\n", "does not parse"),
        ("preset = 'desktop'\n", "'desktop' is no preset"),
        ("preset = 3\n", "3 is no preset"),
        (
            "[optimizer]\nschedule = 'exponentail'\n",
            "schedule in \\[optimizer\\] to be one of exponential, one_cycle, cosine, but got 'exponentail'. Write",
        ),
        (
            "[network]\nmethod = 'our'\n",
            "method in \\[network\\] to be one of map, bottleneck, multihead, downstream, but got 'our'",
        ),
        ("[network]\ndropout = 2.0\n", "dropout"),
        ("[run]\nbatch_size = 0\n", "batch_size"),
        ("[run]\nkeep_gb = -1\n", "keep_gb in \\[run\\] to be at least 0"),
        ("[run]\nepochs = 0\npretrain_epochs = 0\n", "epochs"),
        ("[data]\npatients = ['a', 2, 2]\n", "patients"),
        ("[data]\nimages = 'x'\nshape = [8, 8]\n", "write, for example: resize = "),
        ("[data]\nimages = 'x'\nsource = 'leaf'\n", 'images in \\[data\\] to be left out with source = "leaf"'),
        ("[data]\nmasks = 'x'\nsource = 'leaf'\n", 'masks in \\[data\\] to be left out with source = "leaf"'),
        ("[data]\nimages = 'x'\nparts = [0.5, 0.5]\n", "parts in \\[data\\] to be shares of training"),
        ("[data]\nimages = 'x'\nparts = ['a', 1, 1]\n", "parts in \\[data\\] to be shares of training"),
        ("[data]\nimages = 'x'\nchannels = [1]\n", "channels in \\[data\\] to be endings of names"),
        ("[data]\nimages = 'x'\nchannels = ['a', 'a']\n", "channels in \\[data\\] to be endings of names"),
        ("[data]\nimages = 'x'\nresize = [8]\n", "resize in \\[data\\] to be height and width"),
        ("[data]\nimages = 'x'\nmask_label = -1\n", "mask_label in \\[data\\]"),
        ("[data]\nfolds = 1\n", "folds in \\[data\\] to be 2 or more, or 0"),
        ("[data]\nfolds = 5\nfold = 5\n", "fold in \\[data\\] to be one of the 5 folds, counted from 0"),
        ("[data]\nfolds = 5\nfold = -1\n", "fold in \\[data\\] to be one of the 5 folds, counted from 0"),
        ("[data]\nfolds = -2\n", "folds in \\[data\\] to be 2 or more, or 0"),
        ("[network]\nhead_dropout = 1.0\n", "head_dropout in \\[network\\] to be below 1"),
        ("[network]\nhead_readout = 'median'\n", "head_readout in \\[network\\] to be one of mean, max"),
        ("[network]\nprotocol = 'hills'\n", "protocol in \\[network\\] to be one of paper"),
        ("[loss]\nbins = [1, 2]\n", "bins in \\[loss\\] to be rising counts, the first of them 0"),
        ("[loss]\nbins = [0, 3, 3]\n", "bins in \\[loss\\] to be rising counts"),
        ("[loss]\nbins = ['a']\n", "bins in \\[loss\\] to be rising counts"),
        ("[run]\nprecision = 'half'\n", "precision in \\[run\\] to be one of float32, bfloat16, auto"),
        ("[run]\nwarmup_epochs = -1\n", "warmup_epochs in \\[run\\] to be at least 0"),
        (
            "[run]\nwarmup_epochs = 2\n",
            'warmup_epochs in \\[run\\] to be left out with method = "map"',
        ),  # the map has no head that learns
        ("[run]\nvalidate_every = 0\n", "validate_every in \\[run\\] to be at least 1"),
        ("[run]\nepochs = 3\npretrain_epochs = 2\nvalidate_every = 6\n", "validate_every in \\[run\\]"),
        ("[run]\nepochs = 1\npretrain_epochs = 2\nvalidate_every = 2\n", "validate_every in \\[run\\]"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(ConfigError, match=message):
        TrainingConfig.from_toml(text)


def test_a_whole_number_may_stand_for_another():
    assert TrainingConfig.from_toml("[optimizer]\nlearning_rate = 1\n").optimizer.learning_rate == 1


@pytest.mark.parametrize(
    ("text", "alone", "with_counts"),
    [
        ('preset = "laptop"\n[run]\nepochs = 20\n', 10, 10),
        ('preset = "paper"\n[run]\nepochs = 30\n', 5, 25),
        ("[run]\nepochs = 12\n", 2, 10),
        ('preset = "laptop"\n[run]\nepochs = 20\npretrain_epochs = 5\n', 5, 20),
        ('preset = "laptop"\n[run]\npretrain_epochs = 5\n', 5, 12),
    ],
)
def test_epochs_alone_are_all_epochs_in_the_proportions_of_the_preset(text, alone, with_counts):
    run = TrainingConfig.from_toml(text).run
    assert (run.pretrain_epochs, run.epochs) == (alone, with_counts)


def test_all_epochs_are_those_of_the_three_stages():
    config = TrainingConfig.from_toml(
        "[network]\nmethod = 'downstream'\n[run]\npretrain_epochs = 2\nwarmup_epochs = 3\nepochs = 4\n"
    )
    assert config.run.n_epochs == 9


def test_folds_dropout_of_heads_and_schedules_survive_a_round_trip():
    text = "[data]\nfolds = 5\nfold = 4\n[network]\nhead_dropout = 0\n[optimizer]\nschedule = 'cosine'\n"
    config = TrainingConfig.from_toml(text + "[run]\nstart = 'before.ckpt'\nvalidate_every = 4\n")
    assert (config.data.folds, config.data.fold) == (5, 4)
    assert TrainingConfig.from_dict(config.to_dict()) == config


def test_pictures_of_ones_own_leave_size_and_largest_count_of_a_preset_open():
    config = TrainingConfig.from_toml("preset = 'laptop'\n[data]\nimages = 'pictures'\ncounts = 'counts.csv'\n")
    assert (config.data.source, config.data.shape, config.loss.max_count) == ("files", (), 0)
    assert config.network == TrainingConfig.load("laptop").network
    assert TrainingConfig.from_dict(config.to_dict()) == config
    chosen = TrainingConfig.from_toml("[data]\nimages = 'pictures'\n[loss]\nmax_count = 9\n")
    assert chosen.loss.max_count == 9
