"""Maps of a real network, counted and compared with the truth on the command line: ``python -m lesioncount.demo``."""

from __future__ import annotations

import argparse
import shutil
import sys
from importlib.resources import files
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


def main(arguments: list[str] | None = None) -> int:
    """Count the maps of a network, compare them with the truth, and say where to look."""
    from lesioncount.cli import main as command

    parser = argparse.ArgumentParser(prog="python -m lesioncount.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("out/demo"), help="folder to write to (default: out/demo)")
    folder = parser.parse_args(arguments).output
    shutil.copytree(str(files("lesioncount") / "samples"), folder / "samples", dirs_exist_ok=True)
    maps, images, masks = (folder / "samples" / name for name in ("maps", "images", "masks"))
    results, evaluation = folder / "results", folder / "evaluation"
    print(f"In {maps} are twelve probability maps that a network has made of synthetic scans (bytes, 1/255).\n")
    code = 0
    for line in (
        ["count", maps, "--scale", "1/255", "-o", results, "--report", "--images", images, "--save-labels"],
        ["evaluate", results, "--truth", masks, "-o", evaluation],
    ):
        print(f"$ lesioncount {' '.join(map(str, line))}\n")
        code = max(code, command([*map(str, line), "--overwrite"]))
        print()
    _print_truth(folder / "samples" / "counts.tsv", results)
    print(f"\nLook at {results / 'report.html'} and {evaluation / 'evaluation.html'} in a browser.")
    print("Then: README.md for the tour, docs/command-line.md for files, docs/guide.md for Python.")
    return code


def _print_truth(table: Path, out: Path) -> None:
    """How close the counts came."""
    from lesioncount.runs import read_results

    results = read_results(out)
    print(f"{'scan':<18}{'truth':>6}{'most likely':>13}{'90 % interval':>16}{'P(truth)':>10}{'CC > 0.5':>10}")
    for line in table.read_text("utf-8").splitlines()[1:]:
        name, truth = line.split("\t")
        record = results.record(name)
        count, usual = record.summary.counted.raw, record.summary.counted.candidates.cc_count
        p = record.pmf[int(truth)] if int(truth) < len(record.pmf) else 0.0
        interval = f"{count.interval90_low} to {count.interval90_high}"
        print(f"{name:<18}{truth:>6}{count.count_mode:>13}{interval:>16}{p:>10.2f}{usual:>10}")


if __name__ == "__main__":
    sys.exit(main())
