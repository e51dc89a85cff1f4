"""Images → segmentation logits and log-probabilities of the count: the four methods of the paper, one interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from torch import Tensor, nn

from lesioncount.checks import checked_protocol
from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.learning.networks.heads import DEEP, SHALLOW, ConvolutionalHead, MapHead
from lesioncount.learning.networks.layers import DROPOUTS
from lesioncount.learning.networks.unet import UNet
from lesioncount.learning.plausible import METHODS, MOST_COUNTS, MOST_FILTERS, READOUTS, Readout, shown
from lesioncount.protocol import CountingProtocol

# The head of multi-head learns ten times more slowly than the rest: otherwise it does not converge (appendix B.1).
SLOW_HEAD = 0.1


class CountingOutput(NamedTuple):
    """What a counting network gives."""

    logits: Tensor
    """The segmentation, (batch, 1, *spatial)."""
    log_probs: Tensor
    """Log-probabilities of the counts 0, 1, … max_count or more, (batch, max_count + 1)."""


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Everything that a `CountingNetwork` is built from.

    Parameters
    ----------
    method : {"map", "bottleneck", "multihead", "downstream"}
        What computes the count: "map" is this package's method, which has no parameters; the others are counting heads
        that read the UNet's lowest level, its last features, or its map.
    spatial_dims, in_channels, filters, levels, dropout, prevalence, positive_weight
        As in `UNet`.
    max_count : int, default 4
        The last bin holds this count and all larger ones.
    protocol : CountingProtocol, str or dict, optional
        What counts as one lesion, for the method "map".
    head_filters : int, optional
        Number of filters of the head's first block. The paper does not state it. By default it is in the same
        proportion to ``filters`` as in the authors' published code: a quarter but at least 4 (bottleneck), twice
        (multi-head), the same (downstream).
    head_dropout : float, optional
        Dropout probability of the head. The paper does not state it either. Default as in the authors' published code:
        0.5, 0.5 and 0.3.
    head_readout : {"mean", "max"}
        As in `ConvolutionalHead`.
    """

    method: str = "map"
    spatial_dims: int = 3
    in_channels: int = 5
    filters: int = 32
    levels: int = 5
    dropout: float = 0.1
    prevalence: float | None = None
    positive_weight: float = 1.0
    max_count: int = MAX_COUNT
    protocol: CountingProtocol = field(default_factory=CountingProtocol)
    head_filters: int | None = None
    head_dropout: float | None = None
    head_readout: Readout = "mean"

    def __post_init__(self) -> None:
        """Check what the parts do not check, and accept a protocol as a dict."""
        if self.method not in METHODS:
            raise ValueError(f"Expected method to be one of {', '.join(METHODS)}, but got {self.method!r}.")
        if self.head_readout not in READOUTS:
            raise ValueError(
                f"Expected head_readout to be one of {', '.join(READOUTS)}, but got {self.head_readout!r}."
            )
        for name, most in (("max_count", MOST_COUNTS), ("head_filters", MOST_FILTERS)):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"Expected {name} to be at least 1 and at most {most}, but got {shown(value)}.")
        given: Any = self.protocol
        protocol = CountingProtocol.from_dict(given) if isinstance(given, dict) else checked_protocol(given)
        object.__setattr__(self, "protocol", protocol)

    def unet(self) -> UNet:
        """The segmentation network, with new random weights."""
        return UNet(
            spatial_dims=self.spatial_dims,
            in_channels=self.in_channels,
            filters=self.filters,
            levels=self.levels,
            dropout=self.dropout,
            prevalence=self.prevalence,
            positive_weight=self.positive_weight,
        )

    def head(self) -> MapHead | ConvolutionalHead:
        """The module that computes the count, with new random weights."""
        if self.method == "bottleneck":
            lowest = self.filters * 2 ** (self.levels - 2)
            return self._head("bottleneck", lowest, filters=max(self.filters // 4, 4), dropout=0.5, deep=False)
        if self.method == "multihead":
            return self._head("decoded", self.filters, filters=2 * self.filters, dropout=0.5)
        if self.method == "downstream":
            return self._head("logits", 1, filters=self.filters, dropout=0.3)
        return MapHead(spatial_dims=self.spatial_dims, max_count=self.max_count, protocol=self.protocol)

    def _head(
        self,
        reads: Literal["logits", "decoded", "bottleneck"],
        in_channels: int,
        *,
        filters: int,
        dropout: float,
        deep: bool = True,
    ) -> ConvolutionalHead:
        return ConvolutionalHead(
            reads,
            spatial_dims=self.spatial_dims,
            in_channels=in_channels,
            filters=filters if self.head_filters is None else self.head_filters,
            multiples=DEEP if deep else SHALLOW,
            convolutions=2 if deep else 1,
            dropout=dropout if self.head_dropout is None else self.head_dropout,
            max_count=self.max_count,
            readout=self.head_readout,
        )


def counting_network(method: str = "map", **options: Any) -> CountingNetwork:
    """A network that segments and counts, with new random weights.

    Parameters
    ----------
    method : {"map", "bottleneck", "multihead", "downstream"}
        See `NetworkOptions`.
    **options
        As in `NetworkOptions`. The defaults are those of the paper.

    Examples
    --------
    >>> import torch
    >>> network = counting_network("downstream", spatial_dims=2, in_channels=3, filters=4, levels=3)
    >>> logits, log_probs = network(torch.zeros(2, 3, 30, 41))
    >>> logits.shape, log_probs.shape
    (torch.Size([2, 1, 30, 41]), torch.Size([2, 5]))
    >>> same = counting_network(**network.options)
    >>> same.load_state_dict(network.state_dict())
    <All keys matched successfully>
    """
    return CountingNetwork(NetworkOptions(method=method, **options))


class CountingNetwork(nn.Module):
    """A UNet, and the head that computes the count from it.

    Parameters
    ----------
    options : NetworkOptions

    Attributes
    ----------
    unet : UNet
    head : MapHead or ConvolutionalHead
    protocol : CountingProtocol
    options : dict
        Plain values, to be saved with the weights: ``counting_network(**options)`` builds the network again.

    Notes
    -----
    The gradient of ``log_probs`` reaches both the head and the UNet. For the same seed, the UNet starts from the same
    weights whatever the method. Every parameter takes part in every pass, as distributed training requires.
    """

    def __init__(self, options: NetworkOptions) -> None:
        super().__init__()
        self.options: dict[str, Any] = asdict(options)
        self.protocol = options.protocol
        self.unet = options.unet()
        self.head = options.head()

    def forward(self, images: Tensor) -> CountingOutput:
        """Segment and count images of shape (batch, in_channels, *spatial)."""
        output = self.unet(images)
        return CountingOutput(output.logits, self.head(output))

    def segment(self, images: Tensor) -> Tensor:
        """The logits alone, (batch, 1, *spatial): for sliding windows, and for training without counts."""
        logits: Tensor = self.unet(images).logits
        return logits

    def parameter_groups(self, lr: float, *, head_lr: float | None = None) -> list[dict[str, Any]]:
        """Groups for an optimiser: the UNet's parameters, and the head's if it has any.

        Parameters
        ----------
        lr : float
            Learning rate of the UNet. The paper has 1e-4.
        head_lr : float, optional
            Learning rate of the head. Default: the same or, for multi-head, a tenth of it, as in the paper.
        """
        slower = SLOW_HEAD if self.options["method"] == "multihead" else 1.0
        head_lr = lr * slower if head_lr is None else head_lr
        groups = [
            {"name": "unet", "params": list(self.unet.parameters()), "lr": lr},
            {"name": "head", "params": list(self.head.parameters()), "lr": head_lr},
        ]
        return [group for group in groups if group["params"]]

    def freeze_segmentation(self, frozen: bool = True) -> None:
        """Freeze the UNet, or let it learn again, so that a head can be warmed up on features that do not change.

        Dropout stays on, so that the head sees what it will see afterwards. In distributed training, call this before
        the network is wrapped.
        """
        self.unet.requires_grad_(not frozen)

    @contextmanager
    def mc_dropout(self) -> Iterator[None]:
        """Switch dropout on and leave everything else as it is: each pass is a sample (Monte Carlo dropout)."""
        layers = [module for module in self.modules() if isinstance(module, DROPOUTS)]
        before = [layer.training for layer in layers]
        for layer in layers:
            layer.train()
        try:
            yield
        finally:
            for layer, training in zip(layers, before, strict=True):
                layer.train(training)
