"""The worked example of the paper: test scan 286, two candidates."""

import numpy as np
import pytest

import lesioncount as lc

EXISTENCE = [0.5189, 0.7840]
PMF = [0.1039, 0.4892, 0.4068]


@pytest.fixture
def scan_286():
    probabilities = np.full((16, 32, 32), 0.01, dtype=np.float32)
    probabilities[3:6, 4:7, 4:7] = 0.45
    probabilities[4, 5, 5] = EXISTENCE[0]
    probabilities[10:13, 20:24, 20:23] = 0.6
    probabilities[11, 21, 21] = EXISTENCE[1]
    return probabilities


def test_distribution_of_the_worked_example(scan_286):
    result = lc.count_lesions(scan_286)
    np.testing.assert_allclose(result.existence, EXISTENCE, atol=1e-7)
    np.testing.assert_allclose(result.distribution.pmf(), PMF, atol=1e-4)
    assert result.distribution.mode() == 1


def test_component_count_jumps_with_the_threshold_and_ours_does_not(scan_286):
    assert lc.connected_component_count(scan_286, threshold=0.5) == 2
    assert lc.connected_component_count(scan_286, threshold=0.6) == 1
    for threshold in (0.05, 0.1, 0.3, 0.5):
        protocol = lc.CountingProtocol(threshold=threshold)
        assert lc.count_lesions(scan_286, protocol=protocol).distribution.mode() == 1
