"""MONAI: transforms that count, and a metric of counts. `CountLoss` needs no wrapping: add it to any other loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import torch
from monai.config import KeysCollection
from monai.metrics import CumulativeIterationMetric
from monai.transforms import MapTransform, Transform
from monai.utils import convert_to_numpy
from torch import Tensor

from lesioncount.candidates import find_candidates
from lesioncount.counting import LesionCount
from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.errors import BinaryMapWarning, ShapeError
from lesioncount.protocol import CountingProtocol
from lesioncount.torch.activation import Activation, checked_activation
from lesioncount.torch.patches import foreground_logits
from lesioncount.trust.scores import confusion, nll, rps


class CountLesions(Transform):
    """Count the lesions of a channel-first map. The voxel size is taken from a `MetaTensor`.

    A binary mask can be counted too: that is how count labels are made.

    Parameters
    ----------
    protocol : CountingProtocol or str, optional
        What counts as one lesion, or the name of a preset. Default: the protocol of the paper.
    logits : bool, default False
        Whether the maps hold logits instead of probabilities.
    channel : int, optional
        Which channel is the lesion map, if there are several. Of two classes of a softmax, it is the second.
    activation : {"sigmoid", "softmax"}, default "sigmoid"
        What makes probabilities of the logits of several channels.
    """

    def __init__(
        self,
        protocol: CountingProtocol | str | None = None,
        *,
        logits: bool = False,
        channel: int | None = None,
        activation: Activation = "sigmoid",
    ) -> None:
        self.protocol = protocol
        self.logits = logits
        self.channel = channel
        self.activation = checked_activation(activation)

    def __call__(self, img: Any) -> LesionCount:
        """Count one map of shape (channels, *spatial)."""
        is_softmax = self.activation == "softmax"
        channel = 1 if self.channel is None and is_softmax and len(img) == 2 else self.channel
        if channel is None and len(img) != 1:
            raise ShapeError(f"Expected one channel, but there are {len(img)}: say which with channel=.")
        # Of a volume the edges of a voxel; the sizes of a picture have a third entry, which is no axis of the array.
        spacing = None
        if hasattr(img, "pixdim"):
            spacing = (img.affine[:3, :3] if img.ndim == 4 else img.pixdim[: img.ndim - 1]).tolist()
        if is_softmax and self.logits:
            img = foreground_logits(torch.as_tensor(img).detach()[None], [channel or 0], regions=False)[0]
            channel = 0
        values = convert_to_numpy(img[channel or 0])
        found = find_candidates(values, protocol=self.protocol, spacing_mm=spacing, logits=self.logits, warn=False)
        if not isinstance(found.warning, BinaryMapWarning):
            found.warn()
        return LesionCount.of(found)


class CountLesionsd(MapTransform):
    """`CountLesions` on the entries of a dictionary, with tensors as results so that they can be collated.

    For each key, adds ``<key>_count``, the most probable count, and ``<key>_count_probs``, P(0), … P(max_count or
    more).

    Parameters
    ----------
    keys : str or sequence of str
        The entries that hold maps.
    protocol, logits, channel, activation
        As in `CountLesions`.
    max_count : int, default 4
    allow_missing_keys : bool, default False
    """

    def __init__(
        self,
        keys: KeysCollection,
        protocol: CountingProtocol | str | None = None,
        *,
        logits: bool = False,
        channel: int | None = None,
        activation: Activation = "sigmoid",
        max_count: int = MAX_COUNT,
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.count = CountLesions(protocol, logits=logits, channel=channel, activation=activation)
        self.max_count = max_count

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Count the maps of one scan."""
        result = dict(data)
        for key in self.key_iterator(dict(data)):
            distribution = self.count(data[key]).distribution
            result[f"{key}_count"] = torch.tensor(distribution.mode())
            result[f"{key}_count_probs"] = torch.tensor(distribution.binned(self.max_count), dtype=torch.float32)
        return result


class CountMetric(CumulativeIterationMetric):
    """Accuracy, class-average F1, ranked probability score or negative log-likelihood of counts.

    Call it with a batch of maps (batch, 1, *spatial), or the two classes of a softmax, and their masks, or their true
    counts (batch,). `aggregate` then scores all batches so far.

    Parameters
    ----------
    metric : {"accuracy", "f1", "rps", "nll"}
    protocol, logits, activation
        As in `CountLesions`.
    max_count : int, default 4
    """

    def __init__(
        self,
        metric: Literal["accuracy", "f1", "rps", "nll"] = "rps",
        protocol: CountingProtocol | str | None = None,
        *,
        logits: bool = False,
        activation: Activation = "sigmoid",
        max_count: int = MAX_COUNT,
    ) -> None:
        super().__init__()
        self.metric = metric
        self.count = CountLesionsd("map", protocol, logits=logits, activation=activation, max_count=max_count)
        self.truth = CountLesions(protocol)

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **_: Any) -> Tensor:
        """One row per scan: P(0), P(1), … and the true count."""
        if y is None:
            raise ShapeError("Expected masks or true counts beside the maps.")
        rows = [self.count({"map": item})["map_count_probs"] for item in y_pred]
        counts = y.flatten() if y.numel() == len(y) else [self.truth(item).distribution.mode() for item in y]
        return torch.cat([torch.stack(rows), torch.as_tensor(counts)[:, None].cpu()], dim=1)

    def aggregate(self, *_: Any, **__: Any) -> Tensor:
        """The score of all scans so far."""
        table = self.get_buffer().double().cpu().numpy()  # type: ignore[no-untyped-call]  # MONAI's own
        p, counts = table[:, :-1], table[:, -1].astype(int)
        if self.metric in ("rps", "nll"):
            return torch.tensor((rps if self.metric == "rps" else nll)(p, counts).mean())
        return torch.tensor(getattr(confusion(p.argmax(1), counts, max_count=self.count.max_count), self.metric))
