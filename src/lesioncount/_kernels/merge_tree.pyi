from lesioncount._kernels.slab import Slab

PEAK_FIELDS: list[tuple[str, str]]

class MergeTree:
    peaks: memoryview
    def __init__(self, slab: Slab, weights: tuple[int, int, int]) -> None: ...
