import numpy as np
from numpy.typing import NDArray

def join_regions(
    table: NDArray[np.uint8],
    one: NDArray[np.int32],
    other: NDArray[np.int32],
    number: NDArray[np.int32],
) -> int: ...
