"""Cross-validation: every patient is tested once, and folds are alike."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytest.importorskip("lesioncount_reproduction", reason="needs the reproduction: pip install ./reproduction")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import Scans, tiny  # noqa: E402 - after the checks

from lesioncount.learning.config import DataConfig  # noqa: E402
from lesioncount.learning.scans import MANY, LearningScan  # noqa: E402
from lesioncount.learning.split import crossed  # noqa: E402
from lesioncount_reproduction.sources import sources_of  # noqa: E402


def scan(name, patient, count):
    return LearningScan(name, patient, np.zeros((1, 2, 2), np.float32), np.zeros((2, 2), np.uint8), count, count)


@pytest.fixture
def parts(rng):
    """Sixty patients, some with several scans, in three unequal parts."""
    found = {"train": Scans(), "val": Scans(), "test": Scans()}
    for patient in range(60):
        of = found[("train", "train", "val", "test")[patient % 4]]
        of += [scan(f"s{patient}-{i}", f"p{patient:02}", int(rng.poisson(1.5))) for i in range(1 + patient % 3)]
    return found


def every(source):
    return [source[i] for i in range(len(source))]


def folds_of(parts, folds, seed=3):
    data = DataConfig(folds=folds, seed=seed)
    return [crossed(parts, replace(data, fold=fold), alike=4) for fold in range(folds)]


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_every_patient_is_tested_exactly_once(parts, folds):
    names = sorted(one.name for part in parts.values() for one in part)
    tested = sorted(one.name for fold in folds_of(parts, folds) for one in every(fold["test"]))
    assert tested == names


@pytest.mark.parametrize("folds", [2, 5])
def test_parts_of_a_fold_hold_all_patients_and_share_none(parts, folds):
    for fold in folds_of(parts, folds):
        patients = {part: {one.patient for one in every(of)} for part, of in fold.items()}
        assert set(patients) == {"train", "val", "test"}
        assert sum(map(len, patients.values())) == len(set.union(*patients.values())) == 60
        assert all(patients.values())


def test_folds_have_like_counts(parts):
    """Patients are dealt out like cards, in the order of their highest count: classes differ by two cards at most."""
    classes = []
    for fold in folds_of(parts, 5):
        highest = {}
        for one in every(fold["test"]):
            highest[one.patient] = max(highest.get(one.patient, 0), min(one.at_least, 4))
        classes.append(np.bincount(list(highest.values()), minlength=5))
    assert np.ptp(np.array(classes), axis=0).max() <= 2
    assert np.ptp(np.sum(classes, axis=1)) <= 2


def test_another_seed_gives_other_folds(parts):
    first, again, other = (
        [[one.name for one in every(fold["test"])] for fold in folds_of(parts, 3, seed)] for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_folds_are_those_of_trainings_that_are_in_caches():
    """Which patients a network has seen is not in the key of a training."""
    of_part = {
        part: Scans(scan(f"{part}{i}", f"{part}{i}", i * 7 % 13) for i in range(4)) for part in ("train", "test")
    }
    data = DataConfig(folds=2, seed=2026)
    tested = {alike: [one.name for one in every(crossed(of_part, data, alike=alike)["test"])] for alike in (4, MANY)}
    assert tested == {4: ["train0", "train1", "train3", "test0"], MANY: ["train0", "train1", "test0", "test1"]}


def test_a_share_of_the_patients_is_taken_from_the_training_part_of_a_fold_only():
    data = {"patients": (12, 2, 2), "folds": 2, "fold": 1}
    whole, some = (sources_of(tiny(data=data | {"share": share})) for share in (1.0, 0.5))
    for part in ("val", "test"):
        assert [one.name for one in every(whole[part])] == [one.name for one in every(some[part])]
    kept = {one.patient for one in every(some["train"])}
    assert kept < {one.patient for one in every(whole["train"])}


def test_scans_that_are_there_are_not_made_again():
    config = tiny(data={"share": 0.5})
    made = sources_of(tiny())
    cut = sources_of(config, made)
    assert cut["test"] is made["test"]
    assert {id(one) for one in every(cut["train"])} < {id(one) for one in every(made["train"])}
    assert [one.name for one in every(cut["train"])] == [one.name for one in every(sources_of(config)["train"])]


def test_synthetic_patients_of_two_parts_are_not_taken_for_one():
    data = {"patients": (12, 2, 2), "folds": 2}
    folds = [sources_of(tiny(data=data | {"fold": fold})) for fold in (0, 1)]
    tested = [len(fold["test"]) for fold in folds]
    assert sum(tested) == sum(len(part) for part in sources_of(tiny(data={"patients": (12, 2, 2)})).values())
    assert max(tested) - min(tested) <= 4
