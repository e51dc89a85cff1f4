"""``evaluation.json`` → the methods that were compared, and their scores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lesioncount.errors import MapFileError, ProtocolError
from lesioncount.protocol import CountingProtocol

# The layout of the file that this version reads.
_FORMAT = 1

# Shown of the scans that are most wrong: enough to look into, few enough to do so.
_MOST_WRONG = 20


@dataclass(frozen=True)
class Estimate:
    """A number and its bootstrap interval; None where it is not defined."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    def __neg__(self) -> Estimate:
        negative = [None if value is None else -value for value in (self.estimate, self.high, self.low)]
        return Estimate(*negative)

    @classmethod
    def of(cls, content: dict[str, Any] | None) -> Estimate:
        """From the object in the file, of which only the estimate must be there."""
        if content is None:
            return cls()
        values = (content["estimate"], content.get("low"), content.get("high"))
        return cls(*(None if value is None else float(value) for value in values))


@dataclass(frozen=True)
class Bins:
    """Predictions in bins of their confidence; None where a bin is empty."""

    n: list[int]
    confidence: list[float | None]
    hit_rate: list[float | None]

    @property
    def filled(self) -> list[tuple[int, int, float, float]]:
        """Number, size, mean confidence and hit rate of the bins that hold something."""
        rows = zip(self.n, self.confidence, self.hit_rate, strict=True)
        return [(i, n, p, hit) for i, (n, p, hit) in enumerate(rows) if n and p is not None and hit is not None]

    @classmethod
    def of(cls, content: dict[str, Any] | None) -> Bins | None:
        """From the object in the file."""
        return None if content is None else cls(content["n"], content["confidence"], content["hit_rate"])


@dataclass(frozen=True)
class Method:
    """One way to count, and how well it did."""

    key: str
    name: str
    about: str
    scores: dict[str, Estimate]
    confusion: list[list[int]] | None
    reliability: Bins | None
    certainty: dict[str, list[float]] | None

    @property
    def is_ours(self) -> bool:
        """Whether it gives a distribution, raw or calibrated, not a bare number."""
        return self.key in ("raw", "calibrated")

    def score(self, name: str) -> Estimate:
        """One of its scores; without a value when it has none."""
        return self.scores.get(name, Estimate())

    @classmethod
    def of(cls, key: str, content: dict[str, Any]) -> Method:
        """From the object in the file."""
        return cls(
            key=key,
            name=str(content["name"]),
            about=str(content.get("about") or ""),
            scores={name: Estimate.of(value) for name, value in content["scores"].items()},
            confusion=content.get("confusion"),
            reliability=Bins.of(content.get("reliability")),
            certainty=content.get("certainty"),
        )


@dataclass(frozen=True)
class Evaluation:
    """All that a page shows.

    Attributes
    ----------
    content : dict
        The file as it is.
    methods : dict of str to Method
        By key, in the order of the file.
    protocol : CountingProtocol
        What was counted as one lesion.
    """

    content: dict[str, Any]
    methods: dict[str, Method]
    protocol: CountingProtocol

    @property
    def ours(self) -> Method:
        """What is judged: the calibrated counts where there are any, else the raw ones."""
        return self.methods.get("calibrated", self.methods["raw"])

    @property
    def most_wrong(self) -> list[dict[str, Any]]:
        """The scans with the largest scores, the worst first."""
        scored = [scan for scan in self.content["scans"] if scan.get("rps") is not None]
        return sorted(scored, key=lambda scan: -float(scan["rps"]))[:_MOST_WRONG]

    @property
    def lesion_bins(self) -> Bins | None:
        """Candidates in bins of their existence probability."""
        return Bins.of((self.content.get("lesions") or {}).get("reliability"))

    def lesion_score(self, name: str) -> Estimate:
        """A score of the section on single lesions."""
        return Estimate.of(self.content["lesions"].get(name))

    def difference(self, one: Method, other: Method, score: str) -> Estimate | None:
        """The paired difference of a score, one minus other; None when it was not taken."""
        pairs = self.content.get("differences") or {}
        there = (pairs.get(f"{one.key} - {other.key}") or {}).get(score)
        back = (pairs.get(f"{other.key} - {one.key}") or {}).get(score)
        found = Estimate.of(there) if there else -Estimate.of(back)
        return None if found.estimate is None else found


def read_evaluation(folder: Path) -> Evaluation:
    """Read what ``lesioncount evaluate`` has left in a folder."""
    path = folder / "evaluation.json"
    try:
        # An undefined score may have been written as NaN, which is no JSON, but read by most.
        content = json.loads(path.read_text("utf-8"), parse_constant=lambda _: None)
        return _checked(content)
    except OSError:
        reason = "is not there or cannot be read"
    except (ValueError, KeyError, TypeError, AttributeError, ProtocolError) as error:
        missing = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        reason = f"is not what this version reads ({missing})"
    raise MapFileError(
        f"Expected an evaluation in {folder}, but its evaluation.json {reason}. Evaluate first: "
        f"lesioncount evaluate RESULTS --truth MASKS -o {folder}"
    )


def _checked(content: Any) -> Evaluation:
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise TypeError(f'expected an object with "format": {_FORMAT}')
    missing = [name for name in ("n_scans", "scans", "truth", "max_count", "notes") if name not in content]
    methods = {key: Method.of(key, method) for key, method in content["methods"].items()}
    if missing or "raw" not in methods:
        raise KeyError(*missing[:1] or ["raw"])
    return Evaluation(content, methods, CountingProtocol.from_dict(content["protocol"]))
