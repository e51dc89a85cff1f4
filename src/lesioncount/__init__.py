"""From the probability map of a segmentation network to the probability distribution of the number of lesions."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lesioncount import errors
from lesioncount.baselines import connected_component_count
from lesioncount.candidates import Candidates, find_candidates
from lesioncount.counting import LesionCount, count_lesions
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.existence import existence_probabilities
from lesioncount.moved import MovedModules
from lesioncount.protocol import PROTOCOLS, CountingProtocol, NamedProtocol
from lesioncount.streaming import StreamingCounter
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.conformal import ConformalCounts
from lesioncount.version import __version__

if TYPE_CHECKING:
    from lesioncount.trust import fitting, scores

__all__ = [
    "PROTOCOLS",
    "Calibration",
    "Candidates",
    "ConformalCounts",
    "CountingProtocol",
    "LesionCount",
    "MixtureOfCounts",
    "NamedProtocol",
    "PoissonBinomial",
    "StreamingCounter",
    "__version__",
    "connected_component_count",
    "count_lesions",
    "errors",
    "existence_probabilities",
    "find_candidates",
    "fitting",
    "scores",
]


# Imported when they are asked for: only some callers need them.
_LATER = {"fitting": "lesioncount.trust.fitting", "scores": "lesioncount.trust.scores"}

sys.meta_path.append(MovedModules())


def __getattr__(name: str) -> Any:
    """Import what only some callers need."""
    if name in _LATER:
        return import_module(_LATER[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
