"""In how many bits a network computes, where the user leaves it to the machine."""

from __future__ import annotations

import torch


def is_bfloat16(precision: str) -> bool:
    """Whether convolutions are done in bfloat16.

    Parameters
    ----------
    precision : {"float32", "bfloat16", "auto"}
        "auto": where the machine has instructions for it. Without them, bfloat16 is many times slower than float32.
    """
    return precision == "bfloat16" or (precision == "auto" and _has_bfloat16())


def _has_bfloat16() -> bool:
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported())  # noqa: SLF001 - torch has no public way to ask
