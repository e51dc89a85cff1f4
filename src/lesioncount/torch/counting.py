"""A batch of maps → count distributions with gradient: the three steps in one call, and as a module."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lesioncount.checks import checked_protocol
from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.errors import ProtocolError, ShapeError
from lesioncount.protocol import CountingProtocol
from lesioncount.torch.activation import Activation, checked_activation, lesion_maps
from lesioncount.torch.candidates import candidate_positions, with_rescued
from lesioncount.torch.existence import existence_logits
from lesioncount.torch.poisson_binomial import PoissonBinomial
from lesioncount.torch.precision import is_inside, outside_of_compilation


def count_distribution(
    maps: Tensor,
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    spatial_dims: int | None = None,
    mask: Tensor | None = None,
    logits: bool = True,
    activation: Activation = "sigmoid",
    rescue: Tensor | None = None,
) -> PoissonBinomial:
    """The distribution of the number of lesions in each map of a batch.

    Parameters
    ----------
    maps : Tensor
        (batch, *spatial), (batch, 1, *spatial) or (batch, classes, *spatial), with two or three spatial axes.
    protocol : CountingProtocol or str, optional
        What counts as one lesion, or the name of a preset. Default: the protocol of the paper.
    spatial_dims : int, optional
        2 or 3. Needed for tensors of four axes, which may be (batch, classes, y, x) or (batch, z, y, x), unless the
        second axis has length 1.
    mask : Tensor, optional
        (batch, *spatial), for all classes alike. Only voxels where it is neither 0 nor NaN are looked at.
    logits : bool, default True
        Whether the maps hold logits. With False they hold probabilities; logits are safer, see `existence_logits`.
    activation : {"sigmoid", "softmax"}, default "sigmoid"
        What makes probabilities of the logits, or has made them. With ``"softmax"``, maps are (batch, classes,
        *spatial), and the first class is the background, which is not counted.
    rescue : Tensor of int, shape (batch,) or (batch, classes), optional
        Maps with fewer candidates than this get the strongest local peaks below the threshold as well.

    Returns
    -------
    PoissonBinomial
        Of batch shape (batch,), or (batch, classes) when there are several.
    """
    checked = checked_protocol(protocol)
    given = maps.dtype
    maps, spatial_dims = lesion_maps(maps, activation=activation, logits=logits, spatial_dims=spatial_dims)
    if checked.needs_spacing:
        raise ProtocolError("A batch has no voxel size: use min_voxels instead of a smallest size in millimetres.")
    batch, classes, spatial = axes(maps, spatial_dims)
    flat = maps.reshape(batch * classes, *spatial)
    inside = None if mask is None else mask_of_maps(mask, batch, classes, spatial)
    positions = candidate_positions(flat, protocol=checked, logits=logits, mask=inside)
    if rescue is not None:
        wanted = rescue.reshape(-1).to(maps.device)
        threshold = _logit(checked.threshold) if logits else checked.threshold
        positions = with_rescued(flat, positions, wanted, threshold=threshold, mask=inside)
    existence = existence_logits(flat, positions, logits=logits)
    count = PoissonBinomial(existence.reshape(batch, classes, -1) if classes > 1 else existence)
    return count.as_type(torch.float32 if given in (torch.float16, torch.bfloat16) else given)


@outside_of_compilation
def count_log_probs(
    maps: Tensor,
    /,
    *,
    max_count: int | None = MAX_COUNT,
    protocol: CountingProtocol | str | None = None,
    spatial_dims: int | None = None,
    mask: Tensor | None = None,
    logits: bool = True,
    activation: Activation = "sigmoid",
) -> Tensor:
    """Logarithms of P(0), P(1), … P(max_count or more) for each map of a batch, with gradient.

    Parameters
    ----------
    max_count : int or None, default 4
        The last bin holds this count and all larger ones. None: as many bins as there are possible counts, which
        differ from batch to batch.
    maps, protocol, spatial_dims, mask, logits, activation
        As in `count_distribution`.

    Returns
    -------
    Tensor, shape (batch, max_count + 1) or (batch, classes, max_count + 1)
        float32 for maps of half precision, else of their type. -inf for counts above the number of candidates.

    Notes
    -----
    Section 3.2 of the paper. The gradient reaches the highest voxel of each candidate, the first in C order of equal
    ones, and no other. With ``protocol="peaks"`` it also reaches the saddles, with the opposite sign: what raises a
    peak lowers its saddle.

    Examples
    --------
    >>> logits = torch.full((1, 8, 8, 8), -6.0)
    >>> logits[0, 2, 2, 2], logits[0, 5, 5, 5] = torch.logit(torch.tensor([0.5189, 0.7840]))
    >>> count_log_probs(logits, max_count=2, spatial_dims=3).exp()
    tensor([[0.1039, 0.4893, 0.4068]])
    """
    distribution = count_distribution(
        maps, protocol=protocol, spatial_dims=spatial_dims, mask=mask, logits=logits, activation=activation
    )
    return distribution.log_bins(distribution.logits.shape[-1] if max_count is None else max_count)


class LesionCounter(nn.Module):
    """The count as a module without parameters, for the end of a network.

    Parameters
    ----------
    protocol, spatial_dims, logits, activation
        As in `count_distribution`.
    max_count : int, optional
        If given, the module returns `count_log_probs` up to it; if not, the whole distribution.
    """

    def __init__(
        self,
        protocol: CountingProtocol | str | None = None,
        *,
        max_count: int | None = None,
        spatial_dims: int | None = None,
        logits: bool = True,
        activation: Activation = "sigmoid",
    ) -> None:
        super().__init__()
        self.protocol = checked_protocol(protocol)
        self.activation = checked_activation(activation)
        self.max_count = max_count
        self.spatial_dims = spatial_dims
        self.logits = logits

    @outside_of_compilation
    def forward(self, maps: Tensor, mask: Tensor | None = None) -> PoissonBinomial | Tensor:
        """Count the lesions of each map."""
        distribution = count_distribution(
            maps,
            protocol=self.protocol,
            spatial_dims=self.spatial_dims,
            mask=mask,
            logits=self.logits,
            activation=self.activation,
        )
        return distribution if self.max_count is None else distribution.log_bins(self.max_count)

    def extra_repr(self) -> str:
        """What it was made with."""
        return f"{self.protocol}, max_count={self.max_count}"


def axes(maps: Tensor, spatial_dims: int | None) -> tuple[int, int, tuple[int, ...]]:
    """Batch, classes and spatial shape of a tensor, or a `ShapeError` that says what was expected."""
    shape = tuple(maps.shape)
    if spatial_dims not in (None, 2, 3):
        raise ShapeError(f"Expected spatial_dims to be 2 or 3, but got {spatial_dims!r}.")
    if spatial_dims is None:
        spatial_dims = _spatial_dims(shape)
    n_class_axes = maps.ndim - 1 - spatial_dims
    if spatial_dims == 0 or n_class_axes not in (0, 1):
        one = " A single map is a batch of one: maps[None]." if maps.ndim == 2 or n_class_axes == -1 else ""
        raise ShapeError(
            "Expected maps of shape (batch, *spatial) or (batch, classes, *spatial) with two or three spatial axes, "
            f"but got {shape}{f' with spatial_dims={spatial_dims}' if spatial_dims else ''}.{one}"
        )
    if 0 in shape:
        raise ShapeError(f"Expected maps with voxels, but axis {shape.index(0)} of their shape {shape} has length 0.")
    return shape[0], shape[1] if n_class_axes else 1, shape[-spatial_dims:]


def _spatial_dims(shape: tuple[int, ...]) -> int:
    """The number of spatial axes, where the shape leaves no doubt; 0 where there is no such shape."""
    if len(shape) == 4 and shape[1] != 1:
        raise ShapeError(
            f"Maps of shape {shape} may be (batch, classes, y, x) or (batch, z, y, x). Pass spatial_dims=2 for the "
            "former or spatial_dims=3 for the latter."
        )
    return {3: 2, 4: 2, 5: 3}.get(len(shape), 0)


def mask_of_maps(mask: Tensor, batch: int, classes: int, spatial: tuple[int, ...]) -> Tensor:
    """A mask for each map, as Tensor of bool, shape (batch · classes, *spatial)."""
    if not same_axes(mask.shape, (batch, *spatial)):
        raise ShapeError(
            f"Expected a mask of shape {(batch, *spatial)}, (batch, *spatial), for all classes alike, but the mask has "
            f"{tuple(mask.shape)}."
        )
    return is_inside(mask).reshape(batch, 1, *spatial).expand(batch, classes, *spatial).reshape(-1, *spatial)


def same_axes(shape: Sequence[int], expected: Sequence[int]) -> bool:
    """Whether two shapes are the same but for axes of length 1."""
    return [n for n in shape if n != 1] == [n for n in expected if n != 1]


def _logit(probability: float) -> float:
    return math.log(probability / (1 - probability)) if probability > 0 else -math.inf
