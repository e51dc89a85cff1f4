"""How fast it is, as ratios in one run: `make bench`.

Contenders of a case take turns and the fastest time of each counts. Bars are the promises of the project; a miss is
printed as one.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import cc3d
import cripser
import files
import nibabel
import numpy as np
import torch
from contenders import (
    cc3d_and_compiled_max,
    dense_masks,
    dense_masks_with_gradient,
    scipy_label_and_maximum,
    skimage_regionprops,
)
from fast_poibin import PoiBin
from maps import boxes, hills, noise
from scipy.stats import poisson_binom
from skimage.morphology import h_maxima

import lesioncount as lc
from lesioncount.learning.batches import loader
from lesioncount.learning.config import DataConfig
from lesioncount.learning.networks import UNet, counting_network
from lesioncount.learning.own_data import read_own_data
from lesioncount.torch import CountLoss, count_log_probs
from lesioncount.torch.losses import bounded_nll
from lesioncount_reproduction.cohort import SEQUENCES
from lesioncount_reproduction.cohort_files import write_cohort
from lesioncount_reproduction.synthetic import GadCohort

RESULTS = Path(__file__).with_name("results.json")
RUNS_PER_TURN = 4
CORNERS = lc.CountingProtocol(connectivity="corners")


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    case: str
    what: str
    ratio: float
    bar: str = ""

    @property
    def verdict(self) -> str:
        """Whether the bar is reached."""
        if not self.bar:
            return ""
        limit = float(self.bar[1:])
        return "ok" if (self.ratio <= limit if self.bar[0] == "≤" else self.ratio >= limit) else "MISSED"


def fastest(contenders: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of each contender, the least of all repeats.

    They take turns, so that a busy machine hits all alike, but of a few runs each: right after another contender the
    map would have to come from memory again, and the order would decide.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(-(-repeats // RUNS_PER_TURN)):
        for name, run in contenders.items():
            for _ in range(RUNS_PER_TURN):
                begin = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - begin)
    return best


def one_scan() -> list[Line]:
    case = "64×192×192, 20 lesions"
    p = boxes((64, 192, 192), 20)
    quick = fastest(
        {"floor": p.max, "ours": lambda: lc.count_lesions(p, protocol=CORNERS), "default": lambda: lc.count_lesions(p)},
        200,
    )
    peers = fastest(
        {"cc3d": lambda: cc3d_and_compiled_max(p, 26), "ours": lambda: lc.count_lesions(p, protocol=CORNERS)}, 30
    )
    slow = fastest(
        {
            "dense": lambda: dense_masks(p),
            "scipy": lambda: scipy_label_and_maximum(p),
            "skimage": lambda: skimage_regionprops(p),
        },
        3,
    )
    return [
        Line(case, "count_lesions / p.max(), 26 neighbours", quick["ours"] / quick["floor"], "≤2.0"),
        Line(case, "count_lesions / p.max(), default protocol", quick["default"] / quick["floor"], "≤2.0"),
        Line(case, "one mask per instance / count_lesions", slow["dense"] / quick["ours"], "≥500"),
        Line(case, "cc3d + compiled max / count_lesions", peers["cc3d"] / peers["ours"], "≥5"),
        Line(case, "scipy label + maximum / count_lesions", slow["scipy"] / quick["ours"]),
        Line(case, "scikit-image regionprops / count_lesions", slow["skimage"] / quick["ours"]),
    ]


def many_lesions() -> list[Line]:
    p = boxes((64, 192, 192), 1000)
    t = fastest(
        {
            "floor": p.max,
            "cc3d": lambda: cc3d_and_compiled_max(p, 26),
            "ours": lambda: lc.count_lesions(p, protocol=CORNERS),
        },
        40,
    )
    case = "64×192×192, 1000 lesions"
    return [
        Line(case, "cc3d + compiled max / count_lesions", t["cc3d"] / t["ours"], "≥3"),
        Line(case, "count_lesions / p.max()", t["ours"] / t["floor"]),
    ]


def large_map() -> list[Line]:
    p = boxes((512, 512, 512), 100)
    t = fastest(
        {
            "floor": p.max,
            "ours": lambda: lc.count_lesions(p, protocol=CORNERS),
            "two": lambda: lc.count_lesions(p, protocol=CORNERS, threads=2),
        },
        12,
    )
    case = "512×512×512, 100 lesions"
    return [
        Line(case, "count_lesions / p.max()", t["ours"] / t["floor"], "≤1.3"),
        Line(case, "one thread / two threads", t["ours"] / t["two"], "≥1"),
    ]


def noisy_maps() -> list[Line]:
    lines = []
    for share in (0.1, 0.5):
        p = noise((64, 192, 192), share)
        for neighbours in (26, 18, 6):
            protocol = lc.CountingProtocol(connectivity=neighbours)
            t = fastest(
                {
                    "cc3d": lambda p=p, n=neighbours: cc3d_and_compiled_max(p, n),
                    "ours": lambda p=p, protocol=protocol: lc.count_lesions(p, protocol=protocol),
                },
                12,
            )
            what = f"cc3d + compiled max / count_lesions, {neighbours} neighbours"
            lines.append(Line(f"64×192×192, {share:.0%} noise", what, t["cc3d"] / t["ours"], "≥1"))
    return lines


def peaks() -> list[Line]:
    lines = []
    for case, p, repeats, bar in (
        ("64×192×192, 20 lesions", boxes((64, 192, 192), 20), 200, "≤1.3"),
        ("64×192×192, 1000 lesions", boxes((64, 192, 192), 1000), 80, "≤2"),
        ("64×192×192, 20 hills", hills((64, 192, 192), 20), 80, ""),
        ("64×192×192, 300 hills", hills((64, 192, 192), 300), 40, ""),
        ("64×192×192, 10% noise", noise((64, 192, 192), 0.1), 16, "≤8"),
        ("512×512×512, 100 lesions", boxes((512, 512, 512), 100), 12, "≤1.1"),
    ):
        ways = {
            "regions": lambda p=p: lc.count_lesions(p),
            "peaks": lambda p=p: lc.count_lesions(p, protocol="peaks"),
        }
        t = fastest(ways, repeats)
        lines.append(Line(case, "peaks / regions", t["peaks"] / t["regions"], bar))
    return lines + peers_of_peaks()


def peers_of_peaks() -> list[Line]:
    p, case = boxes((64, 192, 192), 20), "64×192×192, 20 lesions"
    ours = fastest({"peaks": lambda: lc.count_lesions(p, protocol="peaks")}, 40)["peaks"]
    begin = time.perf_counter()
    cripser.compute_ph(-p, maxdim=0)
    middle = time.perf_counter()
    h_maxima(p, 0.02)
    end = time.perf_counter()
    return [
        Line(case, "cripser, components only / peaks", (middle - begin) / ours, "≥500"),
        Line(case, "scikit-image h_maxima / peaks", (end - middle) / ours, "≥500"),
    ]


def memory() -> list[Line]:
    share = float(run_alone("import maps, memory; print(memory.share_of_array(maps.boxes((182, 218, 182), 50)))"))
    lines = [Line("182×218×182, 50 lesions", "extra memory / array, percent", 100 * share, "≤5")]
    for case, made in (
        ("182×218×182, 50 lesions", "boxes((182, 218, 182), 50)"),
        ("182×218×182, 300 hills", "hills((182, 218, 182), 300)"),
        ("64×192×192, 20 hills", "hills((64, 192, 192), 20)"),
        ("64×192×192, 10% noise", "noise((64, 192, 192), 0.1)"),
    ):
        share = float(run_alone(f"import maps, memory; print(memory.share_of_peaks(maps.{made}))"))
        lines.append(Line(case, "extra memory of peaks / (5 % of array + 40 bytes a voxel)", share, "≤1"))
    return lines


def start_up() -> list[Line]:
    best = {"numpy": float("inf"), "lesioncount": float("inf")}
    for _ in range(10):
        for name in tuple(best):
            took = run_alone(
                f"import time\nbegin = time.perf_counter()\nimport {name}\nprint(time.perf_counter() - begin)"
            )
            best[name] = min(best[name], float(took))
    return [Line("start", "import lesioncount / import numpy", best["lesioncount"] / best["numpy"], "≤1.3")]


def run_alone(code: str) -> str:
    """What a fresh interpreter prints for some code."""
    return run_python(["-c", code])


def run_python(arguments: list[str]) -> str:
    """What a fresh interpreter prints."""
    # An installed package has its bytecode; a checkout must be allowed to write it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=RESULTS.parent, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def distributions() -> list[Line]:
    rng = np.random.default_rng(1)
    p = rng.random(1000)
    t = fastest(
        {"scipy": lambda: poisson_binom.pmf(np.arange(1001), p), "ours": lambda: lc.PoissonBinomial(p).pmf()}, 10
    )
    lines = [Line("PoissonBinomial, n = 1000", "scipy.stats.poisson_binom / ours", t["scipy"] / t["ours"], "≥100")]
    p = rng.random(100_000)
    t = fastest({"fast": lambda: PoiBin(p), "ours": lambda: lc.PoissonBinomial(p).pmf()}, 7)
    return [
        *lines,
        Line("PoissonBinomial, n = 100000", "fast-poibin (loses the tails) / ours", t["fast"] / t["ours"], "≥1"),
    ]


def training() -> list[Line]:
    torch.set_num_threads(1)
    p = np.stack([boxes((64, 192, 192), 20)] * 2)
    logits = torch.logit(torch.from_numpy(p).clamp(1e-4, 1 - 1e-4)).requires_grad_()
    noisy = torch.logit(torch.from_numpy(noise((64, 192, 192), 0.1)).clamp(1e-4, 1 - 1e-4))[None].requires_grad_()
    counts = torch.tensor([12, 13])

    def step(maps: torch.Tensor, labels: torch.Tensor) -> None:
        maps.grad = None
        CountLoss(protocol=CORNERS, spatial_dims=3)(maps, labels).backward()

    quick = fastest({"floor": logits.detach().max, "ours": lambda: step(logits, counts)}, 40)
    dense = fastest({"dense": lambda: dense_masks_with_gradient(logits, [12, 13])}, 1)
    foreground = (torch.sigmoid(noisy.detach())[0] > 0.1).numpy()
    many = fastest(
        {
            "cc3d": lambda: cc3d.connected_components(foreground, connectivity=26),
            "ours": lambda: step(noisy, torch.tensor([4])),
        },
        8,
    )
    megabytes = {
        way: float(run_alone(f"import memory; print(memory.megabytes_of_training({way!r}))"))
        for way in ("ours", "dense")
    }
    network = fastest_step(logits.detach())
    torch.set_num_threads(1)
    case = "batch of 2, forward and backward"
    return [
        Line(case, "CountLoss / S.max()", quick["ours"] / quick["floor"], "≤6"),
        Line(case, "one mask per instance / CountLoss", dense["dense"] / quick["ours"], "≥200"),
        Line(case, "extra memory: one mask per instance / CountLoss", megabytes["dense"] / megabytes["ours"], "≥30"),
        Line(case, "CountLoss / training step of a UNet of 8 filters, percent", 100 * quick["ours"] / network, "≤0.5"),
        Line("10% noise, forward and backward", "CountLoss / cc3d labelling alone", many["ours"] / many["cc3d"], "≤3"),
        *training_with_peaks(),
    ]


def training_with_peaks() -> list[Line]:
    lines = []
    for case, p, repeats, bar in (
        ("20 lesions", boxes((64, 192, 192), 20), 40, "≤2"),
        ("20 hills", hills((64, 192, 192), 20), 40, "≤2"),
        ("300 hills", hills((64, 192, 192), 300), 20, ""),
    ):
        logits = torch.logit(torch.from_numpy(np.stack([p] * 2)).clamp(1e-4, 1 - 1e-4)).requires_grad_()

        def step(candidates: str, maps: torch.Tensor = logits) -> None:
            maps.grad = None
            protocol = lc.CountingProtocol(connectivity="corners", candidates=candidates)
            CountLoss(protocol=protocol, spatial_dims=3)(maps, torch.tensor([12, 13])).backward()

        t = fastest({name: partial(step, name) for name in ("regions", "peaks")}, repeats)
        what = "CountLoss: peaks / regions"
        lines.append(Line(f"batch of 2, {case}, forward and backward", what, t["peaks"] / t["regions"], bar))
    return lines


def fastest_step(images: torch.Tensor) -> float:
    """Seconds of a training step, without the count, of the paper's UNet with 8 filters instead of 32."""
    torch.set_num_threads(2)  # as a user would train; the count is timed on one
    torch.manual_seed(0)
    network = UNet(in_channels=1, filters=8)
    optimizer = torch.optim.Adam(network.parameters())
    masks = (images > 0)[:, None].float()

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(network(images[:, None]).logits, masks).backward()
        optimizer.step()

    return fastest({"step": step}, 1)["step"]


