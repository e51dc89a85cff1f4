"""A training from start to finish: data, network, checkpoints, logs, and scores on scans it has not seen."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import Logger, TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader

from lesioncount.errors import ConfigError
from lesioncount.learning.batches import loader
from lesioncount.learning.checkpoints import read_checkpoint
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.epoch_log import EpochLog
from lesioncount.learning.module import CountingModule
from lesioncount.learning.networks.layers import is_bfloat16
from lesioncount.learning.prediction import load_checkpoint
from lesioncount.learning.scans import ScanSource, TrainingData
from lesioncount.learning.sources import data_of, sources_of, whole_parts
from lesioncount.learning.training_folder import BEST, LAST, TrainingFolder, WholeCheckpoints

# Scans from which the share of lesion voxels is estimated.
_SCANS_FOR_PREVALENCE = 50

# Warnings of Lightning and torchmetrics, by their text. The last is of a process without scans to score.
_CHATTER = (
    ".*logging interval.*",
    ".*exists and is not empty.*",
    ".*LeafSpec.*",
    ".*num_workers.*",
    ".*``compute`` method of metric.*before the ``update`` method.*",
)


def train(
    config: TrainingConfig,
    out: Path,
    /,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    parts: dict[str, ScanSource] | None = None,
    data: TrainingData | None = None,
) -> dict[str, float]:
    """Train a network, keep its best epoch, and score it on the test part.

    Parameters
    ----------
    config : TrainingConfig
    out : Path
        Folder for checkpoints (``best.ckpt``, ``last.ckpt``), logs and ``scores.json``. Only files of an earlier
        training are replaced, and no two trainings write here at once.
    resume : bool, default False
        Continue after the last finished epoch. The result is the same as that of an uninterrupted training.
    overwrite : bool, default False
        Start again and replace an earlier training in this folder.
    progress : bool, default True
        Show a progress bar.
    parts : dict, optional
        Scans of "train", "val" and, if the network is to be tested, "test", as `sources_of` returns them. Several
        trainings in one process can share them.
    data : TrainingData, optional
        The data, as `data_of` returns them, where they have been looked through already.

    Returns
    -------
    dict
        Scores on the test part.
    """
    lists: dict[str, list[Path]] = {}
    if parts is None:
        data = data_of(config) if data is None else data
        config = data.completed(config)
        parts = sources_of(config, whole_parts(config, data))
        lists = data.lists(parts)
    folder = TrainingFolder(out)
    check = partial(folder.check, config, resume=resume, overwrite=overwrite)
    is_first = getattr(rank_zero_only, "rank", 0) == 0  # of several processes: it alone writes
    if is_first:
        check()
    if config.run.threads:
        torch.set_num_threads(config.run.threads)
    for part, scans in parts.items():
        if len(scans) == 0:
            raise ConfigError(f"There is no scan in the part {part!r}.")
    monitor = _monitor(parts["val"])
    with _without_chatter():
        trainer = _trainer(config, folder, monitor, resume=resume, progress=progress)
    loaders = {
        part: loader(
            scans,
            batch_size=config.run.batch_size,
            seed=config.run.seed,
            training=part == "train",
            augment=config.run.augment,
            keep_whole=config.data.source == "files",
            workers=config.run.workers,
            rank=trainer.global_rank,
            n_processes=trainer.world_size,
        )
        for part, scans in parts.items()
    }
    module = _module(config, parts["train"], len(loaders["train"]))
    begin_at = folder.path / LAST if resume and (folder.path / LAST).exists() else None
    if begin_at is not None:
        _check_fit(module, begin_at)
    # The folder is not made earlier: by now, anything wrong with the configuration has come to light.
    with folder.files.alone() if is_first else nullcontext():
        if is_first:
            check()  # once more: another training may have ended here in the meantime
            folder.begin(config, resume=resume)
            folder.write_lists(lists)
        return _fitted(trainer, module, loaders, folder, begin_at)


def _fitted(
    trainer: lightning.Trainer,
    module: CountingModule,
    loaders: dict[str, DataLoader[dict[str, Any]]],
    folder: TrainingFolder,
    begin_at: Path | None,
) -> dict[str, float]:
    with _without_chatter():
        start = None if begin_at is None else str(begin_at)
        trainer.fit(module, loaders["train"], loaders["val"], ckpt_path=start, weights_only=True)
        if "test" not in loaders:
            return {}
        best = str(folder.path / BEST)
        [found] = trainer.test(module, loaders["test"], ckpt_path=best, verbose=False, weights_only=True)
    scores = {name: float(value) for name, value in found.items()}
    if trainer.is_global_zero:
        folder.write_scores(scores)
    return scores


def _check_fit(module: CountingModule, checkpoint: Path) -> None:
    try:
        module.load_state_dict(read_checkpoint(checkpoint)["state_dict"])
    except (RuntimeError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"{checkpoint} does not fit this training: its data had another number of channels, or the file is of "
            "another program. Choose another folder."
        ) from None


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Silence what Lightning prints and warns about on every run, and nobody can do anything about."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for message in _CHATTER:
            warnings.filterwarnings("ignore", message)
        yield


def _module(config: TrainingConfig, scans: ScanSource, steps_per_epoch: int) -> CountingModule:
    some = [scans[i] for i in range(min(len(scans), _SCANS_FOR_PREVALENCE))]
    masks = [scan.mask for scan in some if scan.mask is not None]
    share = float(np.mean([mask.mean() for mask in masks])) if masks else 1e-3
    module = CountingModule(
        config.to_dict(),
        in_channels=some[0].images.shape[0],
        prevalence=float(np.clip(share, 1e-5, 0.5)),
        steps_per_epoch=steps_per_epoch,
    )
    if config.run.start:
        _begin_with(module, Path(config.run.start))
    return module


def _begin_with(module: CountingModule, checkpoint: Path) -> None:
    trained = load_checkpoint(checkpoint)
    try:
        module.network.unet.load_state_dict(trained.network.unet.state_dict())
    except RuntimeError:
        raise ConfigError(
            f"The UNet of {checkpoint} does not fit the network to be trained: give both the same number of filters, "
            "levels and channels."
        ) from None


class _BestEpoch(ModelCheckpoint):
    """Keeps the best epoch of the last stage: before it, a head has not learned, or not on what it will be given."""

    def __init__(self, *, first: int, **options: Any) -> None:
        # By default it may save when the training part of an epoch ends, where the number of the epoch is not checked.
        super().__init__(**options, save_on_train_epoch_end=False)
        self._first = first

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Keep this epoch if it is better."""
        if trainer.current_epoch >= self._first:
            super().on_validation_end(trainer, pl_module)


