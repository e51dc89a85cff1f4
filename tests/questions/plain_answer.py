"""The plain way to answer a question: a table of all combinations of counts, candidate by candidate."""

from collections import defaultdict

import numpy as np
from scipy import stats

# Extra lesions that are less probable than this, all together, are left out.
NEGLIGIBLE = 1e-12


def plain_answer(trials, holds):
    """The sum over all combinations of counts that fulfil a question, and over all nodes."""
    total = 0.0
    for node, weight in enumerate(trials.weights):
        table = counts_at(trials, node)
        total += weight * sum(p for counts, p in table.items() if holds(dict(zip(trials.names, counts, strict=True))))
    return total


def counts_at(trials, node):
    """The probability of each combination of counts."""
    p = trials.probability[node]
    numbers = np.arange(len(p)) if trials.trial is None else trials.trial
    table = {(0,) * len(trials.names): 1.0}
    for number in np.unique(numbers):
        outcomes = np.flatnonzero(numbers == number)
        table = summed(table, one_of(p[outcomes], {name: adds[outcomes] for name, adds in trials.adds.items()}))
    for extra in trials.extras:
        table = summed(table, extra_counts(extra, float(np.broadcast_to(extra.mean, len(trials.weights))[node])))
    return table


def one_of(p, adds):
    """What something adds that has one of several outcomes, or none."""
    table = defaultdict(float, {(0,) * len(adds): 1 - p.sum()})
    for i, one in enumerate(p):
        table[tuple(int(which[i]) for which in adds.values())] += one
    return table


def extra_counts(extra, mean):
    """What extra lesions add: a number of them, each in a cell of its own."""
    if mean == 0:
        return {(0,) * len(extra.adds): 1.0}
    r = extra.shape
    number = stats.poisson(mean) if np.isinf(r) else stats.nbinom(r, r / (r + mean))
    one = one_of(extra.share, extra.adds)
    so_many, total = {(0,) * len(extra.adds): 1.0}, defaultdict(float)
    for j in range(int(number.isf(NEGLIGIBLE)) + 1):
        for counts, p in so_many.items():
            total[counts] += number.pmf(j) * p
        so_many = summed(so_many, one)
    return total


def summed(a, b):
    """The table of the sums of two independent combinations of counts."""
    table = defaultdict(float)
    for counts_a, p_a in a.items():
        for counts_b, p_b in b.items():
            table[tuple(map(sum, zip(counts_a, counts_b, strict=True)))] += p_a * p_b
    return table