def learning() -> list[Line]:
    """The laptop network on four scans, and a cohort on disk."""
    torch.set_num_threads(1)
    cohort = GadCohort(10, seed=0)
    images = torch.from_numpy(np.stack([cohort[i].images for i in range(4)]))
    images = images.contiguous(memory_format=torch.channels_last_3d)
    masks = torch.from_numpy(np.stack([cohort[i].lesions for i in range(4)])).float()[:, None]
    counts = torch.tensor([cohort[i].count for i in range(4)])
    network = counting_network("map", filters=8, levels=4).to(memory_format=torch.channels_last_3d)
    logits = network.segment(images).detach().requires_grad_()

    def step() -> None:
        torch.nn.functional.binary_cross_entropy_with_logits(network.segment(images), masks).backward()

    def count() -> None:
        bounded_nll(count_log_probs(logits), counts, counts)[0].mean().backward()

    t = fastest({"step": step, "count": count}, 8)
    with tempfile.TemporaryDirectory() as folder:
        write_cohort(f"{folder}/cohort", GadCohort(100, seed=0))
        data = DataConfig(
            images=f"{folder}/cohort",
            channels=tuple(f"_{sequence}" for sequence in SEQUENCES),
            masks=f"{folder}/cohort/derivatives/masks",
            mask_suffix="_label-lesion_mask",
            normalize=False,
        )
        scans = read_own_data(data).sources()["train"]
        once = {}
        for augment in (False, True):
            begin = time.perf_counter()
            for _ in loader(scans, batch_size=4, seed=0, training=True, augment=augment):
                pass
            once[augment] = (time.perf_counter() - begin) / len(scans)
    case = "laptop network, 4 scans of 24×48×40"
    return [
        Line(case, "count forward and backward / step, percent", 100 * t["count"] / t["step"], "≤1"),
        Line(case, "seconds to learn from a scan / to load it from disk", t["step"] / 4 / once[False], "≥5"),
        Line(case, "seconds to learn from a scan / to load and augment it", t["step"] / 4 / once[True]),
    ]


