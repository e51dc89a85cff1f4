"""Whether counts are wrong as a whole, too high or too low in all scans together: said before anything else."""

from __future__ import annotations

from lesioncount.assess.evaluation.evaluation import Evaluation

# A bias of less than this share of the lesions is not what a reader must know first.
_NOTABLE = 0.1


def systematically_off(evaluation: Evaluation) -> str | None:
    """In words, if the interval of the bias excludes 0 and the bias is more than 10 % of the lesions; else None."""
    bias, relative = evaluation.ours.score("bias"), evaluation.ours.score("relative_bias")
    if not bias.has_interval or bias.low <= 0 <= bias.high or not abs(relative.value) > _NOTABLE:
        return None
    is_low = bias.value < 0
    true = sum(scan.truth for scan in evaluation.scans)
    expected = sum(scan.expected for scan in evaluation.scans)
    ends = sorted((abs(relative.low), abs(relative.high)))
    return (
        f"The counts are systematically too {'low' if is_low else 'high'}: {expected:.0f} lesions are expected, but "
        f"there are {true}. That is {100 * abs(relative.value):.0f} % too {'few' if is_low else 'many'} (95 % interval "
        f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} %), or {abs(bias.value):.3g} lesions per scan."
    )
