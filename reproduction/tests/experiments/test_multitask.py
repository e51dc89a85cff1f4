"""The rule of claim 7: maps are compared where their UNets learned from masks for equally long."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from lesioncount.trust.scores.estimate import Estimate  # noqa: E402 - after the checks
from lesioncount_reproduction.experiments.arms import HEADS  # noqa: E402
from lesioncount_reproduction.experiments.estimates import Samples  # noqa: E402
from lesioncount_reproduction.experiments.multitask import _calibration_evidence  # noqa: E402
from lesioncount_reproduction.experiments.presets import recipe_of  # noqa: E402
from lesioncount_reproduction.experiments.study import EVERY_METHOD, Study  # noqa: E402
from lesioncount_reproduction.experiments.trained import Learned  # noqa: E402


def test_a_map_whose_network_learned_from_masks_for_longer_is_named_and_not_judged(tmp_path):
    study = Study("synthetic", "laptop", recipe_of("laptop", "synthetic"), (0, 1, 2), tmp_path)
    gain = Estimate(0.3, 0.2, 0.4, (0.3, 0.3, 0.3))
    maps = {method: {"voxel_ece": Samples(np.ones((3, 50)))} for method in EVERY_METHOD}
    heads = {head: Learned(head, 0.0, gain, 8) for head in HEADS}
    untested = {one.measured.rpartition("minus ")[2]: one.untested for one in _calibration_evidence(study, maps, heads)}
    assert untested.pop("bottleneck") == "its UNet learned from masks for 40 epochs, that of ours for 16"
    assert set(untested) == {"segmentation only", "multi-head", "downstream"}
    assert set(untested.values()) == {""}  # their warm-up, on a frozen UNet, does not count
