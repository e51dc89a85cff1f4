import numpy as np
from numpy.typing import NDArray

def join_small(
    table: NDArray[np.uint8],
    into: NDArray[np.int32],
    side: NDArray[np.int32],
    turns: NDArray[np.int32],
    n_voxels: int,
    length_mm: float,
    spacing_mm: tuple[float, float, float],
    row_of: NDArray[np.int32],
) -> None: ...
