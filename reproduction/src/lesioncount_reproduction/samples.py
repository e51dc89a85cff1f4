"""A trained network → what ships with the package: its weights, and a hundred of its maps with truth beside them.

Run as ``python -m lesioncount_reproduction.samples NET/best.ckpt FOLDER``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import torch
from numpy.typing import NDArray

from lesioncount.errors import ConfigError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.tables import to_tsv
from lesioncount.learning.checkpoints import write_checkpoint
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.networks import CountingNetwork
from lesioncount.learning.prediction import Checkpoint, load_checkpoint
from lesioncount.learning.training_folder import kept_config
from lesioncount_reproduction.cohort import Visit
from lesioncount_reproduction.sources import synthetic_cohorts
from lesioncount_reproduction.synthetic import AgeingCohort, GadCohort
from lesioncount_reproduction.synthetic.areas import AREAS

# Of the test part, the first patients are to learn a calibration from, and the last ones to count with it.
_KNOWN, _NEW = 40, 10

# Samples of dropout, as an ensemble of the new scans.
_MEMBERS = 3

# Patients who were scanned twice, and the seed of their cohort, of which no network has seen anything.
_AGED, _AGEING_SEED = 12, 2026
_FIRST_AGED = 200
_CHANGES = ("n_new", "n_gone", "n_persisting")

# The image behind the candidates: T1 with gadolinium.
_SHOWN = 1

# Steps of a map and of an image. Powers of two, so that a step is the same number in any precision; as few for images
# as look the same.
_MAP_STEPS, _IMAGE_STEPS = 256, 64


def write_samples(checkpoint: Path, out: Path, /) -> None:
    """Write ``network.ckpt`` in half precision, maps with their truth, and ``counts.tsv``.

    ``probs/`` and ``masks/`` are of scans to learn a calibration from, ``new/``, ``new_masks/`` and ``images/`` of
    others, and ``member01/`` and so on are an ensemble of maps of the latter. ``baseline/`` and ``followup/`` are of
    patients who were scanned twice, with what has changed in ``changes.tsv``. ``atlas.nii.gz`` and ``names.tsv`` have
    the areas of an average brain, ``participants.tsv`` an arm for each patient, drawn by lot.

    Parameters
    ----------
    checkpoint : Path
        Of a training on the synthetic cohort, with its ``config.json`` beside it.
    out : Path
        Folder to write to, in which only files of earlier samples are replaced.
    """
    config = kept_config(checkpoint.parent)
    if config is None:
        raise ConfigError(f"Expected config.json of the training beside {checkpoint}, but there is none.")
    trained = load_checkpoint(checkpoint)
    network, files = trained.network, OutputFolder(out)
    with files.alone():
        _write_network(files, trained)
        _write_maps(files, network, config)
        write_more(files, network, config)


def _write_network(files: OutputFolder, trained: Checkpoint) -> None:
    network = trained.network
    with files.replacing("network.ckpt") as temporary:
        write_checkpoint(
            {
                "network_options": network.options,
                "network": {name: value.half() for name, value in network.state_dict().items()},
                "shape": list(trained.shape),
                "expects": trained.expected.to_dict(),
            },
            temporary,
        )


def _write_maps(files: OutputFolder, network: CountingNetwork, config: TrainingConfig) -> None:
    rows = []
    for scan, is_new in _chosen(config):
        images = torch.from_numpy(scan.images)[None]
        assert scan.lesions is not None  # noqa: S101 - for the type checker: the synthetic cohort has masks
        volumes = {"new" if is_new else "probs": _probabilities(network, images)}
        if is_new:
            for number in range(_MEMBERS):
                torch.manual_seed(number)
                with network.mc_dropout():
                    volumes[f"member{number + 1:02}"] = _probabilities(network, images)
        for folder, volume in volumes.items():
            _write(files, f"{folder}/{scan.name}.nii.gz", volume, scan.affine, _MAP_STEPS)
        _write(files, f"{'new_' if is_new else ''}masks/{scan.name}.nii.gz", scan.lesions, scan.affine, 1)
        if is_new:
            _write_image(files, f"images/{scan.name}.nii.gz", scan)
        rows.append({"scan": scan.name, "count": scan.count})
    files.write_text("counts.tsv", to_tsv(("scan", "count"), rows))


def write_more(files: OutputFolder, network: CountingNetwork, config: TrainingConfig) -> None:
    """Write what goes beyond single scans: patients at two times, areas of the brain, arms of a trial."""
    _write_changes(files, network, config.data.shape)
    cohort = synthetic_cohorts(config.data)["test"]
    _write_atlas(files, cohort)
    patients = sorted({visit.patient for visit in cohort.visits})
    arms = np.random.default_rng(_AGEING_SEED).permutation(np.arange(len(patients)) % 2)
    rows = [
        {"participant_id": f"sub-{patient + 1:03d}", "arm": ("placebo", "treated")[arm]}
        for patient, arm in zip(patients, arms, strict=True)
    ]
    files.write_text("participants.tsv", to_tsv(("participant_id", "arm"), rows))


def _write_changes(files: OutputFolder, network: CountingNetwork, shape: tuple[int, ...]) -> None:
    z, y, x = shape
    cohort = AgeingCohort(_AGED, _AGEING_SEED, (z, y, x))
    rows = []
    for before, after in cohort.pairs:
        for place, folder in ((before, "baseline"), (after, "followup")):
            scan = cohort.scan(place)
            scan = replace(scan, patient=f"{_FIRST_AGED + int(scan.patient)}")  # others are in the folders above
            volume = _probabilities(network, torch.from_numpy(scan.images)[None])
            _write(files, f"{folder}/{scan.name}.nii.gz", volume, scan.affine, _MAP_STEPS)
        counts = cohort.changes(before, after).counts
        rows.append({"scan": f"sub-{scan.patient}", **{name: counts[name] for name in _CHANGES}})
    files.write_text("changes.tsv", to_tsv(("scan", *_CHANGES), rows))


def _write_atlas(files: OutputFolder, cohort: GadCohort) -> None:
    """The area that most patients have in each voxel."""
    first = {visit.patient: visit for visit in cohort.visits}
    votes = np.stack([[cohort.areas(visit) == area for area in (0, *AREAS)] for visit in first.values()]).sum(axis=0)
    _write(files, "atlas.nii.gz", votes.argmax(axis=0).astype(np.uint8), cohort.scan(0).affine, 1, most=len(AREAS))
    rows = [{"index": index, "name": name} for index, name in AREAS.items()]
    files.write_text("names.tsv", to_tsv(("index", "name"), rows))


def _write_image(files: OutputFolder, name: str, scan: Visit) -> None:
    _write(files, name, np.clip((scan.images[_SHOWN] + 3) / 8, 0, 1), scan.affine, _IMAGE_STEPS)


def _probabilities(network: CountingNetwork, images: torch.Tensor) -> NDArray[np.float32]:
    with torch.inference_mode():
        return np.asarray(torch.sigmoid(network.segment(images))[0, 0].numpy(), dtype=np.float32)


def _chosen(config: TrainingConfig) -> Iterator[tuple[Visit, bool]]:
    """All scans of the patients that are shown, and whether each is a new one."""
    cohort = synthetic_cohorts(config.data)["test"]
    for place, visit in enumerate(cohort.visits):
        number = visit.patient + 1  # as in its name
        is_new = number > cohort.n_patients - _NEW
        if is_new or number <= _KNOWN:
            yield cohort.scan(place), is_new


def _write(
    files: OutputFolder,
    name: str,
    volume: NDArray[np.generic],
    affine: NDArray[np.float64],
    steps: int,
    *,
    most: int | None = None,
) -> None:
    """As bytes, in units of a step, which the header says: no reader needs to be told."""
    most = max(steps - 1, 1) if most is None else most
    stored = np.minimum(np.round(volume.astype(np.float64) * steps), most).astype(np.uint8).T  # in the order x, y, z
    image = nibabel.Nifti1Image(stored, affine)
    image.header.set_slope_inter(1 / steps, 0)
    with files.replacing(name) as temporary:
        nibabel.save(image, temporary)


def main(arguments: list[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m lesioncount_reproduction.samples", description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    write_samples(given.checkpoint, given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
