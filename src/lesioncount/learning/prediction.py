"""A trained network and images → probability maps in files, which can be counted like any others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lesioncount.errors import ConfigError, MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.learning.checkpoints import read_checkpoint
from lesioncount.learning.expected import Expected, prepared
from lesioncount.learning.networks import CountingNetwork, counting_network
from lesioncount.learning.pictures import Picture, resized

if TYPE_CHECKING:
    from monai.inferers import SlidingWindowInferer
from lesioncount.files import nifti
from lesioncount.files.geometry import VoxelGrid
from lesioncount.learning.picture_files import find_pictures
from lesioncount.learning.pictures import open_picture, picture_ending

# Windows overlap by half. Their middle counts more than their border, where a network sees less context.
_OVERLAP = 0.5

# Voxels of a window, far above what any network is trained on: images are padded to it.
_LARGEST_WINDOW = 1 << 28

_MOST_MEMBERS = 1000
_MEMBER = re.compile(r"member[0-9]{2,4}")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained network, and what it expects of images.

    Attributes
    ----------
    network : CountingNetwork
        Ready to predict.
    shape : tuple of int
        Shape of the images it was trained on.
    expected : Expected
        What images must be like, and what is done to their values.
    """

    network: CountingNetwork
    shape: tuple[int, ...]
    expected: Expected


def load_checkpoint(checkpoint: Path) -> Checkpoint:
    """Load the checkpoint of a training.

    Only numbers and plain options are loaded; no code from the file is run. A file that is not as it was written is a
    `MapFileError`: see `read_checkpoint`.
    """
    content = read_checkpoint(checkpoint)
    try:
        options, shape = dict(content["network_options"]), _checked_shape(content["shape"])
        weights = dict(content["network"])
        with torch.device("meta"):  # takes no memory: whatever the options ask for, the weights must fit first
            _check_fit(counting_network(**options), weights)
        network = counting_network(**options)
        network.load_state_dict(weights)
        expected = Expected.from_checkpoint(content, shape, network.options["in_channels"])
    except Exception:  # noqa: BLE001 - options and weights of a foreign file may be anything
        raise MapFileError(
            f"{checkpoint} is no checkpoint of lesioncount train: its options and its weights make no network. "
            "Expected best.ckpt or last.ckpt of a training."
        ) from None
    return Checkpoint(network.eval(), shape, expected)


def _checked_shape(given: Any) -> tuple[int, ...]:
    shape = tuple(int(n) for n in given)
    if len(shape) not in (2, 3) or min(shape) < 1 or math.prod(shape) > _LARGEST_WINDOW:
        raise ValueError(f"no shape of an image: {shape}")
    return shape


def _check_fit(network: CountingNetwork, weights: dict[str, Tensor]) -> None:
    expected = {name: value.shape for name, value in network.state_dict().items()}
    if expected != {name: value.shape for name, value in weights.items()}:
        raise ValueError("weights that do not fit")


def predict(
    checkpoint: Path,
    images: str | Path | Sequence[str | Path],
    out: Path,
    /,
    *,
    mc_dropout: int = 0,
    tta: bool = False,
    seed: int = 0,
    overwrite: bool = False,
) -> list[Path]:
    """Write a probability map for each picture or scan.

    Parameters
    ----------
    checkpoint : Path
        ``best.ckpt`` or ``last.ckpt`` of a training.
    images : path or sequence of path
        Folders, files, glob patterns, or lists: text files with a path in each line. Where each channel is a file of
        its own, their names end as in the training. Values are treated as those of the training were.
    out : Path
        Folder for the maps. Each member of an ensemble gets a folder of its own in it.
    mc_dropout : int, default 0
        If given, write this many members instead of one map, each with other units dropped.
    tta : bool, default False
        Write a member for each flip of the image.
    seed : int, default 0
        Seed of the dropout.
    overwrite : bool, default False
        Replace maps of an earlier prediction, when all new ones are made. Other files in the folder are never touched.

    Returns
    -------
    list of Path
        The maps, or the folders of members. Maps of NIfTI files are NIfTI files on the same grid, others are ``.npy``.
    """
    _check_options(mc_dropout, tta)
    if not overwrite and _holds_files(out):
        raise ConfigError(f"{out} is not empty. Choose another folder, or overwrite it (--overwrite).")
    trained = load_checkpoint(checkpoint)
    inputs = [images] if isinstance(images, str | Path) else list(images)
    pictures = images_to_predict(inputs, trained.expected, checkpoint, leave_out=out)
    members = _members(trained.network, trained.shape, mc_dropout, tta, seed)
    folders = [""] if len(members) == 1 else [f"member{i + 1:02}/" for i in range(len(members))]
    files = OutputFolder(out)
    with files.alone():
        written = _write_all(files, pictures, trained, dict(zip(folders, members, strict=True)))
        _remove_other_members(files, written)
    return [out / name for name in (written if len(members) == 1 else folders)]


