"""The rule for heads that have learned to count."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from experiments.made_up import COUNTS, FALLING, FLAT, keep, write  # noqa: E402 - after the checks

from lesioncount.trust.scores.estimate import Estimate  # noqa: E402
from lesioncount_reproduction.experiments.arms import HEADS  # noqa: E402
from lesioncount_reproduction.experiments.jobs import Trained, validation_scores  # noqa: E402
from lesioncount_reproduction.experiments.presets import recipe_of  # noqa: E402
from lesioncount_reproduction.experiments.study import Study  # noqa: E402
from lesioncount_reproduction.experiments.trained import (  # noqa: E402
    Learned,
    learned_heads,
    learned_table,
    trained_heads,
    untrained_in_words,
)


@pytest.fixture
def study(tmp_path):
    return Study("synthetic", "smoke", recipe_of("smoke", "synthetic"), (0, 1, 2), tmp_path)


def test_a_head_is_trained_when_it_is_flat_and_beats_the_constant(study):
    keep(study, "bottleneck", FLAT, n_wrong=0)
    keep(study, "multihead", FALLING, n_wrong=0)
    keep(study, "downstream", FLAT, n_wrong=16)
    found = learned_heads(study)
    assert [found[head].is_trained for head in HEADS] == [True, False, False]
    assert trained_heads(study) == ["bottleneck"]
    assert found["bottleneck"].gain.value == pytest.approx(0.4)
    assert found["downstream"].gain.value == pytest.approx(0)
    shares = np.bincount(COUNTS, minlength=5) / 40  # cumulative: 0.6, 0.85, 1, 1, 1
    nothing = (shares * [0.4**2 + 0.15**2, 0.6**2 + 0.15**2, 0.6**2 + 0.85**2, 0, 0]).sum()
    assert found["multihead"].fall == pytest.approx((0.475 - 0.375) / nothing)
    said = untrained_in_words(found)
    assert "multi-head (its score was still falling, by 27.2 % of what there was to gain)" in said
    assert "downstream (it does not clearly beat always the most frequent count (0.0 points" in said
    assert "bottleneck" not in said
    assert [row[-1][:3] for row in learned_table(found).rows] == ["yes", "no:", "no:"]


def test_a_seed_that_never_learned_is_named_as_the_reason():
    gain = Estimate(0.1, 0.06, 0.15, seeds=(0.15, 0.0, 0.17))
    assert (
        Learned("multihead", 0.03, gain, 20).why_not == "with 1 of 3 seeds it is no better than the most frequent count"
    )


def test_one_seed_that_does_not_beat_the_constant_is_enough(study):
    for head in HEADS:
        keep(study, head, FLAT, n_wrong=0)
    [_, _, last] = study.arms("downstream")
    stats = Trained(last).stats(study.cache, "val")
    said_zero = np.log(np.tile([0.96, 0.01, 0.01, 0.01, 0.01], (len(COUNTS), 1)))
    write(Trained(last), study.cache, FLAT, replace(stats, log_probs=said_zero))
    assert trained_heads(study) == ["bottleneck", "multihead"]


def test_scores_of_validations_are_read_from_all_logs_of_a_training_that_was_resumed(tmp_path):
    (tmp_path / "metrics.csv").write_text("val_rps,epoch,loss\n0.5,0,\n,0,0.1\n0.4,1,\n")
    (tmp_path / "metrics-2.csv").write_text("val_rps,epoch,loss\n0.3,2,\n,2,0.1\n")
    (tmp_path / "metrics-10.csv").write_text("val_rps,epoch,loss\n0.2,3,\n")
    assert validation_scores(tmp_path).tolist() == [0.5, 0.4, 0.3, 0.2]
