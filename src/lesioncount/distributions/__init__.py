"""Step 3: existence probabilities → the distribution of the count; mixtures, extra lesions, totals, tilting."""
