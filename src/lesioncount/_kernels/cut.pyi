import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.merge_tree import MergeTree

SADDLE_FIELDS: list[tuple[str, str]]

def cut_at_saddles(merge_tree: MergeTree, left_out: NDArray[np.uint8]) -> tuple[memoryview, memoryview, memoryview]: ...