def _monitor(scans: ScanSource) -> str:
    """By what score on the validation part the best epoch is chosen: voxels where there are masks, or else counts."""
    every = [scans[i] for i in range(len(scans))]
    if any(scan.mask is not None for scan in every):
        return "val_voxel_f1"
    if any(scan.at_least == scan.at_most for scan in every):
        return "val_rps"
    raise ConfigError(
        "No validation scan has a mask or an exact count, but the best epoch is chosen by voxel F1 or, without masks, "
        "by the ranked probability score of counts."
    )


def _trainer(
    config: TrainingConfig, folder: TrainingFolder, monitor: str, *, resume: bool, progress: bool
) -> lightning.Trainer:
    out = folder.path
    loggers: list[Logger] = [EpochLog(folder.files, resume=resume)]
    if find_spec("tensorboard") is not None:
        loggers.append(TensorBoardLogger(str(out), name="", version="tensorboard"))
    options: dict[str, Any] = {"dirpath": str(out), "enable_version_counter": False}
    return lightning.Trainer(
        max_epochs=config.run.n_epochs,
        check_val_every_n_epoch=config.run.validate_every,
        accelerator="auto" if config.run.processes == 1 else "cpu" if not torch.cuda.is_available() else "gpu",
        devices="auto" if config.run.processes == 1 else config.run.processes,
        # Pre-training does not use the head, whose parameters then have no gradient.
        strategy="auto" if config.run.processes == 1 else "ddp_find_unused_parameters_true",
        precision="bf16-mixed" if is_bfloat16(config.run.precision) else "32-true",
        logger=loggers,
        plugins=[WholeCheckpoints(folder)],
        callbacks=[
            _BestEpoch(
                first=config.run.first_kept,
                **options,
                filename="best",
                monitor=monitor,
                mode="min" if monitor == "val_rps" else "max",
            ),
            ModelCheckpoint(**options, filename="last", save_on_train_epoch_end=True),
        ],
        enable_progress_bar=progress,
        enable_model_summary=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        log_every_n_steps=1_000_000,  # only whole epochs are logged
    )
