"""Random maps for properties: what makes them hard is chosen by hypothesis, their voxels by a seeded generator."""

import numpy as np
from hypothesis import strategies as st

NAMES = {1: "faces", 2: "edges", 3: "corners"}


@st.composite
def maps(
    draw,
    dtypes=(np.float16, np.float32, np.float64),
    ndims=(2, 3),
    max_side=9,
    long_sides=(63, 64, 65, 127, 128, 129, 200),
):
    """A map with any share of foreground, few or many distinct values (ties!), in any memory layout."""
    ndim = draw(st.sampled_from(ndims))
    shape = [draw(st.integers(1, max_side)) for _ in range(ndim)]
    if draw(st.booleans()):  # one axis that crosses the 64 columns of a word
        shape[draw(st.integers(0, ndim - 1))] = draw(st.sampled_from(long_sides))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 1.0]))
    foreground = rng.random(shape) < density
    values = rng.uniform(0.101, 1.0, shape)
    if draw(st.booleans()):
        values = np.ceil(values * 4) / 4
    probabilities = np.where(foreground, values, rng.uniform(0, 0.09, shape)).astype(draw(st.sampled_from(dtypes)))
    return draw(layouts(probabilities))


@st.composite
def layouts(draw, array):
    """The same values in C or Fortran order, with reversed or strided axes, read-only."""
    if draw(st.booleans()):
        array = np.asfortranarray(array)
    if draw(st.booleans()):
        array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        axis = draw(st.integers(0, array.ndim - 1))
        wide = np.repeat(array, 2, axis=axis)
        array = np.take(wide, range(wide.shape[axis]), axis=axis)[(slice(None),) * axis + (slice(None, None, 2),)]
    if draw(st.booleans()):
        array = np.flip(array, draw(st.integers(0, array.ndim - 1)))
    array.flags.writeable = False
    return array


def cuts(n, rng, pieces):
    """Edges of so many pieces of 0 … n, none of them empty where that is possible."""
    inner = np.sort(rng.choice(np.arange(1, n), size=min(pieces - 1, n - 1), replace=False)) if n > 1 else []
    return [0, *map(int, inner), n]
