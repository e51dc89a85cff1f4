"""Compiled loops: the region sweep, the merge tree of peaks, and the Poisson-binomial recursion."""
