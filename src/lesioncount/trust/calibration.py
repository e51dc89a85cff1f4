"""A correction of existence probabilities, so that they mean what they say."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.changes.coupling import DEFAULT_COUPLING, STRONGEST_COUPLING, only_now
from lesioncount.distributions.count_distribution import CountDistribution, is_between
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.with_extra import CountWithExtra, over_nodes
from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.candidate_table import FEATURES, CandidateTable, Counted, TableLike, as_table

# Closer to 0 and 1 than this, a probability is the saturation of a network, and its logit says nothing more.
SATURATION = 1e-6

# Extra lesions per scan. The distribution has an entry for each count up to there, and no patient has as many lesions.
MOST_EXTRA = 10_000

# What no fit comes near to, and no file may ask for: tables of counts would have no end.
_WIDEST_SPREAD = 20.0
_LARGEST_SHARE = 20.0
_SMALLEST_SHAPE = 0.05
_STRONGEST_CROWDING = 10.0

_WORTH_A_WORD = 0.05  # of spread: less is what a fit leaves where scans are alike

# Left out of files where there are none.
_OF_FEATURES = ("weights", "typical_features")
_LEFT_OUT = (*_OF_FEATURES, "draws", "of_regions", "prior")

# What differs between draws of what few scans allow, and how many there may be.
_DRAWN = ("slope", "offset", "extra_rate", "extra_share", "spread", "crowding")
_MOST_DRAWS = 1000

# Of the integral over scans, for each of many draws: together they are as many as for one.
_NODES_OF_DRAWS = 5

# Far beyond what any number of a calibration or feature is, and products of them are still numbers.
_FARTHEST = 1e9


# Part of the origin of a calibration that comes from no counted scan, and told in all that is made with it.
NOT_CHECKED = "not checked against any counted scan"

_RANGES = (
    ("extra_rate", 0.0, MOST_EXTRA),
    ("extra_share", 0.0, _LARGEST_SHARE),
    ("spread", 0.0, _WIDEST_SPREAD),
    ("crowding", -_STRONGEST_CROWDING, _STRONGEST_CROWDING),
    ("typical_count", 0.0, _FARTHEST),
    ("ripple", 0.0, 1.0),
    ("coupling", 0.0, STRONGEST_COUPLING),
)


class AtNodes(NamedTuple):
    """What a calibration says of a scan at each node of what it may share.

    Attributes
    ----------
    existence : array, shape (M, K)
        Of each candidate.
    weights : array, shape (M,)
    extra_rate, extra_share : array, shape (M,)
        Lesions without a candidate of their own: per scan, and for each that is expected among the candidates.
    """

    existence: NDArray[np.float64]
    weights: NDArray[np.float64]
    extra_rate: NDArray[np.float64]
    extra_share: NDArray[np.float64]

    @property
    def extra(self) -> NDArray[np.float64]:
        """Expected number of lesions without a candidate of their own."""
        return self.extra_among(self.existence.sum(axis=1))

    def extra_among(self, expected: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same where so many are expected among the candidates."""
        return np.asarray(self.extra_rate + self.extra_share * expected)

    def or_else(self, other: AtNodes, places: NDArray[np.bool_]) -> AtNodes:
        """All nodes of both, each of which may be right as well; the other one knows some of the candidates only."""
        other = other._replace(existence=_spread_out(other.existence, places))
        joined = AtNodes(*(np.concatenate(parts) for parts in zip(self, other, strict=True)))
        return joined._replace(weights=joined.weights / 2)


