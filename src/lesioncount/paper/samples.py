"""A trained network → what ships with the package: its weights, and a hundred of its maps with truth beside them.

Run as ``python -m lesioncount.paper.samples NET/best.ckpt FOLDER``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import nibabel
import numpy as np
import torch
from numpy.typing import NDArray

from lesioncount.errors import ConfigError
from lesioncount.files.output import OutputFolder
from lesioncount.learning.checkpoints import write_checkpoint
from lesioncount.learning.cohort import Visit
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.networks import CountingNetwork
from lesioncount.learning.prediction import load_network
from lesioncount.learning.training_folder import kept_config
from lesioncount.paper.sources import synthetic_cohorts
from lesioncount.runs.tables import to_tsv

# Of the test part, the first patients are to learn a calibration from, and the last ones to count with it.
_KNOWN, _NEW = 40, 10

# Samples of dropout, as an ensemble of the new scans.
_MEMBERS = 3

# The image behind the candidates: T1 with gadolinium.
_SHOWN = 1

# Steps of a map and of an image. Powers of two, so that a step is the same number in any precision; as few for images
# as look the same.
_MAP_STEPS, _IMAGE_STEPS = 256, 64


def write_samples(checkpoint: Path, out: Path, /) -> None:
    """Write ``network.ckpt`` in half precision, maps with their truth, and ``counts.tsv``.

    ``probs/`` and ``masks/`` are of scans to learn a calibration from, ``new/``, ``new_masks/`` and ``images/`` of
    others, and ``member01/`` and so on are an ensemble of maps of the latter.

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
    network, _ = load_network(checkpoint)
    files = OutputFolder(out)
    with files.alone():
        _write_network(files, network, config)
        _write_maps(files, network, config)


def _write_network(files: OutputFolder, network: CountingNetwork, config: TrainingConfig) -> None:
    with files.replacing("network.ckpt") as temporary:
        write_checkpoint(
            {
                "network_options": network.options,
                "network": {name: value.half() for name, value in network.state_dict().items()},
                "shape": list(config.data.shape),
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
            image = np.clip((scan.images[_SHOWN] + 3) / 8, 0, 1)
            _write(files, f"images/{scan.name}.nii.gz", image, scan.affine, _IMAGE_STEPS)
        rows.append({"scan": scan.name, "count": scan.count})
    files.write_text("counts.tsv", to_tsv(("scan", "count"), rows))


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
    files: OutputFolder, name: str, volume: NDArray[np.generic], affine: NDArray[np.float64], steps: int
) -> None:
    """As bytes, in units of a step, which the header says: no reader needs to be told."""
    most = max(steps - 1, 1)
    stored = np.minimum(np.round(volume.astype(np.float64) * steps), most).astype(np.uint8).T  # in the order x, y, z
    image = nibabel.Nifti1Image(stored, affine)
    image.header.set_slope_inter(1 / steps, 0)
    with files.replacing(name) as temporary:
        nibabel.save(image, temporary)


def main(arguments: list[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m lesioncount.paper.samples", description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    write_samples(given.checkpoint, given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
