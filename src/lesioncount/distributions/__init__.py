"""What a distribution of a count can say: of candidates, of an ensemble, with lesions that left no candidate."""
