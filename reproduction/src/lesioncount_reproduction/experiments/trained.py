"""Whether a head has learned to count: the rule that decides which heads a claim is tested against.

It was fixed before any test scan was predicted. A head is *trained* when, on the validation scans,

1. its score has flattened: over all epochs in which it learned, the mean ranked probability score of the last quarter
   is below that of the quarter before by less than 5 % of what there was to gain, which is the score of always the
   frequencies of these scans, averaged over folds and seeds; and
2. it beats "always the most frequent count" clearly: its accuracy minus that of the most frequent class, which is taken
   from the same scans and so favours the constant, is above 0 with its whole 95 % interval over patients and with
   every seed.

A claim against a head that is not trained is not tested. Claim 8 is another matter: it says that heads do not learn
(`lowdata`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.on_support import rps
from lesioncount.trust.scores.predictions import Predictions
from lesioncount_reproduction.experiments.arms import HEADS
from lesioncount_reproduction.experiments.estimates import Resampling, estimate_of
from lesioncount_reproduction.experiments.jobs import Trained
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Column, Row, Table
from lesioncount_reproduction.experiments.scored import Counted
from lesioncount_reproduction.experiments.stats import ScanStats
from lesioncount_reproduction.experiments.study import Study
from lesioncount_reproduction.experiments.ways_to_count import NAMES, counted_bins

# How much the score may still have fallen, from the third quarter of the epochs to the last, as a share of the score of
# one who knows nothing of a scan. Learning rates go down to 0 at the end, so that every score falls a little there.
FLAT = 0.05


@dataclass(frozen=True)
class Learned:
    """What a head learned, on validation scans.

    Attributes
    ----------
    head : str
    fall : float
        How much lower the mean score of the last quarter of its epochs is than that of the quarter before, as a share
        of the score of always the frequencies of the scans.
    gain : Estimate
        Its accuracy minus that of the most frequent class.
    n_epochs : int
        In which it learned.
    """

    head: str
    fall: float
    gain: Estimate
    n_epochs: int

    @property
    def is_flat(self) -> bool:
        """Whether its score has flattened."""
        return self.fall < FLAT

    @property
    def beats_constant(self) -> bool:
        """Whether it counts better than always the same."""
        return min(self.gain.low, *self.gain.seeds) > 0

    @property
    def is_trained(self) -> bool:
        """Whether a claim can be tested against it."""
        return self.is_flat and self.beats_constant

    @property
    def why_not(self) -> str:
        """What is missing, in words; empty for a head that is trained."""
        reasons = []
        if not self.is_flat:
            reasons.append(f"its score was still falling, by {100 * self.fall:.1f} % of what there was to gain")
        stuck = sum(seed <= 0 for seed in self.gain.seeds)
        if self.gain.low > 0 and stuck:
            reasons.append(f"with {stuck} of {len(self.gain.seeds)} seeds it is no better than the most frequent count")
        elif not self.beats_constant:
            gain = written(self.gain, "points", unit=True)
            reasons.append(f"it does not clearly beat always the most frequent count ({gain})")
        return ", and ".join(reasons)


def learned_heads(study: Study, *, share: float = 1.0) -> dict[str, Learned]:
    """What each head learned."""
    return {head: learned_by(study, head, share=share) for head in HEADS}


def trained_heads(study: Study, *, share: float = 1.0) -> list[str]:
    """The heads that claims are tested against."""
    return [head for head, of in learned_heads(study, share=share).items() if of.is_trained]


def untrained_in_words(learned: dict[str, Learned]) -> str:
    """A sentence on the heads that are not trained, if there are any."""
    words = [f"{NAMES[head]} ({of.why_not})" for head, of in learned.items() if not of.is_trained]
    return f"Not trained by the rule: {'; '.join(words)}." if words else ""


def learned_table(learned: Mapping[str, Learned]) -> Table:
    """Which heads are trained, and why not, under names for each."""
    rows: list[Row] = [
        (name, of.n_epochs, of.fall, of.gain, "yes" if of.is_trained else f"no: {of.why_not}")
        for name, of in learned.items()
    ]
    columns = (
        Column("head"),
        Column("epochs", "whole"),
        Column("fall of the score, %", "percent"),
        Column("accuracy minus most frequent count, points", "points"),
        Column("trained"),
    )
    note = (
        "On validation scans. The score is the ranked probability score; its fall is from the third quarter of the "
        "epochs to the last, as a share of the score of always the frequencies of the scans, and below "
        f"{100 * FLAT:.0f} % it counts as flat. A claim against a head that is not trained is not tested."
    )
    return Table("trained", "Which heads have learned to count", columns, tuple(rows), note)


def learned_by(study: Study, head: str, *, share: float = 1.0) -> Learned:
    """What a head learned."""
    heads, constants, curves, nothing = [], [], [], []
    for seed in study.seeds:
        arms = list(study.arms_of_seed(head, seed, share=share))
        stats = ScanStats.joined([Trained(arm).stats(study.cache, "val") for arm in arms])
        curves += [Trained(arm).curve(study.cache) for arm in arms]
        heads.append(Counted(counted_bins(study, stats), stats.patients))
        constants.append(most_frequent(study, stats))
        nothing.append(_score_of_frequencies(study, stats))
    resampling = Resampling.of(heads)
    ours, constant = (resampling.samples(of)["accuracy"] for of in (heads, constants))
    gain = estimate_of(ours - constant)
    return Learned(head, _fall(curves) / float(np.mean(nothing)), gain, arms[0].config.run.n_epochs)


def most_frequent(study: Study, stats: ScanStats) -> Counted:
    """Always the class that is most frequent among these very scans."""
    classes = study.classes.of(stats.counts)
    table = np.zeros((len(stats), study.classes.n))
    table[:, np.bincount(classes).argmax()] = 1.0
    return Counted(Predictions.of_bins(table, classes), stats.patients)


def _score_of_frequencies(study: Study, stats: ScanStats) -> float:
    """The score of one who knows how frequent counts are, and nothing of a scan."""
    classes = study.classes.of(stats.counts)
    shares = np.bincount(classes, minlength=study.classes.n) / len(classes)
    return float(rps(np.tile(shares, (len(classes), 1)), classes).mean())


def _fall(curves: Sequence[NDArray[np.float64]]) -> float:
    """How much the mean score of the last quarter is below that of the quarter before."""
    quarters = [np.array_split(curve, 4) for curve in curves]
    before, last = (float(np.mean([quarter[i].mean() for quarter in quarters])) for i in (2, 3))
    return before - last
