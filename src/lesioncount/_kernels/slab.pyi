from typing import Self

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
    def copy(self) -> Slab: ...
    def __add__(self, other: Slab) -> Slab: ...
    def __iadd__(self, other: Slab) -> Self: ...
    def drop_inner_runs(self) -> None: ...
    def finish(self) -> tuple[memoryview, memoryview]: ...
