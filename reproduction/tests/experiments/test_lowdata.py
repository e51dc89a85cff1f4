"""The rule of claim 8: heads that learn are compared, and that none learns is what the paper says."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from experiments.made_up import FALLING, FLAT, keep  # noqa: E402 - after the checks

from lesioncount.trust.scores.estimate import Estimate  # noqa: E402
from lesioncount_reproduction.experiments import lowdata  # noqa: E402
from lesioncount_reproduction.experiments.arms import HEADS, LOW_DATA  # noqa: E402
from lesioncount_reproduction.experiments.claims import Claim  # noqa: E402
from lesioncount_reproduction.experiments.estimates import Samples  # noqa: E402
from lesioncount_reproduction.experiments.presets import recipe_of  # noqa: E402
from lesioncount_reproduction.experiments.study import Study  # noqa: E402
from lesioncount_reproduction.experiments.trained import Learned  # noqa: E402

NOTHING, MUCH = Estimate(0.0, -0.1, 0.1, (0.0, 0.0, 0.0)), Estimate(0.3, 0.2, 0.4, (0.3, 0.3, 0.3))


@pytest.fixture
def study(tmp_path):
    recipe = replace(recipe_of("smoke", "synthetic"), low_data_rates=(1.0, 3.0), low_data_budgets=(1, 2))
    return Study("synthetic", "smoke", recipe, (0, 1, 2), tmp_path)


def epochs_and_rates(study):
    jobs = [job for job in lowdata.needs(study) if job.arm.method == "multihead" and job.arm.config.run.seed == 0]
    return [(job.arm.config.run.epochs, job.arm.config.optimizer.head_learning_rate) for job in jobs]


def test_heads_are_tried_with_several_rates_for_as_long_as_their_score_falls(study):
    usual = dict(study.recipe.heads)["multihead"].rate
    assert epochs_and_rates(study) == [(2, usual), (2, 3 * usual)]
    keep(lowdata._tried(study, "multihead", 1.0, 1), "multihead", FALLING, 0, share=LOW_DATA)
    keep(lowdata._tried(study, "multihead", 3.0, 1), "multihead", FLAT, 0, share=LOW_DATA)
    assert epochs_and_rates(study) == [(4, usual), (2, 3 * usual)]
    keep(lowdata._tried(study, "multihead", 1.0, 2), "multihead", FALLING, 0, share=LOW_DATA)
    assert epochs_and_rates(study) == [(4, usual), (2, 3 * usual)]  # there are no more


def test_the_usual_rate_and_budget_are_the_usual_training(study):
    usual, tried = (
        next(one.arms("multihead", share=LOW_DATA)) for one in (study, lowdata._tried(study, "multihead", 1.0, 1))
    )
    assert usual.key == tried.key


def test_the_rate_with_which_a_head_is_trained_stands_for_it():
    tried = {
        ("multihead", 1.0): Learned("multihead", 0.2, MUCH, 8),
        ("multihead", 3.0): Learned("multihead", 0.0, MUCH, 8),
    }
    assert lowdata._best_rate(tried, "multihead") == 3.0
    tried["multihead", 3.0] = Learned("multihead", 0.0, NOTHING, 8)
    assert lowdata._best_rate(tried, "multihead") == 1.0


def verdict_of(learned, ours, head=0.5, constant=0.6):
    def samples(value):
        return {"accuracy": Samples(np.full((3, 50), value))}

    heads = {name: learned.get(name, Learned(name, 0.0, NOTHING, 8)) for name in HEADS}
    counts = {"ours": samples(ours), "ours_post_hoc": samples(ours), "constant": samples(constant)}
    counts |= {name: samples(head) for name in HEADS}
    found = tuple(lowdata.evidence(counts, heads, heads))
    return Claim(8, "synthetic", found, "").verdict, " ".join(one.measured for one in found)


def test_if_no_head_learns_ours_must_beat_the_most_frequent_count():
    verdict, measured = verdict_of({}, ours=0.7)
    assert verdict == "holds"
    assert "minus always the most frequent count, as no head learned" in measured
    assert verdict_of({}, ours=0.55)[0] == "does not hold"


def test_a_head_that_learned_is_compared_and_the_most_frequent_count_is_not():
    trained = {"downstream": Learned("downstream", 0.0, MUCH, 8)}
    verdict, measured = verdict_of(trained, ours=0.55)
    assert verdict == "holds"
    assert "minus the best trained head (downstream)" in measured
    assert verdict_of(trained, ours=0.45)[0] == "does not hold"


@pytest.mark.parametrize("gain", [NOTHING, MUCH])
def test_a_head_that_may_still_learn_leaves_the_claim_untested(gain):
    falling = {"downstream": Learned("downstream", 0.2, gain, 8)}
    assert verdict_of(falling, ours=0.7) == ("not tested", "")
