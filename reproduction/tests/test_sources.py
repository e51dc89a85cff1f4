"""The data of the paper as sources of a training: what checkpoints say of images, and patients in folds."""

from dataclasses import replace

import pytest

from lesioncount.errors import ConfigError
from lesioncount.learning.config import DataConfig, TrainingConfig
from lesioncount.learning.expected import Expected
from lesioncount_reproduction.sources import data_of, sources_of


@pytest.mark.parametrize(
    ("source", "shape", "expected"),
    [
        ("leaf", (16, 32), Expected(3, 2, "unit", resize=True)),
        ("nuclei", (16, 16), Expected(3, 2, "unit")),
        (
            "synthetic",
            (8, 16, 16),
            Expected(3, 3, "brain", suffixes=("_T1w", "_ce-gadolinium_T1w", "_T2w", "_FLAIR", "_PDw")),
        ),
    ],
)
def test_networks_expect_images_as_they_were_trained_on(source, shape, expected):
    config = TrainingConfig(data=DataConfig(source=source, shape=shape))
    completed = data_of(config).completed(config)
    assert Expected.of(completed.data, 3) == expected
    assert replace(completed, data=config.data) == config


def test_synthetic_patients_of_two_parts_are_not_taken_for_one_in_folds():
    config = TrainingConfig(data=DataConfig(source="synthetic", patients=(3, 2, 2), shape=(8, 16, 16), folds=2))
    parts = sources_of(config)
    patients = {of[i].patient for of in parts.values() for i in range(len(of))}
    assert patients == {"0 001", "0 002", "0 003", "1 001", "1 002", "2 001", "2 002"}
    plain = sources_of(replace(config, data=replace(config.data, folds=0)))
    assert plain["train"][0].patient == "001"


def test_other_sources_are_those_of_the_package():
    with pytest.raises(ConfigError, match="Expected images in"):
        data_of(TrainingConfig())
    with pytest.raises(ConfigError, match=r"files.* but got 'tape'"):
        data_of(TrainingConfig(data=DataConfig(source="tape")))
