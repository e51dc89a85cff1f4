"""From the probability map of a segmentation network to the probability distribution of the number of lesions."""

from lesioncount import errors
from lesioncount.baselines import connected_component_count
from lesioncount.candidates import Candidates, find_candidates
from lesioncount.counting import LesionCount, count_lesions
from lesioncount.existence import existence_probabilities
from lesioncount.poisson_binomial import PoissonBinomial
from lesioncount.protocol import PROTOCOLS, CountingProtocol, NamedProtocol
from lesioncount.streaming import StreamingCounter
from lesioncount.version import __version__

__all__ = [
    "PROTOCOLS",
    "Candidates",
    "CountingProtocol",
    "LesionCount",
    "NamedProtocol",
    "PoissonBinomial",
    "StreamingCounter",
    "__version__",
    "connected_component_count",
    "count_lesions",
    "errors",
    "existence_probabilities",
    "find_candidates",
]
