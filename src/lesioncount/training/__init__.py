"""The training protocol of the paper."""
