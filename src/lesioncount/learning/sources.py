"""A configuration → the data that it names, and the scans of its training, validation and test parts."""

from __future__ import annotations

from importlib.metadata import entry_points

import numpy as np

from lesioncount.errors import ConfigError
from lesioncount.learning.config import DataConfig, TrainingConfig
from lesioncount.learning.own_data import read_own_data
from lesioncount.learning.scans import Kept, Memory, Part, ScanSource, TrainingData
from lesioncount.learning.split import crossed

_OWN = "files"


def data_of(config: TrainingConfig, /) -> TrainingData:
    """The data of a configuration: files, or those of a source that an installed package offers."""
    source = config.data.source
    if source == _OWN:
        return read_own_data(config.data)
    offered = entry_points(group="lesioncount.sources")
    if source not in offered.names:
        raise ConfigError(
            f"Expected source in [data] to be one of {', '.join([_OWN, *sorted(offered.names)])}, but got {source!r}. "
            'For pictures of your own, write: images = "pictures". The data of the paper come with the package '
            "lesioncount-reproduction; in a clone of the repository: pip install ./reproduction"
        )
    data: TrainingData = offered[source].load()(config.data)
    return data


def sources_of(config: TrainingConfig, whole: dict[str, ScanSource] | None = None, /) -> dict[str, ScanSource]:
    """The scans of each part. The training part may be reduced to a share of its scans or of their masks.

    Parameters
    ----------
    config : TrainingConfig
    whole : dict, optional
        All scans of this data, as `whole_parts` returns them, if they have been read before.
    """
    whole = whole_parts(config, data_of(config)) if whole is None else whole
    return whole | {"train": _reduced(whole["train"], config.data, config.run.seed)}


def whole_parts(config: TrainingConfig, data: TrainingData) -> dict[str, ScanSource]:
    """All scans of each part, in the folds that the configuration asks for, and kept in memory as far as it allows."""
    memory = Memory.of_gb(config.run.keep_gb)
    kept: dict[str, ScanSource] = {name: Kept(scans, memory) for name, scans in data.sources().items()}
    return crossed(kept, config.data, alike=data.alike) if config.data.folds else kept


def _reduced(scans: ScanSource, data: DataConfig, seed: int) -> ScanSource:
    """A share of the patients, and masks for a share of their scans."""
    if data.share == 1 and data.mask_share == 1:
        return scans
    for name, share in (("share", data.share), ("mask_share", data.mask_share)):
        if not 0 <= share <= 1 or (name == "share" and share == 0):
            raise ConfigError(f"Expected {name} to be a share between 0 and 1, but got {share}.")
    patients = [scans[i].patient for i in range(len(scans))]
    rng = np.random.default_rng([seed, 1])
    names = sorted(set(patients))
    kept = set(rng.permutation(names)[: max(1, round(data.share * len(names)))].tolist())
    rows = [i for i, patient in enumerate(patients) if patient in kept]
    masked = set(rng.permutation(rows)[: round(data.mask_share * len(rows))].tolist())
    return Part([(scans, row) for row in rows], [i for i, row in enumerate(rows) if row not in masked])
