"""The differentiable twin of the core: count labels can train a segmentation network."""

from lesioncount.torch.counting import LesionCounter, count_log_probs
from lesioncount.torch.losses import CountLoss
from lesioncount.torch.poisson_binomial import PoissonBinomial
from lesioncount.torch.schedule import CountWeight

__all__ = ["CountLoss", "CountWeight", "LesionCounter", "PoissonBinomial", "count_log_probs"]
