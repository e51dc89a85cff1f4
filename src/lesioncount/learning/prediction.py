"""A trained network and images → probability maps in files, which can be counted like any others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import cast

import nibabel
import numpy as np
import torch
from monai.inferers import SlidingWindowInferer
from numpy.typing import NDArray
from torch import Tensor

from lesioncount.errors import ConfigError, MapFileError
from lesioncount.files.atomic import replacing
from lesioncount.learning.folder import read_cohort
from lesioncount.learning.methods import current_method
from lesioncount.learning.networks import CountingNetwork, counting_network

# Windows overlap by half. Their middle counts more than their border, where a network sees less context.
_OVERLAP = 0.5


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained network, and what it expects of images.

    Attributes
    ----------
    network : CountingNetwork
        Ready to predict.
    shape : tuple of int
        Shape of the images it was trained on.
    normalize : bool
        Whether images must have mean 0 and variance 1 inside the brain. Version 0.1 did not store this, and used the
        images of a folder as they were.
    """

    network: CountingNetwork
    shape: tuple[int, ...]
    normalize: bool


def load_checkpoint(checkpoint: Path) -> Checkpoint:
    """Load the checkpoint of a training. Only numbers and plain options are loaded; no code from the file is run."""
    try:
        content = torch.load(checkpoint, map_location="cpu", weights_only=True)
        options, shape = dict(content["network_options"]), tuple(content["shape"])
        weights, normalize = content["network"], bool(content.get("normalize", False))
        options["method"] = current_method(options["method"], warn=False)
    except FileNotFoundError:
        raise MapFileError(f"There is no checkpoint {checkpoint}.") from None
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, EOFError, UnpicklingError):
        # Not torch's own message, which advises loading such files without this safeguard: they may run code.
        raise MapFileError(f"{checkpoint} is no checkpoint of lesioncount train.") from None
    network = counting_network(**options)
    network.load_state_dict(weights)
    return Checkpoint(network.eval(), shape, normalize)


def load_network(checkpoint: Path) -> tuple[CountingNetwork, tuple[int, ...]]:
    """The network of a checkpoint, ready to predict, and the shape of the images it was trained on."""
    loaded = load_checkpoint(checkpoint)
    return loaded.network, loaded.shape


def predict(
    checkpoint: Path,
    images: Path,
    out: Path,
    /,
    *,
    mc_dropout: int = 0,
    tta: bool = False,
    seed: int = 0,
    overwrite: bool = False,
) -> list[Path]:
    """Write a probability map for each scan of a BIDS-like folder.

    Parameters
    ----------
    checkpoint : Path
        ``best.ckpt`` or ``last.ckpt`` of a training.
    images : Path
        BIDS-like folder, laid out as by `lesioncount synthesize`, with the sequences that the network was trained on.
        Images are normalised if those of the training were.
    out : Path
        Folder for the maps. Each member of an ensemble gets a folder of its own in it.
    mc_dropout : int, default 0
        If given, write this many members instead of one map, each with other units dropped.
    tta : bool, default False
        Write a member for each flip of the image.
    seed : int, default 0
        Seed of the dropout.
    overwrite : bool, default False
        Overwrite existing maps.

    Returns
    -------
    list of Path
        The maps, or the folders of members.
    """
    if mc_dropout and tta:
        raise ConfigError("Expected either --mc-dropout or --tta, and not both.")
    if mc_dropout == 1 or mc_dropout < 0:
        raise ConfigError(f"Expected at least 2 members, but got --mc-dropout {mc_dropout}.")
    if not overwrite and out.is_dir() and any(out.iterdir()):
        raise ConfigError(f"{out} is not empty. Choose another folder, or overwrite it (--overwrite).")
    for old in out.glob("member[0-9][0-9]/*.nii.gz"):
        old.unlink()  # of an earlier prediction, which may have had more members
    trained = load_checkpoint(checkpoint)
    members = _members(trained.network, trained.shape, mc_dropout, tta, seed)
    cohort = read_cohort(images, normalize=trained.normalize)
    folders = [out] if len(members) == 1 else [out / f"member{i + 1:02}" for i in range(len(members))]
    written = []
    for scan in cohort:
        given = torch.from_numpy(scan.images)[None]
        for folder, member in zip(folders, members, strict=True):
            path = folder / f"{scan.name}.nii.gz"
            _write(path, member(given), scan.affine)
            written.append(path)
    return written if len(members) == 1 else folders


@dataclass(frozen=True, eq=False)
class _Member:
    """One way to predict: plainly, with some units dropped, or from a flipped image."""

    network: CountingNetwork
    windows: SlidingWindowInferer
    flip: tuple[int, ...] = ()
    dropout_seed: int | None = None

    def __call__(self, images: Tensor) -> NDArray[np.float32]:
        """Probabilities of one image (1, channels, *spatial)."""
        if self.dropout_seed is not None:
            torch.manual_seed(self.dropout_seed)
        dropped = nullcontext() if self.dropout_seed is None else self.network.mc_dropout()
        with torch.inference_mode(), dropped:
            logits = cast("Tensor", self.windows(images.flip(self.flip), self.network.segment))
        return np.asarray(torch.sigmoid(logits.flip(self.flip))[0, 0].numpy(), dtype=np.float32)


def _members(
    network: CountingNetwork, shape: tuple[int, ...], mc_dropout: int, tta: bool, seed: int
) -> Sequence[_Member]:
    windows = SlidingWindowInferer(shape, overlap=_OVERLAP, mode="gaussian")
    if mc_dropout:
        return [_Member(network, windows, dropout_seed=seed + i) for i in range(mc_dropout)]
    if tta:
        return [_Member(network, windows, flip=axes) for axes in _flips(len(shape))]
    return [_Member(network, windows)]


def _flips(n_axes: int) -> Iterator[tuple[int, ...]]:
    """All ways to flip an image, as axes of a batch, beginning with none."""
    for chosen in range(1 << n_axes):
        yield tuple(axis + 2 for axis in range(n_axes) if chosen >> axis & 1)


def _write(path: Path, probabilities: NDArray[np.float32], affine: NDArray[np.float64]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        nibabel.save(nibabel.Nifti1Image(probabilities.T, affine), temporary)  # files are in the order x, y, z
