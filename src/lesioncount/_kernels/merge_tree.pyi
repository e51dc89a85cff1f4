import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.slab import Slab

PEAK_FIELDS: list[tuple[str, str]]
SADDLE_FIELDS: list[tuple[str, str]]

class MergeTree:
    peaks: memoryview
    def __init__(self, slab: Slab, weights: tuple[int, int, int]) -> None: ...
    def cut(self, left_out: NDArray[np.uint8]) -> tuple[memoryview, memoryview, memoryview]: ...