def one_file() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.nii.gz", Path(folder) / "small.nii.gz"
        files.make_nifti(large, (364, 364, 364), 100)
        files.make_nifti(small, (64, 192, 192), 20)
        theirs = min(float(run_file("nibabel", large)) for _ in range(2))
        runs = [tuple(map(float, run_file("ours", large).split())) for _ in range(2)]
        load = f"import nibabel; nibabel.load({str(small)!r}).get_fdata()"
        command = ["-m", "lesioncount", "count", str(small), "-o", f"{folder}/out", "--overwrite", "--quiet"]
        t = fastest({"load": lambda: run_alone(load), "ours": lambda: run_python(command)}, 8)
    return [
        Line(
            "193 MB .nii.gz", "read and count / nibabel get_fdata alone, CPU", min(r[0] for r in runs) / theirs, "≤0.5"
        ),
        Line("193 MB .nii.gz", "memory above start, MB", max(r[1] for r in runs), "≤64"),
        Line("64×192×192 .nii.gz", "whole command / process that loads it", t["ours"] / t["load"], "≤2"),
    ]


def many_files() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        cohort = Path(folder) / "cohort"
        cohort.mkdir()
        files.make_nifti(cohort / "scan000.nii.gz", (64, 192, 192), 20)
        for i in range(1, 200):
            shutil.copy(cohort / "scan000.nii.gz", cohort / f"scan{i:03}.nii.gz")

        def count(jobs: int) -> str:
            return run_python(
                ["-m", "lesioncount", "count", str(cohort), "-o", f"{folder}/out{jobs}", "--jobs", str(jobs),
                 "--overwrite", "--quiet"]
            )  # fmt: skip

        t = fastest({"one": lambda: count(1), "two": lambda: count(2)}, 2)
    return [Line("200 scans", "one job / two jobs", t["one"] / t["two"], "≥1.6")]