def probability_maps(
    trained: Checkpoint, images: Iterable[NDArray[np.float32]], /, *, batch_size: int = 8
) -> Iterator[NDArray[np.float32]]:
    """Probability maps of images in memory, several at once: what `predict` writes for each of them alone.

    Parameters
    ----------
    trained : Checkpoint
        Of `load_checkpoint`.
    images : iterable of ndarray, shape (channels, *spatial)
        All of one shape, with values as the network expects them. They are asked for as they are needed.
    batch_size : int, default 8
        Images that the network sees at once. More need more memory and, without a GPU, save no time.
    """
    windows = _sliding_windows(trained.shape, batch_size)
    remaining = iter(images)
    while batch := list(islice(remaining, batch_size)):
        with torch.inference_mode():
            logits = cast("Tensor", windows(torch.from_numpy(np.stack(batch)), trained.network.segment))
        yield from np.asarray(torch.sigmoid(logits)[:, 0].numpy(), dtype=np.float32)


def _sliding_windows(shape: tuple[int, ...], batch_size: int) -> SlidingWindowInferer:
    # Imported here: it takes seconds, and a network is also loaded to train it on, in many processes.
    from monai.inferers import SlidingWindowInferer

    return SlidingWindowInferer(shape, sw_batch_size=batch_size, overlap=_OVERLAP, mode="gaussian")


def _check_options(mc_dropout: int, tta: bool) -> None:
    if mc_dropout and tta:
        raise ConfigError("Expected either --mc-dropout or --tta, and not both.")
    if mc_dropout == 1 or not 0 <= mc_dropout <= _MOST_MEMBERS:
        raise ConfigError(f"Expected 2 to {_MOST_MEMBERS} members, but got --mc-dropout {mc_dropout}.")


def _holds_files(folder: Path) -> bool:
    """Whether a folder has files other than what a run that failed has left."""
    return any(not path.is_dir() and not path.name.startswith(".lesioncount") for path in folder.rglob("*"))


def _write_all(
    files: OutputFolder, pictures: Mapping[str, Picture], trained: Checkpoint, members: dict[str, _Member]
) -> list[str]:
    """Write all maps, which take their places when the last of them is made: until then, those of before stay."""
    names = [f"{folder}{name}" for name in pictures for folder in members]
    files.check(names)
    with ExitStack() as until_done:
        for name, picture in pictures.items():
            image = prepared(picture, trained.expected.intensities)
            given = resized(image, trained.shape, smooth=True) if trained.expected.resize else image
            for folder, member in members.items():
                found = member(torch.from_numpy(given)[None])
                temporary = until_done.enter_context(files.replacing(f"{folder}{name}"))
                write_map(temporary, resized(found[None], picture.shape, smooth=True)[0], picture.grid)
    return names


def _remove_other_members(files: OutputFolder, written: list[str]) -> None:
    """Remove members of an earlier prediction, which may have had more of them, or been of more scans."""
    for name in files.listed().keys() - set(written):
        if _MEMBER.fullmatch(name.rpartition("/")[0]):
            files.remove(name)


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
    windows = _sliding_windows(shape, 1)
    if mc_dropout:
        return [_Member(network, windows, dropout_seed=seed + i) for i in range(mc_dropout)]
    if tta:
        return [_Member(network, windows, flip=axes) for axes in _flips(len(shape))]
    return [_Member(network, windows)]


def _flips(n_axes: int) -> Iterator[tuple[int, ...]]:
    """All ways to flip an image, as axes of a batch, beginning with none."""
    for chosen in range(1 << n_axes):
        yield tuple(axis + 2 for axis in range(n_axes) if chosen >> axis & 1)


def images_to_predict(
    inputs: Sequence[str | Path], expected: Expected, network: Path, *, leave_out: Path
) -> dict[str, Picture]:
    """All images that are meant, by the names of their maps; raises unless each has the channels and axes expected.

    Parameters
    ----------
    inputs : sequence of path
        As in `find_pictures`.
    expected : Expected
    network : Path
        Of the checkpoint, for messages.
    leave_out : Path
        A folder that is not searched: that of the maps.
    """
    images = {}
    for files in find_pictures(inputs, channels=expected.suffixes, leave_out=[leave_out]):
        picture = open_picture(files.paths)
        if not expected.allows(picture):
            raise ConfigError(
                f"The network of {network} was trained on images with {expected}, but {files.paths[0]} has {picture}."
            )
        ending = ".nii.gz" if picture_ending(files.paths[0]) in nifti.ENDINGS else ".npy"
        images[f"{files.name}{ending}"] = picture
    return images


def write_map(path: Path, probabilities: NDArray[np.float32], grid: VoxelGrid) -> None:
    """Write a map on the grid of its image: as ``.nii.gz`` where that is NIfTI, as ``.npy`` where not."""
    import nibabel

    if path.name.endswith(".npy"):
        with path.open("wb") as file:
            np.save(file, probabilities)
        return
    map_image = nibabel.Nifti1Image(probabilities.T, grid.affine)  # files are in the order x, y, z
    if grid.affine is None and grid.spacing_mm is not None:
        map_image.header.set_zooms(grid.spacing_mm)
    nibabel.save(map_image, path)
