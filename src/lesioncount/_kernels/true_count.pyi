import numpy as np
from numpy.typing import NDArray

def probabilities_of_true_counts(
    p: NDArray[np.float64],
    begins: NDArray[np.intp],
    counts: NDArray[np.intp],
    extra_means: NDArray[np.float64],
    shape: float,
    probabilities: NDArray[np.float64],
    by_p: NDArray[np.float64] | None = None,
    by_mean: NDArray[np.float64] | None = None,
    by_shape: NDArray[np.float64] | None = None,
) -> None: ...
