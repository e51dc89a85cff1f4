"""Maps of real networks that were made out of fold, with the truth."""

import numpy as np

import lesioncount as lc
from lesioncount.trust.fitting import KnownTruth

FILES = {"leaves": "coffee_leaf_lesions/oof_maps.npz", "nuclei": "nuclei/nuclei.npz"}


def real_maps(folder, name):
    """Candidates of the paper's protocol with true counts, and the fold of each image."""
    with np.load(folder / FILES[name], allow_pickle=False) as file:
        logits, counts, folds = file["logit"], file["count"], file["fold"]
    existence = [lc.count_lesions(1 / (1 + np.exp(-one.astype(np.float64)))).existence for one in logits]
    return KnownTruth.of(existence, counts), folds
