"""Figures show what they are given, and are not troubled by numbers that are none."""

import math

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs the extra [report]")

from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.adversarial import example_figure, success_figure
from lesioncount_reproduction.experiments.look import SHORT
from lesioncount_reproduction.experiments.multitask import comparison_figure
from lesioncount_reproduction.experiments.threshold import (
    accuracy_figure,
    confusion_figure,
    two_candidates_figure,
)

HALF = Estimate(0.5, 0.4, 0.6, (0.45, 0.55))
NOTHING = Estimate(math.nan, math.nan, math.nan, (math.nan,))


def test_two_candidates_are_the_figure_of_the_paper():
    """Existence probabilities 0.78 and 0.51: none, one or two lesions with 0.11, 0.49 and 0.40."""
    figure = two_candidates_figure(np.array([0.51, 0.78]), [2, 2, 2, 2, 2, 1, 1, 0, 0], 2)
    for text in (">0.11<", ">0.49<", ">0.40<", "Two candidates, 0.78 and 0.51; truth: 2"):
        assert text in figure.document


def test_examples_of_attacks_show_the_voxel_that_changed_the_count(rng):
    shape = (6, 8, 7)
    before, after = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    before[2, 3, 4], after[2, 3, 4] = 0.625, 0.25
    example = {
        "row": np.array(0),
        "image": rng.normal(size=(5, *shape)).astype(np.float32),
        "noise": np.full((5, *shape), 0.0625, np.float32),
        "map_before": before,
        "map_after": after,
        "voxel": np.array([2, 3, 4]),
    }
    figure = example_figure({"ours": example, "bottleneck": example})
    assert figure.document.count("0.62 in the square") == figure.document.count("0.25 in the square") == 2
    assert figure.document.count("at most 0.062 SD") == 2
    assert SHORT["bottleneck"] in figure.document


@pytest.mark.parametrize("estimate", [HALF, NOTHING])
def test_lines_and_bands_are_drawn_with_and_without_numbers(estimate):
    curves = {"cc": [estimate] * 9, "ours_post_hoc": [HALF] * 9}
    assert SHORT["cc"] in accuracy_figure(curves).document
    rates = {"ours": [estimate] * 3, "bottleneck": [HALF] * 3}
    document = success_figure(rates, (0.1, 0.5, 0.9), {"ours": estimate}, 0.5).document
    assert "adaptive attack" in document
    scores = {name: {"ours": estimate, "bottleneck": HALF} for name in ("accuracy", "rps", "voxel_f1", "voxel_ece")}
    assert "voxel ECE" in comparison_figure(scores, "multitask").document


def test_confusion_of_classes_that_do_not_occur_is_drawn():
    matrix = np.zeros((5, 5))
    matrix[0, 0], matrix[1, 2] = 37, 11
    matrices, names = {"cc": [matrix] * 2, "ours_post_hoc": [matrix] * 2}, ("0", "1", "2", "3–9", "10+")
    document = confusion_figure(matrices, (0.1, 0.5), names).document
    assert document.count(">37<") == document.count(">11<") == 4
    assert ">3–9<" in document
