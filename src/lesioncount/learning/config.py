"""A training as a file: what to learn from, which network to train, and how."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import MISSING, asdict, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, get_type_hints

from lesioncount.errors import ConfigError, reason_of
from lesioncount.learning.config_checks import check_values
from lesioncount.learning.config_sections import DataConfig, LossConfig, NetworkConfig, OptimizerConfig, RunConfig
from lesioncount.learning.plausible import shown, text_of

__all__ = ["PRESETS", "DataConfig", "LossConfig", "NetworkConfig", "OptimizerConfig", "RunConfig", "TrainingConfig"]

PRESETS = ("smoke", "laptop", "paper")

# Of a key, in messages: long ones are nobody's spelling mistake.
_LONGEST_NAME = 80


@dataclass(frozen=True)
class TrainingConfig:
    """The whole configuration, as the sections of a TOML file."""

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        """Check the values, of which some depend on others."""
        check_values(self)

    @classmethod
    def load(cls, given: str | Path) -> Self:
        """Load a preset by its name, or a TOML file, which may say ``preset = "laptop"`` and change some values."""
        if str(given) in PRESETS:
            return cls.from_toml(files("lesioncount.learning").joinpath(f"presets/{given}.toml").read_text("utf-8"))
        try:
            text = text_of(Path(given))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{given} is no preset ({', '.join(PRESETS)}) and cannot be read as a file: {reason_of(error)}."
            ) from None
        return cls.from_toml(text)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read the text of a TOML file."""
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits are a plain ValueError
            why = "it is nested too deeply" if isinstance(error, RecursionError) else reason_of(error)
            raise ConfigError(f"Expected the configuration as TOML, but it does not parse: {why[:300]}.") from None
        preset = content.pop("preset", None)
        if preset is not None and preset not in PRESETS:
            raise ConfigError(f"{shown(preset)} is no preset. Known are {', '.join(PRESETS)}.")
        base = asdict(cls.load(preset)) if preset else {}
        if _table("data", content.get("data", {})).get("images"):
            _of_own_files(base, content)
        if "run" in content:
            content["run"] = _epochs_as_written(base.get("run", {}), _table("run", content["run"]))
        return cls.from_dict(
            {name: base.get(name, {}) | _table(name, content.get(name, {})) for name in (*base, *content)}
        )

    @classmethod
    def from_dict(cls, content: dict[str, dict[str, Any]]) -> Self:
        """Build from sections. Missing values take their defaults; unknown ones are an error."""
        sections = get_type_hints(cls)
        for name in content:
            _check_known(name, sections, "section")
        return cls(**{name: _section(sections[name], name, _table(name, of)) for name, of in content.items()})

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The sections as plain values."""
        return asdict(self)


def _of_own_files(base: dict[str, dict[str, Any]], content: dict[str, Any]) -> None:
    """Leave to the pictures what a preset says of other data: their size, and their largest count."""
    if "shape" in content["data"]:
        raise ConfigError(
            "Expected no shape in [data] beside images: pictures have a size of their own. To bring them to another, "
            "write, for example: resize = [128, 128]"
        )
    base["data"] = base.get("data", {}) | {"source": "files", "shape": ()}
    base["loss"] = base.get("loss", {}) | {"max_count": 0}


def _epochs_as_written(base: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """``epochs`` without ``pretrain_epochs`` is the number of all epochs: both stages share it as in the preset."""
    epochs = run.get("epochs")
    if type(epochs) is not int or epochs < 1 or "pretrain_epochs" in run:
        return run
    usual = RunConfig(**base)
    alone = epochs * usual.pretrain_epochs // (usual.pretrain_epochs + usual.epochs)
    return run | {"pretrain_epochs": alone, "epochs": epochs - alone}


def _table(name: str, values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ConfigError(f"Expected a section [{name[:_LONGEST_NAME]}], but it is {shown(values)}.")
    return values


def _section(kind: Any, name: str, values: dict[str, Any]) -> Any:
    known = {one.name: one for one in fields(kind)}
    for key, value in values.items():
        _check_known(key, known, f"key in [{name}]")
        default = known[key].default
        wanted = tuple if isinstance(default, tuple) else type(default) if default is not MISSING else object
        allowed = {float: (int, float), tuple: (list, tuple)}.get(wanted, (wanted,))
        if not isinstance(value, allowed) or (isinstance(value, bool) and wanted is not bool):
            raise ConfigError(
                f"Expected {key} in [{name}] to be {_KINDS[wanted]}, but got {shown(value)}. Write, for example: "
                f"{key} = {_as_toml(default)}"
            )
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


_KINDS = {
    str: "a text in quotation marks",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    tuple: "a list in square brackets",
    object: "something else",
}


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(list(value) if isinstance(value, tuple) else value)


def _check_known(given: str, known: Any, what: str) -> None:
    if given not in known:
        close = difflib.get_close_matches(str(given)[:_LONGEST_NAME], list(known), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"There is no {what} called {shown(given)}.{hint} Known are {', '.join(known)}.")