def files_of_real_size() -> list[Line]:
    """The whole command, from its start: nearly all of its time, files are decompressed."""
    with tempfile.TemporaryDirectory() as folder:
        cohort = Path(folder) / "cohort"
        cohort.mkdir()
        files.make_network_maps(cohort, 24)
        count = ["-m", "lesioncount", "count", str(cohort), "-o", f"{folder}/out", "--overwrite", "--quiet", "--jobs"]
        t = fastest(
            {
                "isal": lambda: run_python(["decompress.py", str(cohort)]),
                "one": lambda: run_python([*count, "1"]),
                "two": lambda: run_python([*count, "2"]),
            },
            8,
        )
    case = "24 .nii.gz of 182×218×182"
    return [
        Line(case, "count / decompressing with isal alone", t["one"] / t["isal"], "≤1.25"),
        Line(case, "one job / two jobs", t["one"] / t["two"], "≥1.65"),
    ]


def counts_by_region() -> list[Line]:
    """With 130 regions, one of which is by distance, and three questions: arrays, and a cohort with one atlas."""
    shape, case = (182, 218, 182), "182×218×182, 100 hills, 130 regions"
    p, labels = hills(shape, 100), blocks(shape)
    names, near = {label: f"r{label}" for label in range(1, 131)}, "near = r44 + r45 <= 3mm"
    asked = ("count >= 9", "near >= 1 and (r50 >= 1 or r51 >= 1)", "at least 2 of (r44 >= 1, r60 >= 1, near >= 1)")
    count = partial(lc.count_lesions, p, spacing_mm=(1, 1, 1))
    by_region = partial(count, regions=labels, region_names=names)

    def answered() -> list[float]:
        result = by_region(within=near)
        return [result.ask(question) for question in asked]

    t = fastest({"plain": count, "regions": by_region, "near": answered}, 40)
    of_files = fastest_by_region(p, labels, near, asked)
    return [
        Line(case, "count_lesions with regions / without", t["regions"] / t["plain"], "≤1.3"),
        Line(case, "the same with a region by distance and three questions / without", t["near"] / t["plain"]),
        Line(f"10 .nii.gz of {case}", "count --regions --within --ask / count", of_files, "≤1.3"),
    ]


