"""Pairs of maps with the truth of what has changed in between: `python benchmarks/over_time.py make FOLDER`.

The ageing cohort gives scans of two sessions, and the network that ships with the package a map of each. A pair is a
file, `pair-0001.npz`, with

- `before`, `after`: probabilities of both sessions, float32, shape (z, y, x);
- `lesions_before`, `lesions_after`: the marked lesions, uint16; a lesion has the same number in both;
- `new` (at follow-up), `gone` (at baseline): those of them that have come and that are gone;
- `n_before`, `n_after`, `n_new`, `n_gone`, `n_persisting` and so on: their numbers;
- `spacing_mm`, `seed`, `patient`, and `misregistration_mm`, how far the head has moved in this pair.

`pairs.tsv` lists them. Pairs that are there are not made again, and a pair is the same whatever the number of pairs:
take the first ones to test with, and the others to learn a calibration from.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.folder.atomic import replacing, write_text
from lesioncount.folder.tables import to_tsv
from lesioncount.learning.prediction import Checkpoint, load_checkpoint, probability_maps
from lesioncount_reproduction.synthetic import AgeingCohort

# Pairs whose maps are made together.
AT_ONCE = 8


def make(folder: Path, *, n_pairs: int, seed: int, misregistration_mm: float) -> list[Path]:
    """Make the pairs that are missing in a folder, and give the paths of all."""
    cohort = AgeingCohort(n_pairs, seed, misregistration_mm=misregistration_mm)
    folder.mkdir(parents=True, exist_ok=True)
    check_settings(folder, f"seed {seed}, misregistration {misregistration_mm:g} mm, shape {cohort.lattice.shape}\n")
    trained = load_checkpoint(Path(str(files("lesioncount") / "samples" / "network.ckpt")))
    paths = [pair_path(folder, patient) for patient in range(n_pairs)]
    missing = [patient for patient, path in enumerate(paths) if not path.is_file()]
    began = time.perf_counter()
    for begin in range(0, len(missing), AT_ONCE):
        part = missing[begin : begin + AT_ONCE]
        for patient, pair in zip(part, made_pairs(cohort, trained, part), strict=True):
            save(pair_path(folder, patient), pair)
        done = begin + len(part)
        print(f"{done}/{len(missing)}, {(time.perf_counter() - began) / (2 * done):.3f} s per scan", flush=True)
    write_table(folder, paths)
    return paths


def check_settings(folder: Path, settings: str) -> None:
    """Refuse a folder of other pairs."""
    kept = folder / "settings.txt"
    if kept.is_file() and kept.read_text("utf-8") != settings:
        raise SystemExit(f"{folder} has pairs of {kept.read_text('utf-8').strip()}. Choose another folder.")
    write_text(kept, settings)


def made_pairs(cohort: AgeingCohort, trained: Checkpoint, patients: list[int]) -> Iterator[dict[str, Any]]:
    """Maps of both sessions of some patients, and the truth."""
    places = [cohort.pairs[patient] for patient in patients]
    scans = (cohort.scan(place).images for pair in places for place in pair)
    maps = probability_maps(trained, scans, batch_size=2 * AT_ONCE)
    for patient, pair in zip(patients, places, strict=True):
        changes = cohort.changes(*pair)
        yield {
            "before": next(maps),
            "after": next(maps),
            "lesions_before": changes.before,
            "lesions_after": changes.after,
            "new": changes.new,
            "gone": changes.gone,
            **changes.counts,
            "misregistration_mm": changes.misregistration_mm,
            "spacing_mm": np.array(cohort.lattice.spacing_mm),
            "seed": cohort.seed,
            "patient": patient,
        }


def pair_path(folder: Path, patient: int) -> Path:
    return folder / f"pair-{patient + 1:04d}.npz"


def save(path: Path, pair: dict[str, Any]) -> None:
    """Complete or not at all: a pair that is there is not made again."""
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **pair)


def read(path: Path) -> dict[str, NDArray[Any]]:
    """A pair, as it was made."""
    with np.load(path, allow_pickle=False) as content:
        return dict(content)


def write_table(folder: Path, paths: list[Path]) -> None:
    """All numbers of all pairs."""
    rows = []
    for path in paths:
        numbers = {name: value.item() for name, value in read(path).items() if value.ndim == 0}
        rows.append({"pair": path.name, **numbers})
    write_text(folder / "pairs.tsv", to_tsv(rows[0], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="make pairs of maps with their truth")
    maker.add_argument("folder", type=Path)
    maker.add_argument("--pairs", type=int, default=300)
    maker.add_argument("--seed", type=int, default=5)
    maker.add_argument("--misregistration", type=float, default=0.5, metavar="MM")
    given = parser.parse_args()
    paths = make(given.folder, n_pairs=given.pairs, seed=given.seed, misregistration_mm=given.misregistration)
    print(f"{len(paths)} pairs are in {given.folder}.")


if __name__ == "__main__":
    main()
