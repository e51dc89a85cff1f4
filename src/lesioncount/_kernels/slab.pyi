from typing import Self

import numpy as np
from numpy.typing import NDArray

REGION_FIELDS: list[tuple[str, str] | tuple[str, str, int]]
RUN_FIELDS: list[tuple[str, str] | tuple[str, str, int]]

class Slab:
    first_plane: int
    n_planes: int
    n_rows: int
    n_columns: int
    neighbours: int
    has_bad: bool
    has_soft: bool
    has_gray: bool
    n_keys: int
    keeps_keys: bool
    def copy(self) -> Slab: ...
    def __add__(self, other: Slab) -> Slab: ...
    def __iadd__(self, other: Slab) -> Self: ...
    def drop_inner_runs(self) -> None: ...
    def take_complete(self) -> Slab: ...
    def kept_keys(self) -> bytes: ...
    def finish(self) -> tuple[memoryview, memoryview]: ...

def slab_of(
    regions: NDArray[np.uint8],
    runs: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    *,
    n_planes: int,
    n_rows: int,
    n_columns: int,
    neighbours: int,
) -> Slab: ...
def paint(runs: NDArray[np.uint8], labels: NDArray[np.int32], out: NDArray[np.int32]) -> None: ...
