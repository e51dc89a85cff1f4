"""Draws the pictures of docs/trust.md from seeded simulated scans: ``python docs/figures/trust.py``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import lesioncount as lc
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.with_extra import CountWithExtra

INK, FAINT, PALE = "#1b2a38", "#5b6b7a", "#dfe5ea"
BLUE, MARK = "#0072b2", "#d55e00"  # of the Okabe-Ito palette: safe for all eyes
SEED, N_COHORTS = 0, 60
TOO_SURE = lc.Calibration(slope=4, offset=float(np.log(3)))  # polarised, and trained with positive weight 3


def scans(n: int, network: lc.Calibration, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Existence probabilities as a network has them, above the threshold, and the true counts."""
    chances = [rng.uniform(0.05, 0.95, rng.poisson(4)) for _ in range(n)]
    counts = [int((rng.random(len(chance)) < chance).sum()) for chance in chances]
    said = [network.existence(chance) for chance in chances]
    return [p[p > 0.1] for p in said], np.array(counts)


def text(
    x: float, y: float, words: str, size: int = 13, colour: str = INK, anchor: str = "middle", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{words}</text>'
    )


def rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def line(x0: float, y0: float, x1: float, y1: float, colour: str = INK, width: float = 1.5, dash: str = "none") -> str:
    return (
        f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{colour}" stroke-width="{width}" '
        f'stroke-dasharray="{dash}" fill="none"/>'
    )


