"""Numbers of the paper, to be put beside ours. Their data are not public: compare patterns, not digits."""

from __future__ import annotations

# Table C.1: at τ = 0.1, 0.2, … 0.9, in percent.
THRESHOLD = {
    "cc": {
        "accuracy": (69.2, 75.7, 80.7, 83.6, 85.8, 87.6, 90.3, 90.1, 86.2),
        "f1": (54.2, 60.5, 64.5, 68.4, 71.4, 73.7, 78.1, 75.3, 65.4),
        "precision": (50.9, 57.0, 60.9, 65.2, 68.5, 71.6, 77.0, 76.1, 70.1),
        "recall": (61.9, 66.9, 69.9, 73.0, 75.4, 76.3, 79.5, 74.6, 62.5),
    },
    "ours_post_hoc": {
        "accuracy": (86.3, 86.3, 86.5, 86.5, 86.0, 87.8, 90.3, 90.1, 86.2),
        "f1": (74.1, 74.2, 74.5, 74.5, 72.7, 74.2, 78.1, 75.3, 65.4),
        "precision": (71.7, 71.9, 72.3, 72.1, 69.9, 72.2, 77.0, 76.1, 70.1),
        "recall": (77.7, 77.7, 78.2, 78.2, 76.3, 76.5, 79.5, 74.6, 62.5),
    },
}

# Table 1: accuracy, F1, voxel F1, in percent; voxel ECE in 1e-5, voxel MCE; success rate and drop at λ = 0.5, percent.
MULTITASK: dict[str, tuple[float | str, ...]] = {
    "bottleneck": (87.6, 67.3, 69.3, 8.05, 0.363, 86.1, 74.76),
    "multihead": (88.7, 70.8, 68.4, 3.64, 0.213, 24.7, 21.80),
    "downstream": (86.7, 64.2, 62.0, 9.51, 0.160, 14.4, 12.43),
    "ours": (88.3, 70.8, 66.2, 0.72, 0.077, 8.1, 7.07),
    "ours_post_hoc": ("", "", "", "", 0.234, "", ""),  # section 4.2
}

# Table C.2: accuracy, F1, voxel F1, in percent; voxel ECE in 1e-5, voxel MCE; with a tenth of the training scans.
LOW_DATA = {
    "bottleneck": (76.6, 41.5, 66.7, 6.13, 0.306),
    "multihead": (80.8, 47.6, 58.0, 5.13, 0.276),
    "downstream": (82.9, 54.4, 59.2, 1.64, 0.119),
    "ours": (86.0, 65.1, 58.4, 2.70, 0.524),
    "ours_post_hoc": (86.5, 70.9, 68.2, 0.95, 0.116),
}

# Table C.3: accuracy after the attack, drop, success rate, in percent, for λ.
ADVERSARIAL = {
    0.1: {
        "bottleneck": (2.3, 84.51, 97.4),
        "multihead": (64.8, 23.33, 26.5),
        "downstream": (65.4, 20.65, 24.0),
        "ours": (75.1, 12.62, 14.4),
    },
    0.5: {
        "bottleneck": (12.0, 74.76, 86.1),
        "multihead": (66.3, 21.80, 24.7),
        "downstream": (73.6, 12.43, 14.4),
        "ours": (80.7, 7.07, 8.1),
    },
    0.9: {
        "bottleneck": (17.8, 69.02, 79.5),
        "multihead": (67.5, 20.65, 23.4),
        "downstream": (77.1, 8.99, 10.4),
        "ours": (83.9, 3.82, 4.4),
    },
}

# Section 4.1: scans on which all samples of Monte Carlo dropout gave the same count, in percent.
ALWAYS_THE_SAME = 80.0
