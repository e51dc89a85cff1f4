"""The paper's networks: a UNet, the count on its map, and the three counting heads that this is compared with."""

from lesioncount.learning.networks.counting_network import (
    CountingNetwork,
    CountingOutput,
    NetworkOptions,
    counting_network,
)
from lesioncount.learning.networks.heads import ConvolutionalHead, MapHead
from lesioncount.learning.networks.unet import UNet, UNetOutput
from lesioncount.learning.plausible import METHODS

__all__ = [
    "METHODS",
    "ConvolutionalHead",
    "CountingNetwork",
    "CountingOutput",
    "MapHead",
    "NetworkOptions",
    "UNet",
    "UNetOutput",
    "counting_network",
]
