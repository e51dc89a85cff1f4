"""Trials that make no sense are refused when they are made."""

import numpy as np
import pytest

from lesioncount.errors import DistributionError
from lesioncount.questions import ExtraLesions, Trials

ADDS = {"count": [True, True]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probability": [0.5, 1.2]}, r"in \[0, 1\], but they span \[0\.5, 1\.2\]"),
        ({"probability": [0.5, np.nan]}, r"in \[0, 1\]"),
        ({"probability": 0.5}, r"for each outcome, but their shape is \(\)"),
        ({"probability": np.zeros((1, 1, 2))}, r"shape is \(1, 1, 2\)"),
        ({"adds": {"count": [True]}}, r"Expected 2 booleans for 'count', .* but got bool of shape \(1,\)"),
        ({"adds": {"count": [1, 2]}}, r"but got int64 of shape \(2,\)"),
        ({"weights": [0.5, 0.5]}, "Expected a weight of at least 0 for each of 1 nodes"),
        ({"weights": [-1.0]}, "Expected a weight"),
        ({"weights": [0.0]}, "Expected a weight"),
        ({"trial": [0]}, "Expected the number of a trial for each of 2 outcomes"),
        ({"trial": [0.0, 0.5]}, "Expected the number of a trial"),
        ({"probability": [0.5, 0.6], "trial": [7, 7]}, r"but those of trial 7 have 1\.1"),
    ],
)
def test_trials_that_make_no_sense_are_refused(options, message):
    with pytest.raises(DistributionError, match=message):
        Trials(**{"probability": [0.5, 0.25], "adds": ADDS} | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": -1.0}, "mean numbers of extra lesions of at least 0"),
        ({"mean": np.inf}, "mean numbers of extra lesions of at least 0"),
        ({"shape": 0.0}, "Expected a shape above 0"),
        ({"shape": np.nan}, "Expected a shape above 0"),
        ({"share": [0.6, 0.6]}, r"sum is at most 1, but it is 1\.2"),
        ({"share": [[0.6, 0.4]]}, "their shape"),
        ({"adds": {"count": [True]}}, "Expected 2 booleans"),
    ],
)
def test_extra_lesions_that_make_no_sense_are_refused(options, message):
    with pytest.raises(DistributionError, match=message):
        ExtraLesions(**{"mean": 1.0, "share": [0.5, 0.5], "adds": ADDS} | options)


def test_extra_lesions_fit_the_trials_they_come_with():
    extra = ExtraLesions(mean=[1.0, 2.0], share=[1.0], adds={"count": [True]})
    with pytest.raises(DistributionError, match="for each of 3 nodes, but got 2"):
        Trials(probability=np.zeros((3, 2)), adds=ADDS, extra=extra)
    with pytest.raises(DistributionError, match="add to new, but they add to count"):
        Trials(probability=np.zeros((2, 1)), adds={"new": [True]}, extra=extra)


def test_what_is_given_is_not_changed_and_may_be_read_only():
    given = np.array([0.5, 1 + 1e-7])
    given.flags.writeable = False
    trials = Trials(probability=given, adds=ADDS, trial=None)
    assert trials.probability.tolist() == [[0.5, 1.0]]
    assert trials.weights.tolist() == [1.0]
    assert given[1] > 1


def test_no_candidates_are_trials_too():
    trials = Trials(probability=[], adds={"count": []}, trial=[])
    assert trials.probability.shape == (1, 0)
