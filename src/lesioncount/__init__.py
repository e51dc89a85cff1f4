"""From the probability map of a segmentation network to the probability distribution of the number of lesions."""

from typing import TYPE_CHECKING, Any

from lesioncount import errors
from lesioncount.baselines import connected_component_count
from lesioncount.calibration import Calibration
from lesioncount.candidates import Candidates, find_candidates
from lesioncount.conformal import ConformalCounts
from lesioncount.counting import LesionCount, count_lesions
from lesioncount.existence import existence_probabilities
from lesioncount.mixture import MixtureOfCounts
from lesioncount.poisson_binomial import PoissonBinomial
from lesioncount.protocol import PROTOCOLS, CountingProtocol, NamedProtocol
from lesioncount.streaming import StreamingCounter
from lesioncount.version import __version__

if TYPE_CHECKING:
    from lesioncount import fitting, scores

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


def __getattr__(name: str) -> Any:
    """Import the two packages that only some callers need when they are asked for."""
    if name in ("fitting", "scores"):
        from importlib import import_module

        return import_module(f"lesioncount.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
