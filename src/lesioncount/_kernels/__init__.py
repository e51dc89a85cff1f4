"""Compiled loops: the region sweep and the Poisson-binomial recursion."""
