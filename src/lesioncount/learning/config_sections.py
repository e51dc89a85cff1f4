"""The sections of a configuration: data, network, optimiser, loss, and the run."""

from __future__ import annotations

from dataclasses import dataclass

from lesioncount.distributions.count_distribution import MAX_COUNT


@dataclass(frozen=True)
class DataConfig:
    """What to learn from.

    Attributes
    ----------
    source : str
        "files", pictures or scans of one's own; or what a package offers by the entry points ``lesioncount.sources``.
    path : str
        Folder of the files of such a package's source, if it has any.
    images : str
        Folder of pictures or scans of one's own, with everything below it, or a glob pattern.
    channels : tuple of str
        Where each channel is a file of its own: how the names of the files end, such as ``_T1w`` and ``_FLAIR``.
        Without it, each file is a picture, with all its channels.
    resize : tuple of int
        Bring pictures to this size. Without it they stay as they are.
    masks : str
        Folder of masks, with the names of the pictures.
    mask_suffix : str
        What the name of a mask adds to that of its picture.
    mask_label : int
        The value of lesions in the masks. 0: masks hold 0 and one other value.
    instances : bool
        Whether each value of a mask is a lesion of its own.
    counts : str
        A table with a row for each picture: how many lesions it has, or at least and at most; and, if wanted, whose it
        is and which part it belongs to (columns ``at_least``, ``at_most``, ``patient``, ``split``).
    scan_column, count_column : str
        Columns of the table with the names of pictures, and with their counts.
    patient : str
        Which pictures belong together: a regular expression that finds the patient in the name.
    parts : tuple of float
        Shares of the patients for training, validation and test, where the table does not say.
    normalize : bool
        Whether images get mean 0 and variance 1, each channel by itself, in training and in prediction.
    nonzero : bool
        Whether that is so only where some channel is not 0, and the rest stays 0: for scans without a skull.
    patients : tuple of int
        Number of patients in the training, validation and test parts, where the source makes its scans.
    shape : tuple of int
        Number of voxels along each axis, where the source can choose it. Pictures of one's own have a size.
    seed : int
        Seed of what the source makes, of the parts, and of the folds.
    share : float
        Share of the training patients that are used: 0.1 is the paper's low-data experiment.
    mask_share : float
        Share of the training scans whose mask is used. The others have a count only.
    folds, fold : int
        For a cross-validation. All scans are divided anew into ``folds`` parts of equal size and with similar counts,
        of which number ``fold`` is the test part. With 0 folds, the parts stay as they are.
    """

    source: str = "files"
    path: str = ""
    images: str = ""
    channels: tuple[str, ...] = ()
    resize: tuple[int, ...] = ()
    masks: str = ""
    mask_suffix: str = ""
    mask_label: int = 0
    instances: bool = False
    counts: str = ""
    scan_column: str = "scan"
    count_column: str = "count"
    patient: str = ""
    parts: tuple[float, ...] = (0.6, 0.2, 0.2)
    normalize: bool = True
    nonzero: bool = False
    patients: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    seed: int = 1
    share: float = 1.0
    mask_share: float = 1.0
    folds: int = 0
    fold: int = 0


@dataclass(frozen=True)
class NetworkConfig:
    """Which network: how it counts, how wide and how deep it is.

    Attributes
    ----------
    method : {"map", "bottleneck", "multihead", "downstream"}
        What the count is computed from: see `NetworkOptions`.
    filters, levels : int
        Filters of the UNet's first level, and its number of levels.
    dropout : float
        Dropout probability of the UNet.
    head_dropout : float
        Dropout probability of a counting head. Below 0 it is that of the authors' published code, which is high for a
        head with few filters.
    head_readout : str
        How a counting head ends: "mean", as in the paper, or "max", over what is left of the image.
    protocol : str
        What counts as one lesion where the count follows from the map: the name of a protocol, such as "paper", whose
        regions are as in the paper, or "peaks", which separates lesions that touch.
    """

    method: str = "map"
    filters: int = 32
    levels: int = 5
    dropout: float = 0.1
    head_dropout: float = -1.0
    head_readout: str = "mean"
    protocol: str = "paper"


