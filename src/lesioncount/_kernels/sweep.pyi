from typing import Any

from numpy.typing import NDArray

from lesioncount._kernels.slab import Slab

def sweep(
    voxels: NDArray[Any],
    mask: NDArray[Any] | None,
    *,
    keys: tuple[int, ...],
    is_signed: bool,
    neighbours: int,
    weights: tuple[int, int, int],
    first_plane: int,
    keep_keys: bool = False,
) -> Slab: ...
def vectors() -> str: ...
