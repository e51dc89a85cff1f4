"""Targets: files that the library has written, or that people write for it, read back after somebody changed them."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import reference
from fuzzing.cases import Numbers, Target
from fuzzing.commands import command
from fuzzing.damage import damaged
from fuzzing.odd_text import odd_json, odd_text
from fuzzing.tables import changed

Rng = np.random.Generator
Plan = dict[str, Any]

# Pages with figures take seconds, everything else milliseconds.
_WITH_PAGE = 0.03


def _pick(rng: Rng, of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


def _changed_json(rng: Rng, path: Path) -> None:
    """Change a JSON file; half of the time with a check sum that is right for what it says now."""
    from lesioncount.folder.atomic import certified

    content = json.loads(path.read_text("utf-8"))
    had = isinstance(content, dict) and content.pop("checksum", None) is not None
    text = odd_json(rng, content)
    if had and rng.random() < 0.7:
        text = certified(path.name, text.removesuffix("}") + "\n}\n" if text.endswith("}") else text)
    path.write_text(text, "utf-8", "replace")


def _make_results(names: tuple[str, ...], rng: Rng, home: Path, folder: Path) -> Plan:
    shutil.copytree(home / "maps", folder / "maps")
    hows = ("evaluate", "calibrate", "resume", "overwrite")
    how = "page" if rng.random() < _WITH_PAGE else _pick(rng, hows)
    # A run is resumed only with the same settings and maps.
    which = "plain" if how == "resume" else "members" if rng.random() < 0.15 else "results"
    shutil.copytree(home / which, folder / "results")
    shutil.copy(home / "truth.tsv", folder)
    _changed_json(rng, folder / "results" / _pick(rng, names))
    return {"how": how, "group": bool(rng.random() < 0.3), "maps": str(home / "maps")}


def _handle_results(folder: Path, plan: Plan) -> None:
    how, truth = plan["how"], ("--truth-counts", folder / "truth.tsv")
    if how == "page":
        from lesioncount.report import write_report

        write_report(folder / "results")
    elif how == "evaluate":
        _evaluate(folder, folder / "truth.tsv", "patient" if plan["group"] else None)
    elif how == "calibrate":
        command("calibrate", folder / "results", "-o", folder / "c.json", *truth, "--quiet")
    else:
        command("count", plan["maps"], "-o", folder / "results", f"--{how}", "--quiet")


def _evaluate(folder: Path, table: Path, group_by: str | None) -> None:
    from lesioncount.assess.beside_truth import TruthOptions
    from lesioncount.assess.evaluation import evaluate

    options = TruthOptions(table=table, group_by=group_by)
    evaluate(folder / "results", folder / "evaluated", options, counts_only=True)


def _make_changes(rng: Rng, home: Path, folder: Path) -> Plan:
    """The same of a comparison: one of its records, or its ``run.json``."""
    shutil.copytree(home / "changes", folder / "results")
    _changed_json(rng, folder / "results" / _pick(rng, ("s0.json", "s1.json", "s2.json", "run.json")))
    return {"how": _pick(rng, ("resume", "overwrite", "read")), "maps": str(home / "maps")}


def _handle_changes(folder: Path, plan: Plan) -> None:
    if plan["how"] == "read":
        from lesioncount.results.results import read_results

        str(read_results(folder / "results").of("new").total())
    else:
        maps = (plan["maps"], plan["maps"])
        command("compare", *maps, "-o", folder / "results", f"--{plan['how']}", "--quiet")


def _make_truth(rng: Rng, home: Path, folder: Path) -> Plan:
    shutil.copytree(home / "results", folder / "results")
    changed(rng, folder / "truth.tsv", (home / "truth.tsv").read_text("utf-8"))
    return {"group": bool(rng.random() < 0.5)}


def _handle_truth(folder: Path, plan: Plan) -> None:
    _evaluate(folder, folder / "truth.tsv", "patient" if plan["group"] else None)


def _make_evaluation(rng: Rng, home: Path, folder: Path) -> Plan:
    shutil.copy(home / "evaluation" / "evaluation.json", folder)
    _changed_json(rng, folder / "evaluation.json")
    return {"page": bool(rng.random() < 5 * _WITH_PAGE)}


def _handle_evaluation(folder: Path, plan: Plan) -> None:
    from lesioncount.assess.evaluation import read_evaluation
    from lesioncount.report.evaluation import write_evaluation_page

    if plan["page"]:
        write_evaluation_page(folder)
    else:
        json.dumps(read_evaluation(folder).to_dict())


def _make_calibration(rng: Rng, home: Path, folder: Path) -> Plan:
    shutil.copy(home / "calibration.json", folder)
    _changed_json(rng, folder / "calibration.json")
    return {"map": str(home / "maps" / "s0.npy"), "interval": _pick(rng, ("conformal", "distribution"))}


def _handle_calibration(folder: Path, plan: Plan) -> None:
    options = ("--calibration", folder / "calibration.json", "--interval", plan["interval"], "--quiet")
    command("count", plan["map"], "-o", folder / "out", *options)


def _make_protocol(rng: Rng, home: Path, folder: Path) -> Plan:
    text = odd_json(rng, json.loads((home / "protocol.json").read_text()))
    (folder / "protocol.json").write_text(text, "utf-8", "replace")
    return {"map": str(home / "maps" / "s0.npy")}


def _handle_protocol(folder: Path, plan: Plan) -> Numbers:
    command("count", plan["map"], "-o", folder / "out", "--protocol", folder / "protocol.json", "--quiet")
    record = json.loads((folder / "out" / "s0.json").read_text())
    return Numbers(len(record["lesions"]), tuple(sorted(row["existence"] for row in record["lesions"])))


def _check_protocol(folder: Path, plan: Plan) -> Numbers | None:
    said = json.loads((folder / "protocol.json").read_text())
    if said.get("min_volume_mm3") or said.get("min_diameter_mm"):
        return None
    steps = {6: 1, 18: 2, 26: 3, "faces": 1, "edges": 2, "corners": 3}[said.get("connectivity", "edges")]
    return reference.plain_count(
        np.load(plan["map"]), said.get("threshold", 0.1), steps, min_voxels=int(said.get("min_voxels", 1))
    )


def _make_config(rng: Rng, home: Path, folder: Path) -> Plan:
    text = (home / "config.toml").read_text("utf-8")
    path = folder / "config.toml"
    if rng.random() < 0.85:
        path.write_text(odd_text(rng, text), "utf-8", "replace")
    else:
        path.write_bytes(damaged(rng, text.encode()))
    return {}


def _handle_config(folder: Path, _: Plan) -> None:
    from lesioncount.learning.config import TrainingConfig

    TrainingConfig.load(folder / "config.toml").to_dict()


def _make_checkpoint(rng: Rng, home: Path, folder: Path) -> Plan:
    """Its bytes, or what is in it, written again."""
    import lesioncount.learning.prediction  # noqa: F401 - now, because the time that it takes is not that of the input

    path = folder / "best.ckpt"
    if rng.random() < 0.6:
        path.write_bytes(damaged(rng, (home / "best.ckpt").read_bytes()))
        return {"home": str(home), "same": True}
    import torch

    content = torch.load(home / "best.ckpt", weights_only=True)
    key = _pick(rng, ("network_options", "shape", "expects", "network", "state_dict"))
    plain = {name: content.get(name) for name in ("network_options", "shape", "expects")}
    roll = rng.random()
    if roll < 0.3:
        content.pop(key, None)
    elif key in plain:
        try:
            content[key] = json.loads(odd_json(rng, plain[key]))
        except (ValueError, RecursionError):
            content[key] = None
    else:
        content[key] = _pick(rng, (None, [], {}, {"a": 1}, {"a": torch.zeros(3)}))
    torch.save(content, path)
    return {"home": str(home), "same": False}


def _handle_checkpoint(folder: Path, plan: Plan) -> Numbers | None:
    from lesioncount.learning.prediction import load_checkpoint

    network = load_checkpoint(folder / "best.ckpt").network
    return _weights(network) if plan["same"] else None


def _check_checkpoint(_: Path, plan: Plan) -> Numbers | None:
    """A damaged checkpoint that is accepted has the weights that were saved."""
    from lesioncount.learning.prediction import load_checkpoint

    return _weights(load_checkpoint(Path(plan["home"]) / "best.ckpt").network) if plan["same"] else None


def _weights(network: Any) -> Numbers:
    tensors = network.state_dict().values()
    # As bits, in which NaN equals itself.
    numbers = np.concatenate([tensor.double().ravel().numpy() for tensor in tensors]).view(np.int64)
    return Numbers(len(numbers), tuple(numbers.tolist()))


READ_BACK = {
    "records": Target(partial(_make_results, tuple(f"s{i}.json" for i in range(6))), _handle_results),
    "run": Target(partial(_make_results, ("run.json",)), _handle_results),
    "changes": Target(_make_changes, _handle_changes),
    "truth": Target(_make_truth, _handle_truth),
    "evaluation": Target(_make_evaluation, _handle_evaluation),
    "calibration": Target(_make_calibration, _handle_calibration),
    "protocol": Target(_make_protocol, _handle_protocol, _check_protocol),
    "config": Target(_make_config, _handle_config),
    "checkpoint": Target(_make_checkpoint, _handle_checkpoint, _check_checkpoint),
}