def circle(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"/>'


def bars(masses: Sequence[float], left: float, base: float, step: float, width: float, colour: str) -> list[str]:
    """Bars of probabilities, with percentages above."""
    drawn = []
    for count, mass in enumerate(masses):
        x, height = left + count * step, mass * 150
        drawn.append(rect(x, base - height, width, max(height, 0.5), colour))
        drawn.append(text(x + width / 2, base - height - 5, f"{100 * mass:.0f}", 11, FAINT))
    return drawn


def axis(left: float, base: float, step: float, n: int) -> list[str]:
    """Counts below the bars; what is beyond the last has no room and little mass."""
    words = [text(left + (count + 0.5) * step, base + 18, str(count), 14, weight=600) for count in range(n)]
    return [line(left - 4, base, left + n * step + 4, base), *words]


def legend(x: float, y: float, colour: str, words: str) -> list[str]:
    return [rect(x, y - 10, 12, 12, colour), text(x + 18, y, words, 13, anchor="start")]


def dishonest() -> None:
    """Three scans: what the map says, and what is true of such scans."""
    weighted, sure = lc.Calibration(offset=np.log(3)), lc.Calibration(slope=4)
    cases: list[tuple[str, str, CountDistribution, CountDistribution]] = [
        ("positive weight 3 in the loss", "counts too many",
         lc.PoissonBinomial(weighted.existence([0.6, 0.4, 0.3])), lc.PoissonBinomial([0.6, 0.4, 0.3])),
        ("polarised map", "is too sure",
         lc.PoissonBinomial(sure.existence([0.75, 0.7, 0.35])), lc.PoissonBinomial([0.75, 0.7, 0.35])),
        ("lesions without a candidate", "rules out more than two lesions",
         lc.PoissonBinomial([0.9, 0.8]), CountWithExtra(lc.PoissonBinomial([0.9, 0.8]), 0.4)),
    ]  # fmt: skip
    body, base, step = [], 232.0, 64.0
    for i, (title, effect, says, true) in enumerate(cases):
        left = 24 + i * 300
        body += [text(left + 2 * step, 34, title, 16, weight=600), text(left + 2 * step, 54, effect, 13, FAINT)]
        body += bars(says.pmf([0, 1, 2, 3]), left + 6, base, step, 24, BLUE)
        body += bars(true.pmf([0, 1, 2, 3]), left + 32, base, step, 24, MARK)
        body += axis(left, base, step, 4)
    body += legend(24, 286, BLUE, "what the map says, in percent")
    body += legend(270, 286, MARK, "how often each count is true of such scans")
    write("trust_dishonest", 904, 304, "Three maps that are not honest, and the truth beside each", body)


def scored() -> None:
    """What the ranked probability score rewards."""
    cases = [
        ("sure, and right", [0, 0, 1, 0, 0]), ("unsure, around the truth", [0, 0.2, 0.6, 0.2, 0]),
        ("unsure, beside the truth", [0, 0, 0.2, 0.6, 0.2]), ("sure, and wrong", [0, 0, 0, 1, 0]),
    ]  # fmt: skip
    body, base, step = [], 232.0, 38.0
    for i, (title, masses) in enumerate(cases):
        left = 24 + i * 226
        score = float(lc.scores.rps([masses], [2])[0])
        body += [text(left + 2.5 * step, 34, title, 15, weight=600)]
        body += [rect(left + 2 * step, 62, step, base - 62, PALE)]
        body += bars(masses, left + 6, base, step, 26, BLUE)
        body += [*axis(left, base, step, 5), text(left + 2.5 * step, base + 44, f"RPS {score:.2f}", 15, weight=600)]
    body += legend(24, 310, PALE, "the true count")
    write("trust_rps", 904, 328, "Four distributions of the count and their ranked probability scores", body)


def reliability_panel(left: float, title: str, found: lc.scores.Reliability) -> list[str]:
    size, top = 240.0, 72.0
    body = [text(left + size / 2, 34, title, 16, weight=600)]
    body += [text(left + size / 2, 54, f"ECE {float(found.ece):.3f}", 13, FAINT)]
    body += [rect(left, top, size, size, "#f5f7f9"), line(left, top + size, left + size, top, FAINT, 1.5, "5 4")]
    for n, confidence, hits in zip(found.n, found.confidence, found.hit_rate, strict=True):
        if n:
            x, y = left + confidence * size, top + (1 - hits) * size
            body += [line(x, y, x, top + (1 - confidence) * size, MARK, 2), circle(x, y, 2 + 0.6 * n**0.5, BLUE)]
    for share in (0, 0.5, 1):
        body += [text(left + share * size, top + size + 18, f"{share:.0%}", 12, FAINT)]
        body += [text(left - 8, top + (1 - share) * size + 4, f"{share:.0%}", 12, FAINT, "end")]
    return [*body, text(left + size / 2, top + size + 40, "probability of the most probable count", 13)]


def calibrated(fit: lc.fitting.CalibrationFit, existence: list[np.ndarray], counts: np.ndarray) -> None:
    """Reliability of new scans, before and after."""
    body = []
    for i, (title, calibration) in enumerate((("as counted", lc.Calibration()), ("calibrated", fit.calibration))):
        distributions = [calibration.distribution(p) for p in existence]
        predictions = lc.scores.Predictions.of_distributions(distributions, counts)
        body += reliability_panel(70 + i * 330, title, predictions.reliability)
    body += [f'<g transform="rotate(-90 18 192)">{text(18, 192, "how often it was right", 13)}</g>']
    meaning = "One dot per tenth of probability; larger dots stand for more scans. The diagonal is perfect."
    body += [text(330, 380, meaning, 13, FAINT)]
    write("trust_calibrated", 660, 396, "Reliability of the count on new scans, before and after calibration", body)


def guaranteed(fit: lc.fitting.CalibrationFit, existence: list[np.ndarray], counts: np.ndarray) -> None:
    """The 90 % intervals of forty new scans."""
    n, unit, body = 40, 17.0, []
    order = np.lexsort((counts[:n], [p.sum() for p in existence[:n]]))
    rows = (
        ("90 % interval, as counted", [lc.PoissonBinomial(p).interval(0.9) for p in existence[:n]]),
        ("90 % interval, guaranteed", [fit.conformal.interval(p, 0.9) for p in existence[:n]]),
    )
    for i, (title, intervals) in enumerate(rows):
        base, n_outside = 190.0 + i * 200, 0
        for at, scan in enumerate(order):
            (low, high), truth, x = intervals[scan], counts[scan], 60 + at * 15.5
            outside = not low <= truth <= high
            n_outside += outside
            body += [rect(x - 5, base - high * unit - 6, 10, (high - low) * unit + 12, "#a9cde4")]
            body += [circle(x, base - truth * unit, 4, MARK if outside else INK)]
        words = f"{title}: {n - n_outside} of {n} hold the true count"
        body += [text(54, base - 156, words, 15, anchor="start", weight=600)]
        body += [text(40, base - c * unit + 4, str(c), 12, FAINT, "end") for c in (0, 2, 4, 6, 8)]
    body += [circle(60, 424, 4, INK), text(70, 428, "true count, inside", 13, anchor="start")]
    body += [circle(210, 424, 4, MARK), text(220, 428, "outside", 13, anchor="start")]
    body += [text(684, 428, "one column per scan", 13, FAINT, "end"), *cohorts()]
    write("trust_guaranteed", 700, 640, "Intervals of forty new scans, and how often others are right", body)


def cohorts() -> list[str]:
    """How often new scans are inside, for many cohorts of calibration scans."""
    body = [text(54, 474, "The guarantee is a mean over cohorts of calibration scans", 15, anchor="start", weight=600)]
    body += [line(at(0.9), 490, at(0.9), 602, FAINT, 1.5, "5 4")]
    body += [text(at(share), 620, f"{share:.0%}", 12, FAINT) for share in (0.7, 0.8, 0.9, 1)]
    for row, n in enumerate((19, 50, 200)):
        y, covered = 508 + row * 38, []
        for seed in range(N_COHORTS):
            rng = np.random.default_rng([SEED, n, seed])
            (fitted, known), (new, counts) = scans(n, TOO_SURE, rng), scans(500, TOO_SURE, rng)
            conformal = lc.ConformalCounts.fit([lc.PoissonBinomial(p) for p in fitted], known)
            ends = np.array([conformal.interval(lc.PoissonBinomial(p), 0.9) for p in new])
            covered.append(float(((ends[:, 0] <= counts) & (counts <= ends[:, 1])).mean()))
        body += [circle(at(max(share, 0.68)), y + 5 * (i % 3 - 1), 3, "#a9cde4") for i, share in enumerate(covered)]
        mean = float(np.mean(covered))
        print(f"{n} scans: mean {mean:.3f}, middle 90 % {np.quantile(covered, [0.05, 0.95]).round(3)}")
        body += [line(at(mean), y - 12, at(mean), y + 12, BLUE, 3), text(54, y + 4, f"{n} scans", 13, anchor="start")]
        body += [text(684, y + 4, f"mean {mean:.1%}", 13, BLUE, "end", 600)]
    return body


def at(share: float) -> float:
    """Where a share of scans is drawn: from 66 % to 100 %."""
    return 130 + (share - 0.66) / 0.34 * 450


def combined() -> None:
    """Two members that disagree: the count of the mean map, and the mixture of their counts."""
    one, other = np.array([0.95, 0.95, 0.95]), np.array([0.95, 0.02, 0.02])
    members = [lc.PoissonBinomial(one), lc.PoissonBinomial(other)]
    cases = (
        ("first member", members[0], PALE), ("second member", members[1], PALE),
        ("count of the mean map", lc.PoissonBinomial((one + other) / 2), MARK),
        ("mixture of the counts", lc.MixtureOfCounts(members), BLUE),
    )  # fmt: skip
    body, base, step = [], 232.0, 46.0
    for i, (title, distribution, colour) in enumerate(cases):
        left = 24 + i * 226
        body += [text(left + 2 * step, 34, title, 15, weight=600)]
        body += [text(left + 2 * step, 54, f"{distribution.mean():.2f} ± {distribution.std():.2f}", 13, FAINT)]
        body += bars(distribution.pmf([0, 1, 2, 3]), left + 8, base, step, 30, colour)
        body += axis(left, base, step, 4)
    write("trust_combined", 904, 266, "Two members that disagree, their mean map, and their mixture", body)


def write(name: str, width: int, height: int, title: str, body: list[str]) -> None:
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" role="img">\n<title>{title}</title>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )
    Path(__file__).with_name(f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    rng = np.random.default_rng(SEED)
    existence, counts = scans(200, TOO_SURE, rng)
    new_existence, new_counts = scans(1000, TOO_SURE, rng)
    fit = lc.fitting.CalibrationFit.fit(lc.fitting.KnownTruth.of(existence, counts))
    dishonest()
    scored()
    calibrated(fit, new_existence, new_counts)
    guaranteed(fit, new_existence, new_counts)
    combined()


if __name__ == "__main__":
    main()
