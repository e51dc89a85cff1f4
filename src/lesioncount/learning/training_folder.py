"""The folder of a training: what may be written there, and what an earlier training has left to go on from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch.plugins.io import TorchCheckpointIO

from lesioncount.errors import ConfigError, LesionCountError, MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.learning.checkpoints import read_checkpoint, write_checkpoint
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.split import SPLITS

LAST, BEST, CONFIG, SCORES = "last.ckpt", "best.ckpt", "config.json", "scores.json"

# Which pictures of one's own are in which part, as lists that `predict` takes.
LISTS = tuple(f"{part}.txt" for part in (*SPLITS, "predict"))

# Of config.json, which is short.
_LONGEST = 1 << 20


class TrainingFolder:
    """A folder for checkpoints, scores and logs, in which only files of trainings are ever replaced or removed.

    A checkpoint is ours if it is as we wrote it here, or if it has the configuration of the training in this folder:
    a folder that was copied has no ledger.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = OutputFolder(path)
        self._known: set[str] = set()

    def check(self, config: TrainingConfig, *, resume: bool, overwrite: bool) -> None:
        """Raise unless a training with this configuration can begin here, or go on. Nothing is written."""
        if self._has(LAST) and not (resume or overwrite):
            raise ConfigError(
                f"{self.path} holds a training. Choose another folder, continue it (--resume), or start again "
                "(--overwrite)."
            )
        kept = kept_config(self.path)
        if resume:
            self._check_earlier(config, kept)
        self._know(config if resume else kept)
        lists = LISTS if config.data.source == "files" else ()
        self.files.check(name for name in (LAST, BEST, CONFIG, SCORES, *lists) if name not in self._known)

    def begin(self, config: TrainingConfig, *, resume: bool) -> None:
        """Remove what an earlier training has left, unless this one goes on from it, and keep the configuration."""
        if not resume:
            logs = (f"logs/{log.name}" for log in self.path.glob("logs/metrics-*.csv"))  # of runs that resumed it
            for name in (LAST, BEST, SCORES, *LISTS, *logs):
                self._remove(name)
        if not resume or not self._has(CONFIG):
            text = json.dumps(config.to_dict(), indent=1) + "\n"
            self.files.write_text(CONFIG, text, though_changed=CONFIG in self._known)

    def write_checkpoint(self, content: Mapping[str, Any], name: str) -> None:
        """Write a checkpoint, complete or not at all."""
        with self.files.replacing(name, though_changed=name in self._known) as temporary:
            write_checkpoint(content, temporary)
        self._known.discard(name)

    def write_lists(self, lists: Mapping[str, Sequence[Path]]) -> None:
        """Write which files are in which part, as seen from this folder."""
        for part, paths in lists.items():
            lines = [Path(os.path.relpath(path, self.path)).as_posix() for path in paths]
            self.files.write_text(f"{part}.txt", "\n".join([*lines, ""]))

    def write_scores(self, scores: Mapping[str, float]) -> None:
        """Write the scores on the test part."""
        self.files.write_text(SCORES, json.dumps(dict(scores), indent=1) + "\n")

    def _has(self, name: str) -> bool:
        path = self.path / name
        return path.exists() or path.is_symlink()

    def _check_earlier(self, config: TrainingConfig, kept: TrainingConfig | None) -> None:
        if kept is not None and kept != config:
            raise ConfigError(
                f"{self.path} holds a training with another configuration. Resume it with the same one, or choose "
                "another folder."
            )
        for name in (LAST, BEST):
            if self._has(name) and config_of(read_checkpoint(self.path / name)) != config:
                raise ConfigError(
                    f"{self.path / name} is of a training with another configuration. Resume with the same one, or "
                    "choose another folder."
                )
        if self._has(LAST) and not self._has(BEST) and has_best(read_checkpoint(self.path / LAST)):
            raise MapFileError(
                f"{self.path / BEST}, the best epoch so far, is missing. Put it back, or start again (--overwrite)."
            )

    def _know(self, config: TrainingConfig | None) -> None:
        """Find the files of a training with this configuration that no ledger lists."""
        if config is None:
            return
        for name in (LAST, BEST):
            if self._has(name) and not self.files.is_ours(name) and _is_of(self.path / name, config):
                self._known.add(name)
        # The configuration alone may be anybody's: beside a checkpoint that says the same, it is that training's.
        if LAST in self._known or _is_of(self.path / LAST, config):
            self._known.add(CONFIG)

    def _remove(self, name: str) -> None:
        if name in self._known:
            (self.path / name).unlink(missing_ok=True)
        else:
            self.files.remove(name)


class WholeCheckpoints(TorchCheckpointIO):
    """How Lightning writes and reads checkpoints: complete or not at all, and with a check sum that is compared."""

    def __init__(self, folder: TrainingFolder) -> None:
        super().__init__()
        self._folder = folder

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:  # noqa: ARG002 - Lightning gives it
        """Write a checkpoint into the folder of the training."""
        self._folder.write_checkpoint(checkpoint, Path(path).name)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:  # noqa: ARG002 - Lightning gives them
        """Read a checkpoint; what Lightning moves to a device, it moves itself."""
        return read_checkpoint(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        """Remove a checkpoint if it is of this training."""
        if Path(path).parent.absolute() == self._folder.path.absolute():
            self._folder.files.remove(Path(path).name)


def kept_config(folder: Path) -> TrainingConfig | None:
    """The configuration of the training in a folder, or None if there is none."""
    path = folder / CONFIG
    if not path.exists():
        return None
    if not path.is_file():
        raise ConfigError(f"{path} is no file. Move it, or choose another folder.")
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LONGEST).decode("utf-8"))
        content.pop("checksum", None)
        if not content:
            raise ConfigError("it is empty")
        return TrainingConfig.from_dict(content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = f" ({error})" if isinstance(error, ConfigError) else ""
        raise ConfigError(
            f"{path} is not the configuration of a training as lesioncount wrote it, or it is damaged{why}. Move it, "
            "or choose another folder."
        ) from None


def config_of(checkpoint: Mapping[str, Any]) -> TrainingConfig | None:
    """The configuration that a checkpoint was trained with; None if it does not say."""
    try:
        return TrainingConfig.from_dict(
            {name: dict(of) for name, of in checkpoint["hyper_parameters"]["config"].items()}
        )
    except (LesionCountError, TypeError, KeyError, AttributeError, ValueError):
        return None


def _is_of(path: Path, config: TrainingConfig) -> bool:
    try:
        return config_of(read_checkpoint(path)) == config
    except MapFileError:
        return False


def has_best(checkpoint: Mapping[str, Any]) -> bool:
    """Whether some epoch was the best before this checkpoint was written."""
    callbacks = checkpoint.get("callbacks")
    states = callbacks.values() if isinstance(callbacks, dict) else ()
    return any(isinstance(state, dict) and state.get("monitor") and state.get("best_model_path") for state in states)
