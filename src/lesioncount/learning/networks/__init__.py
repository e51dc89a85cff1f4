"""The paper's networks: a UNet, our count on its map, and the three counting heads it is compared with."""

from lesioncount.learning.networks.counting_network import (
    METHODS,
    CountingNetwork,
    CountingOutput,
    NetworkOptions,
    counting_network,
)
from lesioncount.learning.networks.heads import ConvolutionalHead, MapHead
from lesioncount.learning.networks.unet import UNet, UNetOutput

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