def calibrations() -> list[Line]:
    """A fit with its draws, tests and intervals, on one core; and counting with all draws, and with one calibration."""
    rng, case = np.random.default_rng(0), "200 scans of 60 candidates"
    tables = [np.clip(rng.beta(0.5, 1.5, 60), 1e-6, 1 - 1e-6) for _ in range(200)]
    sure = lc.Calibration(slope=0.6, offset=-0.5)
    truth = lc.fitting.KnownTruth.of(tables, [(rng.random(60) < sure.existence(one)).sum() for one in tables])
    begin = time.process_time()
    averaged = lc.fitting.CalibrationFit.fit(truth)
    seconds = time.process_time() - begin
    with tempfile.TemporaryDirectory() as folder:
        cohort = Path(folder) / "cohort"
        cohort.mkdir()
        files.make_nifti(cohort / "scan00.nii.gz", (64, 192, 192), 60)
        for i in range(1, 40):
            shutil.copy(cohort / "scan00.nii.gz", cohort / f"scan{i:02}.nii.gz")
        one = replace(averaged, calibration=replace(averaged.calibration, draws={}))
        for name, fit in {"draws": averaged, "one": one}.items():
            fit.save(f"{folder}/{name}.json")

        def count(name: str) -> str:
            with_it = ["--calibration", f"{folder}/{name}.json", "-o", f"{folder}/out", "--overwrite", "--quiet"]
            return run_python(["-m", "lesioncount", "count", str(cohort), *with_it])

        t = fastest({"draws": lambda: count("draws"), "one": lambda: count("one")}, 8)
    return [
        Line(case, "calibrate, seconds of CPU", seconds, "≤60"),
        Line("40 .nii.gz of 64×192×192, 60 lesions", "count with 40 draws / with one", t["draws"] / t["one"], "≤1.3"),
    ]


def blocks(shape: tuple[int, int, int]) -> np.ndarray:
    """An atlas of 130 boxes, and nothing beyond."""
    i, j, k = np.indices(shape, dtype=np.uint8) // 37
    labels = 1 + 30 * i + 5 * j + k
    return np.where(labels <= 130, labels, 0).astype(np.uint8)


