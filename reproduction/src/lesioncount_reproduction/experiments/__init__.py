"""The experiments of the paper: one file each, on a synthetic cohort that anyone can make and on real images."""
