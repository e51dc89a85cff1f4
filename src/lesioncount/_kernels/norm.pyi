import numpy as np
from numpy.typing import NDArray

def normalise(
    given: int,
    out: int,
    half: bool,
    n_images: int,
    n_voxels: int,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    eps: float,
    slope: float,
    mean: NDArray[np.float32],
    per_deviation: NDArray[np.float32],
) -> None: ...
def gradient(
    given: int,
    above: int,
    out: int,
    half: bool,
    n_images: int,
    n_voxels: int,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    slope: float,
    mean: NDArray[np.float32],
    per_deviation: NDArray[np.float32],
    of_weight: NDArray[np.float32],
    of_bias: NDArray[np.float32],
) -> None: ...
