"""The four methods of the paper, by name: what the count is computed from."""

from __future__ import annotations

from typing import Literal, get_args

Method = Literal["map", "bottleneck", "multihead", "downstream"]
METHODS: tuple[str, ...] = get_args(Method)

# What a counting head takes of what is left of the image: the mean, as in the paper, or the largest value.
Readout = Literal["mean", "max"]
READOUTS: tuple[str, ...] = get_args(Readout)
