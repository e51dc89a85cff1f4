"""The paper, reproduced: a synthetic cohort, photographs of leaves, and the experiments on both."""
