"""The voxels of candidates, listed from runs: those of the label map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import maps

from lesioncount.candidates import find_candidates
from lesioncount.errors import RunsNotKeptError
from lesioncount.streaming import StreamingCounter


@given(maps(), st.sampled_from(["regions", "peaks"]), st.sampled_from([1, 3]))
def test_listed_voxels_are_those_of_the_label_map(probabilities, candidates, min_voxels):
    found = find_candidates(probabilities, candidates=candidates, min_voxels=min_voxels, warn=False)
    rows, index = found.voxels()
    labels = found.label_map()
    assert (np.diff(rows) >= 0).all()
    np.testing.assert_array_equal(np.bincount(rows, minlength=len(found)), found.n_voxels)
    np.testing.assert_array_equal(labels[tuple(index.T)], rows + 1)
    assert len(np.unique(index, axis=0)) == np.count_nonzero(labels)


def test_without_runs_the_message_says_how_to_keep_them():
    counter = StreamingCounter((4, 4), np.float32)
    counter.push(np.full((3, 4, 4), 0.3, np.float32))
    with pytest.raises(RunsNotKeptError, match=r"voxels cannot be listed.*keep_runs=True"):
        counter.result().candidates.voxels()
