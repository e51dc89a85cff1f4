"""The output of a UNet → log-probabilities of the count: from the map, without parameters, or by convolutions."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from lesioncount.checks import checked_protocol
from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.learning.networks.layers import average_pooled, channel_dropout, convolution, leaky_relu
from lesioncount.learning.networks.unet import UNetOutput
from lesioncount.learning.plausible import Readout
from lesioncount.protocol import CountingProtocol
from lesioncount.torch import count_log_probs
from lesioncount.torch.precision import outside_of_compilation

# Number of filters of each block, as multiples of that of the first.
SHALLOW = (1, 2)
DEEP = (1, 2, 4, 4, 4, 4)

Representation = Literal["logits", "decoded", "bottleneck"]


class MapHead(nn.Module):
    """The count follows from the map, by `count_log_probs`: there is nothing to learn.

    Parameters
    ----------
    spatial_dims : int
        2 or 3.
    max_count : int, default 4
        The last bin holds this count and all larger ones.
    protocol : CountingProtocol or str, optional
        What counts as one lesion. Default: the protocol of the paper.
    """

    def __init__(
        self, *, spatial_dims: int, max_count: int = MAX_COUNT, protocol: CountingProtocol | str | None = None
    ) -> None:
        super().__init__()
        self.spatial_dims = spatial_dims
        self.max_count = max_count
        self.protocol = checked_protocol(protocol)

    @outside_of_compilation
    def forward(self, output: UNetOutput) -> Tensor:
        """Log-probabilities (batch, max_count + 1); -inf for counts above the number of candidates."""
        return count_log_probs(
            output.logits, max_count=self.max_count, protocol=self.protocol, spatial_dims=self.spatial_dims
        )


class ConvolutionalHead(nn.Module):
    """A fully convolutional network that classifies the count from one of the UNet's representations.

    Parameters
    ----------
    reads : {"bottleneck", "decoded", "logits"}
        Which representation. Logits are read as probabilities.
    spatial_dims : int
        2 or 3.
    in_channels : int
        Number of channels of the representation.
    filters : int
        Number of filters of the first block.
    multiples : tuple of int
        Number of filters of each block, as a multiple of ``filters``: `SHALLOW` or `DEEP`.
    convolutions : int
        Convolutions per block: 1, or 2 in the deep heads.
    dropout : float
        Probability that a channel is dropped after each block.
    max_count : int, default 4
        The last of the classes 0, 1, … is "this many or more".
    readout : {"mean", "max"}
        What is left of the image at the end is averaged, as in the paper; or the largest value of each feature is
        taken before the last layer, so that one small lesion is not diluted by all that is not lesion.

    Notes
    -----
    Appendix B.3 of the paper: a block is made of convolutions with a ReLU each, average pooling and dropout; the last
    layer, which has one filter per class, has no dropout. Two blocks and the last layer are the three layers of the
    bottleneck head; six blocks of two convolutions and the last layer are the seven of the others. Where the text is
    silent we follow the authors' published code: ReLUs are leaky and come after their convolution, the last layer looks
    at one voxel at a time, and the numbers of filters.

    Different here: convolutions keep the size, pooling rounds up, and what is left at the end is averaged. The authors'
    heads fit only images of 64 × 192 × 192, of which exactly one voxel is left.
    """

    def __init__(
        self,
        reads: Representation,
        *,
        spatial_dims: int,
        in_channels: int,
        filters: int,
        multiples: tuple[int, ...],
        convolutions: int,
        dropout: float,
        max_count: int = MAX_COUNT,
        readout: Readout = "mean",
    ) -> None:
        super().__init__()
        self.reads = reads
        self.readout = readout
        widths = [in_channels, *(filters * multiple for multiple in multiples)]
        self.blocks = nn.ModuleList(
            _block(spatial_dims, before, here, convolutions) for before, here in pairwise(widths)
        )
        self.dropout = channel_dropout(spatial_dims, dropout)
        self.last = convolution(spatial_dims, widths[-1], max_count + 1, kernel_size=1, bias=True)

    def forward(self, output: UNetOutput) -> Tensor:
        """Log-probabilities (batch, max_count + 1)."""
        features = output.logits.sigmoid() if self.reads == "logits" else getattr(output, self.reads)
        for block in self.blocks:
            features = self.dropout(average_pooled(block(features)))
        if self.readout == "max":
            features = features.amax(tuple(range(2, features.ndim)), keepdim=True)
        classes: Tensor = self.last(features).flatten(2).mean(2)
        return classes.to(self.last.weight.dtype).log_softmax(1)


def _block(spatial_dims: int, before: int, here: int, convolutions: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(convolutions):
        layers += [convolution(spatial_dims, here if i else before, here, bias=True), leaky_relu()]
    return nn.Sequential(*layers)
