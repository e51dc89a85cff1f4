"""Everything that can go wrong, by name.

Each error is ours and also the built-in one it resembles, so that both ``except LesionCountError`` and
``except ValueError`` catch it::

    LesionCountError
    ├── MapError (ValueError)             the map, its mask or its geometry
    │   ├── ShapeError                    number of axes, empty, mask of another shape
    │   ├── ProbabilityRangeError         values outside [0, 1]
    │   ├── NonFiniteError                NaN or infinite voxels
    │   └── SpacingError                  a voxel size that is missing or makes no sense
    ├── VoxelTypeError (TypeError)        a dtype that cannot hold probabilities
    ├── ProtocolError (ValueError)        a definition of "one lesion" that makes no sense
    ├── UnknownOptionError (TypeError)    a keyword that a function does not have
    ├── DistributionError (ValueError)    probabilities or counts a distribution cannot take
    ├── QuestionError (ValueError)        a question that cannot be read, or not be answered from what was counted
    ├── ScoreError (ValueError)           predictions and truth that cannot be compared
    ├── CalibrationError (ValueError)     a calibration that cannot be made, or does not fit
    ├── TruthError (ValueError)           masks or counts by experts that do not fit the scans
    ├── RegionError (ValueError)          labels or names of regions that make no sense, or a region that is not there
    ├── GroupError (ValueError)           groups of patients that cannot be made, or do not fit the scans
    ├── ReviewError (ValueError)          a decision that cannot be taken, or reviews that do not fit the scans
    ├── ConfigError (ValueError)          a training that is not described as one
    ├── CohortError (ValueError)          a cohort that cannot be made, or whose files do not fit together
    ├── ExperimentError (RuntimeError)    an experiment whose parts failed, or results that are not there
    ├── WorkerDiedError (RuntimeError)    work that killed the process it was done in
    ├── RunsNotKeptError (RuntimeError)   a label map asked of a result that was told not to keep one
    ├── MapFileError (OSError)            a file that cannot be read as a map, or a result that cannot be written
    ├── ChannelError (ValueError)         several maps in one file and none chosen, or one that is not there
    └── MissingExtraError (ImportError)   a format or feature whose optional package is not installed

    MapWarning (UserWarning)              the count is computed, but think twice
    ├── BinaryMapWarning                  only 0 and 1: the distribution is a single point
    └── CutOffMapWarning                  no value between 0 and 0.5: weak candidates were removed before

    LowerBoundWarning (UserWarning)       a criterion asks for a region that is not there
    NoGradientWarning (UserWarning)       no count of a batch can teach anything
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class LesionCountError(Exception):
    """Any error raised on purpose by this package."""


class MapError(LesionCountError, ValueError):
    """A probability map, its mask or its geometry cannot be used."""


class ShapeError(MapError):
    """An array has the wrong number of axes, no voxels, or another shape than it must have."""


class ProbabilityRangeError(MapError):
    """A map has values outside [0, 1]."""


class NonFiniteError(MapError):
    """A map has NaN or infinite voxels."""


class SpacingError(MapError):
    """The voxel size is missing where it is needed, or is not a size."""


class VoxelTypeError(LesionCountError, TypeError):
    """A dtype that cannot hold probabilities."""


class ProtocolError(LesionCountError, ValueError):
    """A counting protocol that makes no sense, or does not fit the map."""


class UnknownOptionError(LesionCountError, TypeError):
    """A keyword that a function does not have."""


class DistributionError(LesionCountError, ValueError):
    """Probabilities or counts that a count distribution cannot take."""


class QuestionError(LesionCountError, ValueError):
    """A question that cannot be read, or asks for what was not counted."""


class ScoreError(LesionCountError, ValueError):
    """Predictions and truth that cannot be compared."""


class CalibrationError(LesionCountError, ValueError):
    """A calibration that cannot be made from what is there, or does not fit what it is used on."""


class CohortError(LesionCountError, ValueError):
    """A cohort that cannot be made, or scans of one whose files or labels do not fit together."""


class TruthError(LesionCountError, ValueError):
    """Masks or counts by experts that are missing, or do not fit the scans."""


class RegionError(LesionCountError, ValueError):
    """Labels or names of regions that make no sense, or a region that is not there."""


class GroupError(LesionCountError, ValueError):
    """Groups of patients that cannot be made, or do not fit the scans."""


class ReviewError(LesionCountError, ValueError):
    """A decision that cannot be taken, or reviews that are missing or do not fit the scans."""


class ConfigError(LesionCountError, ValueError):
    """A training that is not described as one."""


class ExperimentError(LesionCountError, RuntimeError):
    """An experiment of which some part failed, or whose results are not there."""


class WorkerDiedError(LesionCountError, RuntimeError):
    """Work that killed the process it was done in, twice."""


class RunsNotKeptError(LesionCountError, RuntimeError):
    """A label map was asked for, but what it is painted from was not kept."""


class MapFileError(LesionCountError, OSError):
    """A file cannot be read as a map, or a result cannot be written."""


class ChannelError(LesionCountError, ValueError):
    """A file holds several maps and none was chosen, or the chosen one is not there."""


class MissingExtraError(LesionCountError, ImportError):
    """A format or feature needs an optional package that is not installed."""


class MapWarning(UserWarning):
    """A map that can be counted, but whose count says less than it seems to."""


class BinaryMapWarning(MapWarning):
    """A map of zeros and ones: every existence probability is 1, the count distribution a single point."""


class CutOffMapWarning(MapWarning):
    """A map without values between 0 and 0.5: weak candidates were removed before counting."""


class LowerBoundWarning(UserWarning):
    """A known criterion asks for a region that was not counted: the answer is a lower bound."""


class NoGradientWarning(UserWarning):
    """No label of a batch is possible given its maps, so that the count loss has no gradient."""


def reason_of(error: Exception) -> str:
    """Why something failed, to go on with in a sentence: without numbers of the system, and without a stop."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said.strip().rstrip(".") or type(error).__name__


def listed(names: Iterable[object], most: int = 5) -> str:
    """The first of some names, for a message.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    texts = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}"
