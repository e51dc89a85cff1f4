"""A small cohort of example scans, counted with the command line: ``python -m lesioncount.demo``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SHAPE = (24, 48, 40)
SPACING_MM = (3.0, 1.0, 1.0)

# Peak probability and radius in mm of the bumps in each map: lesions that a network is more or less sure of.
EXAMPLES: dict[str, tuple[tuple[float, float], ...]] = {
    "clear": ((0.99, 5.0), (0.97, 4.0), (0.98, 6.0)),
    "unsure": ((0.96, 5.0), (0.78, 4.0), (0.52, 3.5), (0.35, 3.0), (0.2, 3.0)),
    "empty": (),
    "one": ((0.93, 5.5), (0.14, 2.5)),
    "faint": ((0.45, 3.0), (0.4, 3.0), (0.38, 3.5), (0.25, 3.0)),
    "many": ((0.99, 5.0), (0.95, 4.0), (0.9, 4.5), (0.85, 3.5), (0.7, 3.5), (0.6, 3.0), (0.3, 3.0)),
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
        By name: ``clear``, ``unsure``, ``empty``, ``one``, ``faint`` and ``many``. Voxels are 3 × 1 × 1 mm.
    """
    rng = np.random.default_rng(seed)
    return {name: _bumps(rng, bumps) for name, bumps in EXAMPLES.items()}


def example_image(probabilities: NDArray[np.float32], seed: int = 2022) -> NDArray[np.float32]:
    """A picture of a head in which an example map might have been found: bright spots in noisy tissue."""
    rng = np.random.default_rng(seed)
    centre = (np.array(SHAPE) - 1) / 2
    radius = (np.abs((_grid() - centre) / (centre * 0.95)) ** 4).sum(axis=-1) ** 0.25
    tissue = 0.55 + 0.15 * np.cos(9 * radius) + rng.normal(0, 0.04, SHAPE)
    return np.where(radius < 1, tissue + 0.5 * probabilities, 0.02).astype(np.float32)


def _grid() -> NDArray[np.int64]:
    return np.stack(np.meshgrid(*map(np.arange, SHAPE), indexing="ij"), axis=-1)


def _bumps(rng: np.random.Generator, bumps: tuple[tuple[float, float], ...]) -> NDArray[np.float32]:
    grid = _grid()
    probabilities = rng.uniform(0.0, 0.02, SHAPE)
    # One bump per cell of a coarse grid: bumps must not touch, or they would be one candidate.
    cells = rng.permutation([(z, y, x) for z in (6, 18) for y in (12, 36) for x in (10, 30)])
    for (peak, radius_mm), cell in zip(bumps, cells, strict=False):
        centre = cell + rng.integers(-2, 3, size=3)
        distance = np.linalg.norm((grid - centre) * SPACING_MM, axis=-1)
        probabilities = np.maximum(probabilities, peak * np.exp(-((distance / radius_mm) ** 2)))
    return probabilities.astype(np.float32)


def write_cohort(folder: Path) -> None:
    """Write the example maps and images as NIfTI files, into ``probabilities/`` and ``images/``."""
    import nibabel

    affine = np.diag([*SPACING_MM[::-1], 1.0])
    affine[:3, 3] = [-20, -24, -36]
    for name, probabilities in example_maps().items():
        for kind, volume in (("probabilities", probabilities), ("images", example_image(probabilities))):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            image = nibabel.Nifti1Image(volume.transpose(2, 1, 0), affine)  # NIfTI axes are x, y, z
            nibabel.save(image, folder / kind / f"{name}.nii.gz")


def main(arguments: list[str] | None = None) -> int:
    """Write the cohort, count it, and say where to look."""
    from lesioncount.cli import main as command

    parser = argparse.ArgumentParser(prog="python -m lesioncount.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("out/demo"), help="folder to write to (default: out/demo)")
    folder = parser.parse_args(arguments).output
    write_cohort(folder)
    maps, images, results = (folder / name for name in ("probabilities", "images", "results"))
    line = ["count", str(maps), "-o", str(results), "--report", "--images", str(images), "--save-labels", "--overwrite"]
    print(f"Six probability maps are in {maps}, as a segmentation network might make them. Counted with:\n")
    print(f"    lesioncount {' '.join(line)}\n")
    code = command(line)
    print(f"\nLook at {results / 'report.html'} in a browser, and at {results / 'counts.tsv'}.")
    print("Then: README.md for the tour, docs/command-line.md for files, docs/guide.md for Python.")
    return code


if __name__ == "__main__":
    sys.exit(main())
