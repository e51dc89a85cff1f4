"""Which values of a configuration can be used, in words that say what to write instead."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lesioncount.errors import ConfigError
from lesioncount.learning.plausible import (
    METHODS,
    MOST_COUNTS,
    MOST_FILTERS,
    MOST_VOXELS,
    READOUTS,
    STEEPEST,
    are_sizes,
    check_number,
    is_network_size,
    shown,
)
from lesioncount.protocol import PROTOCOLS

if TYPE_CHECKING:
    from lesioncount.learning.config import TrainingConfig
    from lesioncount.learning.config_sections import DataConfig

SCHEDULES = ("exponential", "one_cycle", "cosine")
PRECISIONS = ("float32", "bfloat16", "auto")

# Of a value in a message.
_LONGEST = 200

# A key, whether its value can be used, what is expected, and an example, if there is one.
_Check = tuple[str, bool, str, str]


def check_values(config: TrainingConfig) -> None:
    """Raise a `ConfigError` that names the key, what was expected and what to write."""
    for section, values in vars(config).items():
        for key, value in vars(values).items():
            check_number(section, key, value)
    checks = {
        "data": _data(config.data),
        "network": _network(config),
        "optimizer": _optimizer(config),
        "loss": _loss(config),
        "run": _run(config),
    }
    for section, of_section in checks.items():
        for key, is_right, expected, example in of_section:
            if not is_right:
                given: Any = getattr(getattr(config, section), key)
                given = list(given) if isinstance(given, tuple) else given
                instead = f" Write, for example: {key} = {example}" if example else ""
                raise ConfigError(
                    f"Expected {key} in [{section}] to be {expected}, but got {shown(given, _LONGEST)}.{instead}"
                )


def _data(data: DataConfig) -> Iterator[_Check]:
    fits = are_sizes(data.shape) and math.prod(data.shape) <= MOST_VOXELS
    yield "shape", fits, f"whole numbers above 0, whose product is at most {MOST_VOXELS}", "[24, 48, 40]"
    yield "patients", are_sizes(data.patients), "numbers above 0 of training, validation and test", "[200, 60, 150]"
    yield "folds", data.folds == 0 or data.folds > 1, "2 or more, or 0 for no cross-validation", "5"
    is_one = data.folds == 0 or 0 <= data.fold < data.folds
    yield "fold", is_one, f"one of the {data.folds} folds, counted from 0", "0"
    yield "seed", data.seed >= 0, "a whole number of at least 0", "1"
    if data.source != "files":
        for key in ("images", "masks", "counts"):
            yield key, not getattr(data, key), f'left out with source = "{data.source}"', ""
        return
    yield "channels", _are_texts(data.channels), "endings of names, one for each channel", '["_T1w", "_FLAIR"]'
    fits = data.resize == () or (len(data.resize) in (2, 3) and are_sizes(data.resize))
    fits = fits and math.prod(data.resize) <= MOST_VOXELS
    yield "resize", fits, "height and width, or planes, height and width, of at least 1", "[128, 128]"
    yield "mask_label", data.mask_label >= 0, "the value of lesions in the masks, or 0", "1"
    yield "parts", _are_shares(data.parts), "shares of training, validation and test, each above 0", "[0.6, 0.2, 0.2]"


def _are_texts(given: tuple[Any, ...]) -> bool:
    return all(isinstance(text, str) and text for text in given) and len(set(given)) == len(given)


def _are_shares(given: tuple[Any, ...]) -> bool:
    are_numbers = all(isinstance(share, int | float) and not isinstance(share, bool) for share in given)
    return len(given) == 3 and are_numbers and min(given) > 0


def _network(config: TrainingConfig) -> Iterator[_Check]:
    of = config.network
    yield "method", of.method in METHODS, f"one of {', '.join(METHODS)}", '"map"'
    yield "dropout", 0 <= of.dropout < 1, "at least 0 and below 1", "0.1"
    yield "head_readout", of.head_readout in READOUTS, f"one of {', '.join(READOUTS)}", '"mean"'
    yield "protocol", of.protocol in PROTOCOLS, f"one of {', '.join(PROTOCOLS)}", '"paper"'
    yield "head_dropout", of.head_dropout < 1, "below 1, or negative for that of the authors", "0.3"
    narrow = f"such that filters · 2^(levels − 2) is at most {MOST_FILTERS}, with 2 to 16 levels (here {of.levels})"
    yield "filters", is_network_size(of.filters, of.levels), f"at least 1, and {narrow}", "8"


def _optimizer(config: TrainingConfig) -> Iterator[_Check]:
    of = config.optimizer
    yield "schedule", of.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}", '"one_cycle"'
    yield "learning_rate", of.learning_rate > 0, "above 0", "1e-3"
    yield "head_learning_rate", of.head_learning_rate >= 0, "at least 0", "0.0"
    yield "weight_decay", of.weight_decay >= 0, "at least 0", "1e-5"
    yield "decay", of.decay > 0, "above 0", "0.995"


def _loss(config: TrainingConfig) -> Iterator[_Check]:
    of = config.loss
    yield "positive_weight", of.positive_weight > 0, "above 0", "3.0"
    yield "count_weight", of.count_weight >= 0, "at least 0", "0.001"
    yield "count_growth", abs(of.count_growth) <= STEEPEST, f"from -{STEEPEST:g} to {STEEPEST:g}", "0.06"
    fewest = 0 if config.data.source == "files" else 1
    rising = of.bins == () or (of.bins[0] == 0 and all(a < b for a, b in pairwise(of.bins)) and len(of.bins) > 1)
    yield "bins", rising, "rising counts, the first of them 0", "[0, 1, 2, 5, 10]"
    yield "max_count", fewest <= of.max_count <= MOST_COUNTS, f"from 1 to {MOST_COUNTS}", "4"


def _run(config: TrainingConfig) -> Iterator[_Check]:
    of = config.run
    for key in ("pretrain_epochs", "warmup_epochs", "epochs", "threads", "workers", "seed"):
        yield key, getattr(of, key) >= 0, "at least 0", "1"
    yield "epochs", of.n_epochs >= 1, "at least 1 where there is no other epoch", "100"
    has_head = of.warmup_epochs == 0 or config.network.method != "map"
    yield "warmup_epochs", has_head, 'left out with method = "map", which has no head to warm up', ""
    yield "batch_size", of.batch_size >= 1, "at least 1", "4"
    yield "processes", of.processes >= 1, "at least 1", "1"
    yield "precision", of.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}", '"float32"'
    yield "keep_gb", of.keep_gb >= 0, "at least 0", "4.0"
    yield "validate_every", of.validate_every >= 1, "at least 1", "1"
    reaches = of.validate_every < 1 or of.last_validated >= of.first_kept
    yield "validate_every", reaches, "small enough that some epoch with the count is validated", "1"
