"""Three embedded example maps, counted: ``python -m lesioncount.demo``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lesioncount.baselines import connected_component_count
from lesioncount.counting import LesionCount, count_lesions

SHAPE = (24, 48, 40)
SPACING_MM = (3.0, 1.0, 1.0)

# Peak probability and radius in mm of the bumps in each map: lesions that a network is more or less sure of.
EXAMPLES: dict[str, tuple[tuple[float, float], ...]] = {
    "clear": ((0.99, 5.0), (0.97, 4.0), (0.98, 6.0)),
    "unsure": ((0.96, 5.0), (0.78, 4.0), (0.52, 3.5), (0.35, 3.0), (0.2, 3.0)),
    "empty": (),
}


def example_maps(seed: int = 2022) -> dict[str, NDArray[np.float32]]:
    """Probability maps like those of a segmentation network, the same for the same seed.

    Parameters
    ----------
    seed : int
        Of the positions and of the faint background.

    Returns
    -------
    dict of str to ndarray of float32, shape (24, 48, 40)
        By name: ``clear``, ``unsure`` and ``empty``. Voxels are 3 × 1 × 1 mm.
    """
    rng = np.random.default_rng(seed)
    return {name: _bumps(rng, bumps) for name, bumps in EXAMPLES.items()}


def _bumps(rng: np.random.Generator, bumps: tuple[tuple[float, float], ...]) -> NDArray[np.float32]:
    grid = np.stack(np.meshgrid(*map(np.arange, SHAPE), indexing="ij"), axis=-1)
    probabilities = rng.uniform(0.0, 0.02, SHAPE)
    # One bump per cell of a coarse grid: bumps must not touch, or they would be one candidate.
    cells = rng.permutation([(z, y, x) for z in (6, 18) for y in (12, 36) for x in (10, 30)])
    for (peak, radius_mm), cell in zip(bumps, cells, strict=False):
        centre = cell + rng.integers(-2, 3, size=3)
        distance = np.linalg.norm((grid - centre) * SPACING_MM, axis=-1)
        probabilities = np.maximum(probabilities, peak * np.exp(-((distance / radius_mm) ** 2)))
    return probabilities.astype(np.float32)


def _line(name: str, *columns: object) -> str:
    widths = (12, 10, 6, 6, 15, 8, 7, 7, 7, 7)
    return f"{name:<8}" + "".join(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True))


def _row(name: str, result: LesionCount, components: int) -> str:
    count = result.distribution
    low, high = count.interval(0.9)
    bins = [f"{p:.3f}" for p in count.binned(4)]
    return _line(
        name, len(result.candidates), components, count.mode(), f"{count.mean():.2f}", f"{low} to {high}", *bins
    )


def main() -> None:
    """Count the examples and print a table."""
    maps = example_maps()
    print(f"Three probability maps of {' × '.join(map(str, SHAPE))} voxels, as a segmentation network might make them.")
    print()
    print(
        _line("map", "candidates", "CC > 0.5", "mode", "mean", "90 % interval", "P(0)", "P(1)", "P(2)", "P(3)", "P(4+)")
    )
    results = {name: count_lesions(probabilities, spacing_mm=SPACING_MM) for name, probabilities in maps.items()}
    for name, result in results.items():
        print(_row(name, result, connected_component_count(maps[name])))
    print()
    print("The map that a single number says least about, in full: print(count_lesions(...))")
    print()
    print(results["unsure"])
    print()
    print("Where to look next: README.md for the five-minute tour, docs/guide.md for every option,")
    print("src/lesioncount/demo.py for the code that made this.")


if __name__ == "__main__":
    main()
