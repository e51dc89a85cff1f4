"""From the probability map of a segmentation network to the probability distribution of the number of lesions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lesioncount import errors
from lesioncount.baselines import connected_component_count
from lesioncount.candidates import Candidates, find_candidates
from lesioncount.counting import LesionCount, count_lesions
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.existence import existence_probabilities
from lesioncount.protocol import PROTOCOLS, CountingProtocol, NamedProtocol
from lesioncount.sweep.candidate import Candidate
from lesioncount.version import __version__

if TYPE_CHECKING:
    from lesioncount.assess.in_memory import calibrate, evaluate
    from lesioncount.changes.lesion_changes import LesionChanges, compare
    from lesioncount.detections import count_candidates
    from lesioncount.distributions.mixture import MixtureOfCounts
    from lesioncount.files.detections import read_candidates
    from lesioncount.regions import Regions
    from lesioncount.runs import (
        CountTable,
        ScanCount,
        compare_files,
        count_file,
        count_files,
        count_volume,
        read_changes,
        read_results,
    )
    from lesioncount.streaming import StreamingCounter
    from lesioncount.trust import fitting, scores
    from lesioncount.trust.calibration import Calibration
    from lesioncount.trust.candidate_table import CandidateTable
    from lesioncount.trust.conformal import ConformalCounts
    from lesioncount.trust.fitting import load_calibration

__all__ = [
    "PROTOCOLS",
    "Calibration",
    "Candidate",
    "CandidateTable",
    "Candidates",
    "ConformalCounts",
    "CountTable",
    "CountingProtocol",
    "LesionChanges",
    "LesionCount",
    "MixtureOfCounts",
    "NamedProtocol",
    "PoissonBinomial",
    "Regions",
    "ScanCount",
    "StreamingCounter",
    "__version__",
    "calibrate",
    "compare",
    "compare_files",
    "connected_component_count",
    "count_candidates",
    "count_file",
    "count_files",
    "count_lesions",
    "count_volume",
    "errors",
    "evaluate",
    "existence_probabilities",
    "find_candidates",
    "fitting",
    "load_calibration",
    "read_candidates",
    "read_changes",
    "read_results",
    "scores",
]


# Imported when they are asked for: only some callers need them.
_NAMES = {
    "Calibration": "lesioncount.trust.calibration",
    "CandidateTable": "lesioncount.trust.candidate_table",
    "ConformalCounts": "lesioncount.trust.conformal",
    "CountTable": "lesioncount.runs",
    "LesionChanges": "lesioncount.changes.lesion_changes",
    "MixtureOfCounts": "lesioncount.distributions.mixture",
    "Regions": "lesioncount.regions",
    "ScanCount": "lesioncount.runs",
    "StreamingCounter": "lesioncount.streaming",
    "calibrate": "lesioncount.assess.in_memory",
    "compare": "lesioncount.changes.lesion_changes",
    "compare_files": "lesioncount.runs",
    "count_candidates": "lesioncount.detections",
    "count_file": "lesioncount.runs",
    "count_files": "lesioncount.runs",
    "count_volume": "lesioncount.runs",
    "evaluate": "lesioncount.assess.in_memory",
    "load_calibration": "lesioncount.trust.fitting",
    "read_candidates": "lesioncount.files.detections",
    "read_changes": "lesioncount.runs",
    "read_results": "lesioncount.runs",
}
_MODULES = {"fitting": "lesioncount.trust.fitting", "scores": "lesioncount.trust.scores"}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # a type checker would take it that every name exists

    def __getattr__(name: str) -> Any:
        """Import what only some callers need."""
        if name in _NAMES:
            value = getattr(import_module(_NAMES[name]), name)
        elif name in _MODULES:
            value = import_module(_MODULES[name])
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value
