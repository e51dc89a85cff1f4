"""What a network gives → one map of lesion logits, or of probabilities, for each class."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from lesioncount.errors import ShapeError
from lesioncount.torch.patches import foreground_logits

# Channels that each have a sigmoid, or that are classes of one softmax, of which the first is the background.
Activation = Literal["sigmoid", "softmax"]


def checked_activation(activation: str) -> Activation:
    """The name of an activation, or an error that says which there are."""
    if activation == "softmax":
        return "softmax"
    if activation == "sigmoid":
        return "sigmoid"
    raise ValueError(f'Expected activation to be "sigmoid" or "softmax", but got {activation!r}.')


def lesion_maps(maps: Tensor, *, activation: str, logits: bool, spatial_dims: int | None) -> tuple[Tensor, int | None]:
    """Maps whose every channel is one class of lesions, and the number of their spatial axes where that is known.

    Parameters
    ----------
    maps : Tensor
        With a softmax, (batch, classes, *spatial), the background first: it is left out.
    activation : {"sigmoid", "softmax"}
    logits : bool
        Whether the maps come before the activation.
    spatial_dims : int or None
        What the caller said.

    Notes
    -----
    A channel before the softmax is not the logit of its probability; `foreground_logits` says which number is.
    """
    if checked_activation(activation) == "sigmoid":
        return maps, spatial_dims
    shape = tuple(maps.shape)
    n_spatial = maps.ndim - 2
    if n_spatial not in (2, 3) or spatial_dims not in (None, n_spatial) or shape[1] < 2:
        raise ShapeError(
            "Expected the output of a softmax as (batch, classes, *spatial), with the background first, so that there "
            f"are two classes or more, but got {shape}{'' if spatial_dims is None else f' for {spatial_dims} axes'}."
            f"{' A single channel has a sigmoid.' if n_spatial in (2, 3) and shape[1] == 1 else ''}"
        )
    lesions = foreground_logits(maps, range(1, shape[1]), regions=False) if logits else maps[:, 1:]
    return lesions, n_spatial
