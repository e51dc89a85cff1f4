import numpy as np
from numpy.typing import NDArray

def forward(logits: NDArray[np.float64], steps: NDArray[np.float64]) -> None: ...
def backward(
    logits: NDArray[np.float64],
    steps: NDArray[np.float64],
    above: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> None: ...
