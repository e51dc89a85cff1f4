"""From the outcomes of attacks to rates and examples."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from lesioncount_reproduction.experiments.adversarial import (  # noqa: E402 - after the checks
    _ALSO,
    ADAPTIVE_THRESHOLD,
    ATTACKED,
    TABLE_1_WEIGHT,
    _by_distance,
    _example,
    _table,
    attacked_patients,
    withstood,
)
from lesioncount_reproduction.experiments.attack import AttackOutcome  # noqa: E402
from lesioncount_reproduction.experiments.kept_files import save_arrays  # noqa: E402
from lesioncount_reproduction.experiments.presets import AttackSettings, recipe_of  # noqa: E402
from lesioncount_reproduction.experiments.study import Study  # noqa: E402

WEIGHTS = AttackSettings(1).weights


@pytest.fixture
def study(tmp_path):
    return Study("synthetic", "smoke", recipe_of("smoke", "synthetic"), (0, 1), tmp_path)


def keep(job, cache, after, blind=(False,) * 4, patients="abcd", change=None, noise=(0.0,) * 4):
    """Four scans with one lesion each, of which the last was counted wrong; and an example with this change."""
    before = np.zeros((2, 2, 2), np.float32)
    example = {} if change is None else {"map_before": before, "map_after": before + np.float32(change)}
    zeros = np.zeros(4)
    labels, counted = np.ones(4, dtype=np.int64), np.array([1, 1, 1, 0])
    outcome = AttackOutcome(
        np.array(list(patients)),
        labels,
        counted,
        np.array(after),
        labels,
        np.array(blind),
        np.array(noise),
        zeros,
        zeros,
        example,
    )
    save_arrays(job.path(cache), outcome.arrays())


def test_rates_are_those_of_each_seed(study):
    first, second = study.attacks("ours", TABLE_1_WEIGHT)
    keep(first, study.cache, after=[0, 1, 2, 0], blind=[False, True, False, False])
    keep(second, study.cache, after=[1, 1, 1, 0], patients="cdef")
    found = {name: samples.seeds for name, samples in withstood(study, "ours", TABLE_1_WEIGHT).items()}
    assert found["accuracy_before"] == (0.75, 0.75)
    assert found["accuracy_after"] == (0.25, 0.75)
    assert found["success_rate"] == pytest.approx([2 / 3, 0])  # a scan that was counted wrong is not fooled
    assert found["blind"] == pytest.approx([1 / 3, 0])
    assert attacked_patients(study) == list("abcdcdef")


def test_shares_on_which_all_scans_agree_have_exact_intervals(study):
    """Eight scans of six patients are attacked, six of them counted right before, and none is fooled."""
    for weight in WEIGHTS:
        for method in (*ATTACKED, *_ALSO):
            for threshold in (None, ADAPTIVE_THRESHOLD):
                for job, patients in zip(study.attacks(method, weight, threshold), ("abcd", "cdef"), strict=True):
                    keep(job, study.cache, after=[1, 1, 1, 0], patients=patients)
    found = {(method, weight): withstood(study, method, weight) for weight in WEIGHTS for method in (*ATTACKED, *_ALSO)}
    assert len(attacked_patients(study)) == 8
    for _, _, _, _, drop, success_rate, *_ in _table(study, found, {}).rows:
        assert drop.high == pytest.approx(1 - 0.025 ** (1 / 6))
        assert success_rate.high == pytest.approx(1 - 0.025 ** (1 / (6 * 0.75)))


def test_attacks_succeed_within_a_distance_if_their_noise_is_no_larger(study):
    reach = study.recipe.attack.rate * study.recipe.attack.max_steps
    for method in (*ATTACKED, *_ALSO):
        for threshold in (None, ADAPTIVE_THRESHOLD):
            for job in study.attacks(method, TABLE_1_WEIGHT, threshold):
                noise = np.array([0.3, 0.05, 0.9, 0.0]) * reach * (1 if threshold is None else 0.5)
                keep(job, study.cache, after=[0, 1, 2, 0], noise=noise)
    table = _by_distance(study)
    shares = {row[0]: [one.value for one in row[1:]] for row in table.rows}
    assert shares["bottleneck"] == pytest.approx([0, 0, 1 / 3, 1 / 3, 2 / 3, 2 / 3])
    both = shares["ours, multi-task, this or the adaptive attack"]
    assert both == pytest.approx([0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3])
    assert len(shares) == 7 + 4


def test_the_example_is_the_success_that_changed_the_map_least(study):
    for job, change in zip(study.attacks("bottleneck", TABLE_1_WEIGHT), (0.5, 0.25), strict=True):
        keep(job, study.cache, after=[0, 0, 0, 0], change=change)
    assert _example(study, "bottleneck")["map_after"].max() == 0.25


def test_examples_of_ours_may_be_those_of_the_adaptive_attack(study):
    for job in study.attacks("ours", TABLE_1_WEIGHT):
        keep(job, study.cache, after=[1, 1, 1, 0])
    adaptive = list(study.attacks("ours", TABLE_1_WEIGHT, ADAPTIVE_THRESHOLD))
    for job in adaptive:
        keep(job, study.cache, after=[1, 1, 1, 0])
    assert _example(study, "ours") == {}
    keep(adaptive[1], study.cache, after=[0, 1, 1, 0], change=0.125)
    assert _example(study, "ours")["map_after"].max() == 0.125
