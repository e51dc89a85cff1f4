"""Confusion, reliability and certainty as they are drawn on every page."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy.stats import binomtest

from lesioncount.report.charts import THIN, Look, draw_certainty, draw_confusion, draw_reliability
from lesioncount.trust.scores.reliability import Reliability

LOOK = Look("ours", "#0072b2", "s", "-")


@pytest.fixture
def axes():
    return Figure().add_subplot()


def test_confusion_shows_numbers_and_colours_shares_of_rows(axes):
    draw_confusion(axes, np.array([[3, 1], [0, 0]]), LOOK.colour)
    assert [text.get_text() for text in axes.texts] == ["3", "1", "0", "0"]
    strong, weak, *none = (patch.get_alpha() for patch in axes.patches)
    assert strong == pytest.approx(3 * weak)
    assert none == [0, 0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1+"]


def test_bins_with_few_predictions_are_hollow_and_empty_ones_absent(axes):
    n = np.array([0, THIN - 1, THIN])
    draw_reliability(axes, [(LOOK, Reliability(n, 0.5 * n, 0.25 * n))])
    points = [line for line in axes.lines if line.get_marker() == "s" and len(line.get_xdata())]
    assert [len(line.get_xdata()) for line in points] == [1, 1]
    assert [line.get_markerfacecolor() for line in points] == [LOOK.colour, "none"]
    assert all(line.get_ydata()[0] == 0.25 for line in points)
    assert axes.get_legend_handles_labels()[1] == ["perfect", "ours"]


def test_intervals_of_bins_are_wilsons(axes):
    n = np.array([10])
    draw_reliability(axes, [(LOOK, Reliability(n, 0.5 * n, 0.3 * n))], intervals=True)
    (segment,) = axes.collections[0].get_segments()
    expected = binomtest(3, 10).proportion_ci(method="wilson")
    np.testing.assert_allclose(segment[:, 1], [expected.low, expected.high], atol=1e-4)


def test_certainty_is_pale_where_it_stands_on_few_scans_and_has_a_band_on_request(axes):
    shares, accuracy = np.array([0.25, 0.5, 0.75, 1]), np.array([1, 0.9, 0.8, 0.7])
    draw_certainty(axes, shares, accuracy, LOOK, n_scans=20, band=(accuracy - 0.1, accuracy))
    pale, strong = axes.lines
    assert pale.get_alpha() < 1
    assert pale.get_xdata().tolist() == [0.25, 0.5]
    assert strong.get_xdata().tolist() == [0.5, 0.75, 1]
    assert tuple(axes.collections[0].get_facecolor()[0][:3]) == to_rgba(LOOK.colour)[:3]


def test_methods_of_the_experiments_look_as_in_the_report():
    pytest.importorskip("torch", reason="needs the extra [train]")
    pytest.importorskip("lesioncount_reproduction", reason="needs the reproduction: pip install ./reproduction")
    from lesioncount_reproduction.experiments.look import LOOKS

    for method, key in (
        ("ours_post_hoc", "raw"),
        ("ours_fitted", "calibrated"),
        ("cc", "cc"),
        ("cc_tuned", "cc_tuned"),
    ):
        assert LOOKS[method] == Look.of(key, LOOKS[method].label)