@dataclass(frozen=True)
class OptimizerConfig:
    """How it learns.

    Attributes
    ----------
    learning_rate, weight_decay : float
        Options of Adam.
    head_learning_rate : float
        Learning rate of the counting head. 0 means the default: that of the network or, for multi-head, a tenth of it.
    schedule : str
        How the learning rate changes: "exponential", multiplied by ``decay`` after each epoch, as in the paper;
        "one_cycle", up and then down to almost 0 over the whole training; or "cosine", from the top down to almost 0,
        for a network that has been trained before.
    decay : float
        Factor of the exponential schedule.
    """

    learning_rate: float = 1e-4
    weight_decay: float = 1e-5
    head_learning_rate: float = 0.0
    schedule: str = "exponential"
    decay: float = 0.995


@dataclass(frozen=True)
class LossConfig:
    """What is minimised.

    Attributes
    ----------
    positive_weight : float
        Weight of lesion voxels in the cross-entropy.
    count_weight, count_growth : float
        The count loss has weight count_weight · e^{count_growth · t} with t = 0 … 100 over the epochs after
        pre-training: the paper's α and β, on its scale of 100 epochs, however many there are here.
    max_count : int
        Counts from here on form one class. 0, for pictures of one's own: the largest count that is known of them.
    bins : tuple of int
        For heads: the counts at which their classes begin, such as (0, 10, 20, 40). Default: 0, 1, … max_count.
    rescue : bool
        Whether a count that needs more lesions than the map has candidates raises the strongest peaks below the
        threshold. Where there are no masks to learn from, it always does.
    """

    positive_weight: float = 3.0
    count_weight: float = 0.001
    count_growth: float = 0.06
    max_count: int = MAX_COUNT
    bins: tuple[int, ...] = ()
    rescue: bool = False


@dataclass(frozen=True)
class RunConfig:
    """How long, in what steps, and with what seed.

    Attributes
    ----------
    start : str
        A checkpoint whose UNet to start from, instead of random weights.
    pretrain_epochs, warmup_epochs, epochs : int
        Epochs that train the segmentation alone; then the counting head alone, on a UNet that is frozen; then
        segmentation and count. In a file, ``epochs`` without ``pretrain_epochs`` is the number of both together, which
        are shared as in the preset.
    validate_every : int
        Epochs from one validation to the next. With few training scans, validation takes longer than training.
    batch_size : int
        Scans per step, in each process.
    seed : int
        Seed of weights, order, augmentation and dropout.
    augment : bool
        Whether to rotate, scale, shear and flip.
    threads, workers, processes : int
        Threads of torch (0: torch decides), processes that load data, and processes that train.
    precision : str
        Of convolutions: "float32"; "bfloat16", half as many bits and up to twice as fast; or "auto", which is bfloat16
        where the machine has instructions for it. Weights, losses and maps are float32 in any case.
    keep_gb : float
        Gigabytes of scans that each process keeps in memory. Scans beyond that are read, or made, again in every epoch.
    """

    start: str = ""
    pretrain_epochs: int = 20
    warmup_epochs: int = 0
    epochs: int = 100
    validate_every: int = 1
    batch_size: int = 4
    seed: int = 0
    augment: bool = True
    threads: int = 0
    workers: int = 0
    processes: int = 1
    precision: str = "float32"
    keep_gb: float = 4.0

    @property
    def n_epochs(self) -> int:
        """Number of epochs of all stages together."""
        return self.pretrain_epochs + self.warmup_epochs + self.epochs

    @property
    def first_kept(self) -> int:
        """The first epoch, counted from 0, that may be the best: one with segmentation and count, if there are any."""
        return self.n_epochs - self.epochs if self.epochs else 0

    @property
    def last_validated(self) -> int:
        """The last epoch, counted from 0, that is followed by a validation; -1 if there is none."""
        return self.n_epochs // self.validate_every * self.validate_every - 1
