"""Maps of a real network, counted and compared with the truth on the command line: ``python -m lesioncount.demo``."""

from __future__ import annotations

import argparse
import filecmp
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.folder.output import OutputFolder

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

# What is done with the maps, by those who are in their folder.
_COMMANDS = (
    ("count", "probs/", "-o", "results/probs/", "--report"),
    ("evaluate", "results/probs/", "--truth", "masks/", "-o", "results/evaluation/"),
    ("calibrate", "results/probs/", "--truth-counts", "counts.tsv", "-o", "results/calibration.json"),
    (
        *("count", "new/", "-o", "results/new/", "--calibration", "results/calibration.json"),
        *("--interval", "conformal", "--report", "--images", "images/"),
    ),
    ("compare", "baseline/", "followup/", "-o", "results/changes/", "--report"),
    ("count", "probs/", "-o", "results/peaks/", "--protocol", "peaks"),
)
_PAGES = (
    "results/probs/report.html",
    "results/evaluation/evaluation.html",
    "results/new/report.html",
    "results/changes/changes.html",
)


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
    parser.add_argument("--only-files", action="store_true", help="copy maps, masks and counts, and count nothing")
    options = parser.parse_args(arguments)
    folder: Path = options.output
    write_samples(folder)
    n_known, n_new = (len(list((folder / name).glob("*.nii.gz"))) for name in ("probs", "new"))
    print(f"In {folder} are probability maps that a network has made of synthetic scans: probs/, {n_known} maps whose")
    print(
        f"truth is in masks/ and counts.tsv, and new/, {n_new} maps of other patients; baseline/ and followup/ are of"
    )
    print("patients who were scanned twice.\n")
    if options.only_files:
        return 0
    code = 0
    for line in _COMMANDS:
        print(f"$ lesioncount {' '.join(line)}\n")
        code = max(code, command([*(_placed(part, folder) for part in line), "--overwrite"]))
        print()
    truth = _truth(folder / "counts.tsv")
    _print_truth(truth, folder / "results" / "new")
    print(f"\n{_what_no_threshold_says(truth, folder / 'results')}")
    print(f"\nLook at these pages in a browser: {', '.join(str(folder / page) for page in _PAGES)}.")
    print(f"Every command of README.md and docs/trust.md can be followed here: cd {folder}")
    return code


def write_samples(folder: str | Path, /) -> None:
    """Copy the maps that ship with the package, with their masks, images and counts.

    Parameters
    ----------
    folder : path
        Made if it is not there. Nothing in it is replaced but copies of the same files.
    """
    source, copies = Path(str(files("lesioncount") / "samples")), OutputFolder(folder)
    names = [path.relative_to(source).as_posix() for path in sorted(source.rglob("*")) if path.is_file()]
    with copies.alone():
        copies.check(name for name in names if not _is_same(source / name, copies.path / name))
        for name in names:
            if not _is_same(source / name, copies.path / name):
                with copies.replacing(name) as temporary:
                    shutil.copyfile(source / name, temporary)


def _is_same(file: Path, copy: Path) -> bool:
    return copy.is_file() and filecmp.cmp(file, copy, shallow=False)


def _placed(part: str, folder: Path) -> str:
    """An argument as it is for those who are in the folder, for those who are not."""
    return str(folder / part) if part.endswith(("/", ".json", ".tsv")) else part


def _truth(table: Path) -> dict[str, int]:
    """The true counts, by the names of scans."""
    return {
        name: int(count) for name, count in (line.split("\t") for line in table.read_text("utf-8").splitlines()[1:])
    }


def _print_truth(truth: Mapping[str, int], out: Path) -> None:
    """How close the counts came."""
    from lesioncount.runs import read_results

    results = read_results(out)
    print(f"{'scan':<18}{'truth':>6}{'most likely':>13}{'90 % interval':>16}{'P(truth)':>10}{'CC > 0.5':>10}")
    for record in map(results.record, (name for name in truth if name in {scan.name for scan in results.counted})):
        count, usual, true = record.counted.raw, record.counted.candidates.cc_count, truth[record.name]
        p = record.pmf[true] if true < len(record.pmf) else 0.0
        interval = f"{count.interval90_low} to {count.interval90_high}"
        print(f"{record.name:<18}{true:>6}{count.count_mode:>13}{interval:>16}{p:>10.2f}{usual:>10}")


def _what_no_threshold_says(truth: Mapping[str, int], out: Path) -> str:
    """Which counts are right, told before the truth is known; and what calibration and peaks change."""
    from lesioncount.runs import read_results
    from lesioncount.trust.fitting import CalibrationFit

    counts = {
        one: [(scan.counted.raw, truth[scan.name]) for scan in read_results(out / one).counted]
        for one in ("probs", "peaks")
    }
    sure, doubt = (
        [
            count.count_median == true
            for count, true in counts["probs"]
            if (count.interval90_low == count.interval90_high) == is_sure
        ]
        for is_sure in (True, False)
    )
    error = {one: np.mean([abs(count.count_median - true) for count, true in of]) for one, of in counts.items()}
    held_out = CalibrationFit.load(out / "calibration.json").held_out
    corrected = "" if held_out is None else f", calibrated {held_out.after['mae'].value:.2f} (held out)"
    return (
        f"Of {len(sure) + len(doubt)} scans {len(sure)} have a certain count: {_share(sure)} right. {len(doubt)} are "
        f"doubtful: {_share(doubt)} right. Look at those first. No threshold tells you which they are.\n"
        f"The counts are off by {error['probs']:.2f} lesions on average{corrected}, and by {error['peaks']:.2f} if "
        "each peak is counted. Calibration helps where a network is too sure, peaks where lesions touch."
    )


def _share(right: Sequence[bool]) -> str:
    return "all of them are" if all(right) else f"{100 * np.mean(right):.0f} % are"


if __name__ == "__main__":
    sys.exit(main())
