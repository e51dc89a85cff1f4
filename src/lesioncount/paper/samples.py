"""A trained network → what ships with the package: its weights, and a dozen of its maps with truth beside them.

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

# How many scans of each count are taken, the first ones of the test part: 4 and more are one class.
_TAKEN = {0: 3, 1: 3, 2: 2, 3: 2, 4: 2}

# The image behind the candidates: T1 with gadolinium.
_SHOWN = 1


def write_samples(checkpoint: Path, out: Path, /) -> None:
    """Write ``network.ckpt`` in half precision, and ``maps/``, ``masks/``, ``images/`` and ``counts.tsv``.

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
    for scan in _chosen(config):
        with torch.inference_mode():
            p = torch.sigmoid(network.segment(torch.from_numpy(scan.images)[None]))[0, 0].numpy()
        assert scan.lesions is not None  # noqa: S101 - for the type checker: the synthetic cohort has masks
        image = np.clip((scan.images[_SHOWN] + 3) / 8, 0, 1)
        for kind, volume in (("maps", p), ("masks", scan.lesions / 255), ("images", image)):
            with files.replacing(f"{kind}/{scan.name}.nii.gz") as temporary:
                _write(temporary, volume, scan.affine)
        rows.append({"scan": scan.name, "count": scan.count})
    files.write_text("counts.tsv", to_tsv(("scan", "count"), rows))


def _chosen(config: TrainingConfig) -> Iterator[Visit]:
    left = dict(_TAKEN)
    for scan in synthetic_cohorts(config.data)["test"]:
        group = min(scan.count or 0, max(left))
        if left[group]:
            left[group] -= 1
            yield scan


def _write(path: Path, volume: NDArray[np.floating], affine: NDArray[np.float64]) -> None:
    """As bytes, in units of 1/255."""
    stored = np.round(volume * 255).astype(np.uint8).T  # files are in the order x, y, z
    nibabel.save(nibabel.Nifti1Image(stored, affine), path)


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