@dataclass(frozen=True)
class Calibration:
    """A monotone map of existence probabilities, how far scans differ as a whole, and lesions without a candidate.

    Parameters
    ----------
    slope : float, default 1
        On the logit, above 0. Below 1 it makes an over-confident network less sure.
    offset : float, default 0
        On the logit. Below 0 it takes back what a positive weight in the loss has added.
    extra_rate : float, default 0
        Expected number of lesions per scan without a candidate of their own, at most 10 000.
    extra_share : float, default 0
        The same for each lesion expected among the candidates: what is missed or swallowed grows with what is there.
    extra_shape : float, default inf
        How alike scans are in the number of these lesions: the smaller, the wider. Infinite is a Poisson distribution.
    spread : float, default 0
        Standard deviation, on the logit, of what all candidates of a scan share: poor contrast shifts them together.
    crowding : float, default 0
        On the logit, for each factor e in the count that a scan seems to have: above 0, a candidate among many is
        more often a lesion than one that is alone.
    typical_count : float, default 0
        The count of a scan in which ``crowding`` changes nothing.
    ripple : float, default 0
        A peak that rises above its saddle by less than this is not a lesion of its own.
    coupling : float
        Of changes between two scans: how the doubt about a place belongs together in both, see `coupling.only_now`.
    counted : {"lesions", "new", "gone", "persisting"}
        What it corrects the number of.
    weights : mapping of str to float, optional
        On the logit, for each unit of a feature of candidates: a column of `CandidateTable`, on its scale.
    typical_features : mapping of str to float, optional
        The values of these features, on their scales, that change nothing. Default: 0.
    draws : mapping of str to sequence of float, optional
        Where several calibrations fit the scans about as well: some fields of each of them. Counts are their average;
        the fields themselves then stand for the one that fits best.
    of_regions : Calibration, optional
        Of peaks: a calibration of the regions that they lie in, of the same ``extra_shape``. The count is then the even
        mixture of both, for known counts that do not tell which is better (`fitting.choose`).
    protocol : CountingProtocol, optional
        What counted as one lesion where it was fitted. It fits no other; None fits all.
    origin : str, optional
        Where it comes from, in words.
    prior : mapping of str to mapping of str to float, optional
        Where what other data have taught had a share in it: the numbers of that, by part (``centre``, ``width``,
        ``others``) and name. For the record; no count depends on it.

    Notes
    -----
    With σ the logistic function, p_k the highest probability of candidate k, and d_k that of its saddle::

        f(p) = σ(slope · logit(p) + offset + v_k + crowding · log((1 + n) / (1 + typical)) + spread · z)
        p'_k = f(p_k) - f(d_k), without saddle f(p_k), and 0 for a ripple
        C    = Σ_k Bernoulli(p'_k) + M,    M negative binomial with mean rate + share · Σ_k p'_k and its own shape

    where n = Σ_k (p_k - d_k) is the count that the scan seems to have, without ripples, and z ~ N(0, 1) is one number
    per scan. Features x_kj of candidate k, such as the logarithm of its volume, shift all of its heights by
    v_k = Σ_j weight_j · (x_kj - typical_j), which is 0 without weights.

    The integral over z is a sum over 9 to 41 nodes, so that the count is a mixture (`MixtureOfCounts`): its variance
    between members is what scans differ by as a whole. Candidates are those of the map as it is: regions above the
    threshold of the protocol, before the correction.

    Of changes, p'_k is the probability that a candidate is new (gone, persisting), made of f(r_k), f(d_k) and f(u_k):
    r_k and u_k are the probabilities at both times where the candidate rises most above the other time; and n is the
    number of changes that there seem to be.

    Examples
    --------
    A network trained with weight 3 on lesion voxels says 0.75 where one in two is a lesion:

    >>> Calibration.for_positive_weight(3).existence([0.75, 0.9]).round(4)
    array([0.5 , 0.75])

    Where scans differ as a whole, forty candidates say less than they seem to:

    >>> alike, different = Calibration(), Calibration(spread=1.0)
    >>> alike.distribution([0.5] * 40).interval(0.9), different.distribution([0.5] * 40).interval(0.9)
    ((15, 25), (6, 34))
    """

    slope: float = 1.0
    offset: float = 0.0
    extra_rate: float = 0.0
    extra_share: float = 0.0
    extra_shape: float = math.inf
    spread: float = 0.0
    crowding: float = 0.0
    typical_count: float = 0.0
    ripple: float = 0.0
    coupling: float = DEFAULT_COUPLING
    counted: Counted = "lesions"
    weights: Mapping[str, float] = field(default_factory=dict, kw_only=True, hash=False)
    typical_features: Mapping[str, float] = field(default_factory=dict, kw_only=True, hash=False)
    draws: Mapping[str, tuple[float, ...]] = field(default_factory=dict, kw_only=True, hash=False)
    of_regions: Calibration | None = field(default=None, kw_only=True)
    protocol: CountingProtocol | None = field(default=None, kw_only=True)
    origin: str = field(default="none", kw_only=True)
    prior: Mapping[str, Mapping[str, float]] = field(default_factory=dict, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        if not is_between(self.slope, 0, _FARTHEST) or self.slope == 0:
            raise CalibrationError(
                f"Expected a slope above 0 (larger must stay larger) and at most {_FARTHEST:g}, but got {self.slope!r}."
            )
        if not is_between(self.offset, -_FARTHEST, _FARTHEST):
            raise CalibrationError(
                f"Expected the offset to be a number of at most ±{_FARTHEST:g}, but got {self.offset!r}."
            )
        for name, least, most in _RANGES:
            if not is_between(getattr(self, name), least, most):
                raise CalibrationError(
                    f"Expected {name} to be from {least:g} to {most:g}, but got {getattr(self, name)!r}."
                )
        if self.counted not in get_args(Counted):
            raise CalibrationError(
                f"Expected counted to be one of {', '.join(get_args(Counted))}, but got {self.counted!r}."
            )
        for name in _OF_FEATURES:
            object.__setattr__(self, name, _checked_features(name, getattr(self, name)))
        object.__setattr__(self, "draws", _checked_draws(self.draws))
        object.__setattr__(self, "prior", _checked_prior(self.prior))
        if self.extra_shape != math.inf and not is_between(self.extra_shape, _SMALLEST_SHAPE, math.inf):
            raise CalibrationError(
                f"Expected extra_shape to be at least {_SMALLEST_SHAPE:g}, but got {self.extra_shape!r}."
            )
        self._check_of_regions()

    def _check_of_regions(self) -> None:
        other = self.of_regions
        if other is None:
            return
        if not isinstance(other, Calibration) or other.of_regions is not None:
            raise CalibrationError("Expected of_regions to be a calibration that is none of two.")
        if self.counted != "lesions" or other.counted != "lesions" or self.weights or other.weights:
            raise CalibrationError("Expected of_regions with calibrations of lesions, without features, only.")
        if other.extra_shape != self.extra_shape:
            raise CalibrationError("Expected both calibrations of a mixture to have the same extra_shape.")

    @property
    def is_identity(self) -> bool:
        """Whether it leaves counts as they are."""
        changed = self.draws or self.offset or self.spread or self.crowding or self.has_extra or self.ripple
        return self.slope == 1 and not changed and not any(self.weights.values()) and self.of_regions is None

    @property
    def of_typical_candidates(self) -> Self:
        """What it does to candidates whose features are typical: they need none."""
        return replace(self, weights={}, typical_features={})

    @cached_property
    def members(self) -> tuple[Self, ...]:
        """The calibrations that counts are averaged over: itself, where there is but one."""
        if not self.draws:
            return (self,)
        rows = zip(*self.draws.values(), strict=True)
        return tuple(replace(self, draws={}, **dict(zip(self.draws, row, strict=True))) for row in rows)

    def averaged_over(self, members: Sequence[Calibration]) -> Self:
        """The same, averaged over others, which differ from it in some fields only."""
        columns = {name: tuple(float(f"{getattr(one, name):.6g}") for one in members) for name in _DRAWN}
        return replace(self, draws=columns)

    @property
    def has_extra(self) -> bool:
        """Whether lesions without a candidate of their own are expected."""
        both = (*self.members, *(() if self.of_regions is None else self.of_regions.members))
        return any(one.extra_rate > 0 or one.extra_share > 0 for one in both)

    @property
    def is_joint(self) -> bool:
        """Whether a count is more than a sum of candidates that are independent."""
        return self.has_extra or self.spread > 0 or bool(self.draws) or self.of_regions is not None

    @cached_property
    def of_peaks(self) -> Self:
        """What it does beside that of regions."""
        return replace(self, of_regions=None)

    @classmethod
    def for_positive_weight(cls, weight: float) -> Self:
        """Undo the weight that a cross-entropy loss gave to lesion voxels. Nothing is fitted.

        Notes
        -----
        The loss is least where p / (1 - p) = w · q / (1 - q) with the true probability q: the logit is too large by
        log w.
        """
        if not is_between(weight, 0, math.inf) or weight == 0:
            raise CalibrationError(f"Expected a positive weight, but got {weight!r}.")
        return cls(offset=-math.log(weight), origin=f"positive weight {weight:g} of the loss")

    def existence(self, candidates: TableLike, /, *, among: float | None = None) -> NDArray[np.float64]:
        """Corrected existence probabilities, on average over scans that differ as a whole.

        Parameters
        ----------
        candidates : CandidateTable, Candidates, or array_like of float
            Of a scan; where candidates do not touch, an array of the highest probability of each is enough.
        among : float, optional
            The count that the scan seems to have. Default: the sum over these candidates, which are then all of it.
        """
        table = as_table(candidates, self.weights)
        if self.of_regions is not None:
            of_peaks, regions = self.of_peaks.existence(table, among=among), table.regions
            of_regions = self.of_regions.existence(table.rows(regions), among=among)
            return (of_peaks + _spread_out(of_regions, regions)) / 2
        among = self.seeming_count(table) if among is None else among
        slopes, shifts, weights = self._nodes(FEWEST_NODES, among)
        at = self._at(table, slopes[:, np.newaxis], shifts[:, np.newaxis] + self._from_features(table))
        return np.asarray(weights @ at)

    def inverse(self, probability: float, /) -> float:
        """The uncorrected probability that becomes this one, in a typical scan: a threshold there is this one here."""
        low, high, typical = 0.0, 1.0, self.of_typical_candidates
        for _ in range(60):
            middle = (low + high) / 2
            is_below = float(typical.existence([middle], among=self.typical_count)[0]) < probability
            low, high = (middle, high) if is_below else (low, middle)
        return (low + high) / 2

    def distribution(self, candidates: TableLike, /) -> CountDistribution:
        """Distribution of the count, from what `existence` takes: all candidates of a scan."""
        if self.of_regions is not None:
            table = as_table(candidates)
            regions = self.of_regions.distribution(table.rows(table.regions))
            return MixtureOfCounts([self.of_peaks.distribution(table), regions])
        at = self.at_nodes(candidates)
        if self.draws:
            return over_nodes(at.existence, at.weights, at.extra, self.extra_shape)
        members = [self._with_extra(PoissonBinomial(one)) for one in at.existence]
        return members[0] if len(members) == 1 else MixtureOfCounts(members, weights=at.weights)

    def at_nodes(self, candidates: TableLike, /) -> AtNodes:
        """All candidates of a scan at each node of what it may share."""
        table = as_table(candidates, self.weights)
        if self.of_regions is not None:
            return self.of_peaks.at_nodes(table).or_else(
                self.of_regions.at_nodes(table.rows(table.regions)), table.regions
            )
        if table.is_of_changes == (self.counted == "lesions"):
            raise self._wrong_for("changes" if table.is_of_changes else "lesions")
        among = self.seeming_count(table)
        slopes, shifts, weights = self._nodes(n_nodes(self.spread, len(table)), among)
        existence = self._at(table, slopes[:, np.newaxis], shifts[:, np.newaxis] + self._from_features(table))
        rate, share = (self._of_members(name, len(weights)) for name in ("extra_rate", "extra_share"))
        return AtNodes(existence, weights, rate, share)

    def _nodes(self, n: int, among: float) -> tuple[NDArray[np.float64], ...]:
        """Slopes and offsets that a whole scan may have, which seems to have so many lesions, and their weights."""
        z, weights = normal_nodes(_NODES_OF_DRAWS if self.draws else n if self.spread > 0 else 1)
        n_all = len(z) * len(self.members)
        slope, offset, crowding, spread = (
            self._of_members(name, n_all) for name in ("slope", "offset", "crowding", "spread")
        )
        crowd = math.log1p(among) - math.log1p(self.typical_count)
        shifts = offset + crowding * crowd + spread * np.tile(z, len(self.members))
        return slope, shifts, np.tile(weights, len(self.members)) / len(self.members)

    def _of_members(self, name: str, n_nodes: int) -> NDArray[np.float64]:
        """A number of each member, at each of its nodes."""
        return np.repeat([getattr(one, name) for one in self.members], n_nodes // len(self.members))

    def _from_features(self, table: CandidateTable) -> NDArray[np.float64] | float:
        """By how much the features of each candidate shift its logits, shape (K,)."""
        if not self.weights:
            return 0.0
        typical = [self.typical_features.get(name, 0.0) for name in self.weights]
        return np.asarray((table.features(self.weights) - typical) @ np.array([*self.weights.values()]))

    def _at(self, table: CandidateTable, slope: Any, shift: Any) -> NDArray[np.float64]:
        """Existence where logits are stretched and shifted: f(peak), less f(saddle) where there is one."""
        below = _above_zero(table.saddle, slope, shift) if table.touches else 0.0
        own = _corrected(table.peak, slope, shift) - below
        if table.is_of_changes:
            then = _above_zero(table["other"], slope, shift)
            changed = only_now(_corrected(table["risen"], slope, shift), below, then, self.coupling)
            own = own - changed if self.counted == "persisting" else changed
        return np.where(table.stands_out(self.ripple), np.maximum(own, 0.0), 0.0)

    def seeming_count(self, table: CandidateTable) -> float:
        """The count that a scan has as its map is: the sum of peaks, less saddles; of changes, as they seem."""
        return float(np.sum(table.existence(self.counted, self.coupling), where=table.stands_out(self.ripple)))

    def _with_extra(self, found: PoissonBinomial) -> CountDistribution:
        extra = self.extra_rate + self.extra_share * found.mean()
        return CountWithExtra(found, extra, self.extra_shape) if extra > 0 else found

    def check(self, protocol: CountingProtocol, counted: Counted = "lesions") -> None:
        """Raise unless it was fitted for such counts, under this protocol, and with features that maps have."""
        if self.counted != counted:
            raise self._wrong_for(_in_words(counted))
        if self.protocol is not None and self.protocol != protocol:
            raise CalibrationError(
                f"The calibration was fitted for lesions defined as {self.protocol}, but these are defined as "
                f"{protocol}. Count with the same protocol, or calibrate again."
            )
        if unknown := [name for name in self.weights if name not in FEATURES]:
            raise CalibrationError(
                f"The calibration needs the {' and '.join(unknown)} of each candidate, which maps do not have. "
                f"Known are {', '.join(FEATURES)}."
            )

    def _wrong_for(self, counted: str) -> CalibrationError:
        command = "count" if self.counted == "lesions" else "compare"
        return CalibrationError(
            f"The calibration was fitted for the number of {_in_words(self.counted)}, and does not correct that of "
            f"{counted}. It is one for lesioncount {command}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields, as plain values; an infinite shape is None, for JSON has no infinity."""
        values = asdict(self) | {"extra_shape": None if math.isinf(self.extra_shape) else self.extra_shape}
        values["protocol"] = None if self.protocol is None else self.protocol.to_dict()
        left_out = () if self.counted != "lesions" else ("coupling", "counted")
        if self.of_regions is not None:
            values["of_regions"] = self.of_regions.to_dict()
        return {name: of for name, of in values.items() if name not in left_out and (of or name not in _LEFT_OUT)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From the fields; an unknown field is an error."""
        known = [one.name for one in fields(cls)]
        if not isinstance(values, dict) or set(values) - set(known):
            raise CalibrationError(f"Expected a calibration with the fields {', '.join(known)}, but got {values!r}.")
        given = dict(values)
        if given.get("extra_shape", 0) is None:
            given["extra_shape"] = math.inf
        for name in ("protocol", "of_regions"):
            if not isinstance(given.get(name, {}), dict | None):
                raise CalibrationError(f"Expected {name} of a calibration to be an object, but got {given[name]!r}.")
        protocol = given.get("protocol")
        if isinstance(given.get("draws"), Mapping):
            given["draws"] = {name: tuple(of) for name, of in given["draws"].items()}
        given["protocol"] = None if protocol is None else CountingProtocol.from_dict(protocol)
        other = given.get("of_regions")
        given["of_regions"] = None if other is None else cls.from_dict(other)
        return cls(**given)

    @property
    def is_stated(self) -> bool:
        """Whether it comes from no counted scan, but from a number that somebody has stated."""
        return NOT_CHECKED in self.origin

    @property
    def caveat(self) -> str:
        """What all that is made with a stated calibration must say, in a sentence; empty of others."""
        return f"The calibration is from {self.origin}." if self.is_stated else ""

    def __str__(self) -> str:
        """One line in plain words."""
        if self.is_identity:
            return f"nothing is corrected (from {self.origin})"
        parts = [f"slope {self.slope:.3g}, offset {self.offset:+.3g} on the logit"]
        if self.spread >= _WORTH_A_WORD:
            parts.append(f"spread {self.spread:.3g} between scans")
        if abs(self.crowding) >= _WORTH_A_WORD:
            parts.append(f"crowding {self.crowding:+.2g} around {self.typical_count:.2g} lesions")
        if self.counted != "lesions":
            parts.append(f"coupling {self.coupling:.3g} between the times")
        parts += [f"{name} {weight:+.2g}" for name, weight in self.weights.items()]
        if self.ripple:
            parts.append(f"peaks that rise by less than {self.ripple:.2g} left out")
        if self.has_extra:
            share = f" and {self.extra_share:.2g} for each that has one" if self.extra_share else ""
            parts.append(f"{self.extra_rate:.3g} lesions per scan without a candidate of their own{share}")
        if self.draws:
            parts.append(
                f"averaged over {len(self.members)} calibrations{'' if self.is_stated else ' that fit about as well'}"
            )
        if self.of_regions is not None:
            own, regions = ", ".join(parts), str(self.of_regions).rpartition(" (from ")[0]
            return f"half of peaks: {own}; half of regions: {regions} (from {self.origin})"
        return f"{', '.join(parts)} (from {self.origin})"


def _checked_features(name: str, values: Any) -> dict[str, float]:
    if not _are_numbers(values):
        raise CalibrationError(f"Expected {name} to be a number for each feature of candidates, but got {values!r}.")
    return dict(values)


def _checked_prior(prior: Any) -> dict[str, dict[str, float]]:
    if not isinstance(prior, Mapping) or not all(map(_are_numbers, prior.values())):
        raise CalibrationError(f"Expected the prior to be numbers by part and name, but got {reprlib.repr(prior)}.")
    return {part: dict(values) for part, values in prior.items()}


def _are_numbers(values: Any) -> bool:
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and is_between(value, -_FARTHEST, _FARTHEST) for name, value in values.items()
    )


def _checked_draws(draws: Any) -> dict[str, tuple[float, ...]]:
    if not isinstance(draws, Mapping) or not set(draws) <= set(_DRAWN):
        raise CalibrationError(f"Expected draws of {', '.join(_DRAWN)}, but got {reprlib.repr(draws)}.")
    columns = {name: tuple(of) for name, of in draws.items()}
    sizes = {len(of) for of in columns.values()}
    if len(sizes) > 1 or any(not 0 < n <= _MOST_DRAWS for n in sizes):
        raise CalibrationError(
            f"Expected as many draws of each number, at most {_MOST_DRAWS}, but got {sorted(sizes)}."
        )
    return columns


def _in_words(counted: Counted) -> str:
    return "lesions" if counted == "lesions" else f"{counted} lesions"


def _above_zero(p: NDArray[np.float64], slope: Any, shift: Any) -> NDArray[np.float64]:
    """Corrected, but for 0, which says that nothing is there."""
    return np.where(p > 0, _corrected(p, slope, shift), 0.0)


def _corrected(p: NDArray[np.float64], slope: Any, shift: Any) -> NDArray[np.float64]:
    if np.all(slope == 1) and not np.any(shift):
        return np.broadcast_to(p, np.broadcast_shapes(p.shape, np.shape(slope), np.shape(shift)))
    return np.asarray(_sigmoid(slope * logit(p) + shift))


def _spread_out(values: NDArray[np.float64], at: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Values of some candidates in the places of these among all, with 0 elsewhere."""
    full = np.zeros((*values.shape[:-1], len(at)))
    full[..., at] = values
    return full


def _sigmoid(x: Any) -> Any:
    """The logistic function, which overflows for no argument."""
    return np.exp(-np.logaddexp(0, -x))


def logit(probabilities: ArrayLike) -> NDArray[np.float64]:
    """Logits, with saturated probabilities taken as nearly so."""
    p = np.clip(np.asarray(probabilities, dtype=np.float64), SATURATION, 1 - SATURATION)
    return np.asarray(np.log(p) - np.log1p(-p))


# Nodes of the integral over what a whole scan shares, from -3.5 to 3.5 standard deviations. Each node is a distribution
# of its own, about √(K / 8) wide for K candidates; more nodes are needed where these would lie apart.
_REACH = 3.5
FEWEST_NODES, _MOST_NODES = 9, 41


def n_nodes(spread: float, n_candidates: int) -> int:
    """How many nodes the integral over scans needs, so that their distributions overlap: an odd number."""
    needed = math.ceil(2 * _REACH / 1.5 * spread * math.sqrt(n_candidates / 8))
    return min(max(needed, FEWEST_NODES), _MOST_NODES) // 2 * 2 + 1


def normal_nodes(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for integrals over a standard normal variable: evenly spaced, which is enough for it."""
    if n == 1:
        return np.zeros(1), np.ones(1)
    z = np.linspace(-_REACH, _REACH, n)
    weights = np.exp(-(z**2) / 2)
    return z, weights / weights.sum()
