"""Maps of real networks that were made out of fold, with the truth."""

import numpy as np

import lesioncount as lc
from lesioncount.trust.fitting import KnownTruth

FILES = {"leaves": "coffee_leaf_lesions/oof_maps.npz", "nuclei": "nuclei/nuclei.npz"}


def real_maps(folder, name, protocol="paper", noise=0.0):
    """Candidates with true counts, and the fold of each image; with noise of this size on the logit of each pixel."""
    with np.load(folder / FILES[name], allow_pickle=False) as file:
        logits, counts, folds = file["logit"], file["count"], file["fold"]
    if noise:
        logits = logits + np.random.default_rng(7).normal(0, noise, logits.shape)
    maps = [1 / (1 + np.exp(-one.astype(np.float64))) for one in logits]
    found = [lc.find_candidates(one, protocol=protocol, warn=False) for one in maps]
    return KnownTruth.of(found, counts), folds