def fastest_by_region(p: np.ndarray, labels: np.ndarray, near: str, asked: tuple[str, ...]) -> float:
    """Times of a scan in a batch with regions and questions, over those without: a process each, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        cohort, names = Path(folder) / "cohort", Path(folder) / "names.tsv"
        cohort.mkdir()
        nibabel.save(nibabel.Nifti1Image(np.round(p, 3), np.eye(4)), cohort / "scan0.nii.gz")
        for i in range(1, 10):
            shutil.copy(cohort / "scan0.nii.gz", cohort / f"scan{i}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), f"{folder}/atlas.nii.gz")
        names.write_text("index\tname\n" + "".join(f"{label}\tr{label}\n" for label in range(1, 131)))
        where = ["--regions", f"{folder}/atlas.nii.gz", "--region-names", str(names), "--within", near]
        questions = [text for one in asked for text in ("--ask", one)]

        def count(*options: str) -> str:
            return run_python(
                ["-m", "lesioncount", "count", str(cohort), "-o", f"{folder}/out", "--overwrite", "--quiet", *options]
            )

        t = fastest({"plain": count, "where": lambda: count(*where, *questions)}, 8)
    return t["where"] / t["plain"]


def bids_derivative() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        cohort, numbers = Path(folder) / "cohort", itertools.count()
        files.make_nifti(Path(folder) / "scan.nii.gz", (64, 192, 192), 20)
        for i in range(2000):
            scan = cohort / f"sub-{i:04}" / "anat" / f"sub-{i:04}_probseg.nii.gz"
            scan.parent.mkdir(parents=True)
            shutil.copy(Path(folder) / "scan.nii.gz", scan)

        def count(*options: str) -> str:
            out = f"{folder}/out{next(numbers)}"
            return run_python(
                ["-m", "lesioncount", "count", str(cohort), "-o", out, "--jobs", "2", "--quiet", *options]
            )

        t = fastest({"with": lambda: count("--write=bids"), "without": count}, 2)
    return [Line("2000 scans, two jobs", "with --write bids / without", t["with"] / t["without"], "≤1.3")]


def large_report() -> list[Line]:
    """Seconds, on two cores: what the report adds to counting; and the report alone, new and when nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        cohort = Path(folder) / "cohort"
        cohort.mkdir()
        files.make_nifti(Path(folder) / "scan.nii.gz", (64, 192, 192), 20)
        for i in range(2000):
            shutil.copy(Path(folder) / "scan.nii.gz", cohort / f"sub-{i:04}.nii.gz")

        def count(*options: str) -> str:
            out = ["-o", f"{folder}/out{len(options)}", "--overwrite"]
            return run_python(["-m", "lesioncount", "count", str(cohort), *out, "--jobs", "2", "--quiet", *options])

        t = fastest({"with": lambda: count("--report"), "without": count}, 2)
        again = [timed_report(f"{folder}/out1") for _ in range(3)]
    return [
        Line("2000 scans, two jobs", "--report, seconds more than without", t["with"] - t["without"], "≤15"),
        Line("2000 scans", "report again, nothing changed, seconds", min(again), "≤1"),
    ]


def timed_report(out: str) -> float:
    code = "import sys, time; from lesioncount.report import write_report; a = time.perf_counter(); "
    return float(run_python(["-c", f"{code}write_report(sys.argv[1]); print(time.perf_counter() - a)", out]))


def large_zarr() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cube.zarr"
        files.make_zarr(path, 1024)
        megabytes = float(run_file("ours", path).split()[1])
    return [Line("1024³ zarr of uint8", "memory above start, MB", megabytes, "≤300")]


def run_file(kind: str, path: Path) -> str:
    return run_python(["files.py", kind, str(path)])


def main() -> None:
    lines: list[Line] = []
    for section in (
        one_scan,
        many_lesions,
        large_map,
        noisy_maps,
        peaks,
        memory,
        start_up,
        distributions,
        training,
        learning,
        one_file,
        many_files,
        files_of_real_size,
        counts_by_region,
        calibrations,
        bids_derivative,
        large_report,
        large_zarr,
    ):
        for line in section():
            lines.append(line)
            print(f"{line.case:<28} {line.what:<56} {line.ratio:>9.2f}  {line.bar:<5} {line.verdict}", flush=True)
    packages = ("numpy", "scipy", "scikit-image", "connected-components-3d", "cripser", "fast-poibin", "lesioncount")
    about = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "lines": [asdict(line) | {"verdict": line.verdict} for line in lines],
    }
    RESULTS.write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")
    missed = sum(line.verdict == "MISSED" for line in lines)
    print(f"\n{missed} of {sum(bool(line.bar) for line in lines)} bars missed. Written to {RESULTS}.")


if __name__ == "__main__":
    main()
