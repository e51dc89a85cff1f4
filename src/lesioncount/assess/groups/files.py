"""A summary of groups → ``summary.json``, ``groups.tsv``, ``ratios.tsv`` and ``imputations.tsv``."""

from __future__ import annotations

from lesioncount.assess.groups.trial_summary import TrialSummary
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import to_json
from lesioncount.folder.tables import to_tsv

_NAME, _TABLES = "summary.json", ("groups.tsv", "ratios.tsv", "imputations.tsv")

_RATIO_COLUMNS = (
    "reference", "ratio", "ratio_low", "ratio_high", "p_value", "log_ratio", "standard_error", "df", "doubt_share",
    "why_unknown",
)  # fmt: skip


def check_folder(folder: OutputFolder, *, overwrite: bool) -> None:
    """Raise if a summary would replace another one unasked, or a file that is not ours."""
    if folder.is_ours(_NAME) and not overwrite:
        raise MapFileError(f"{folder.path} already holds a summary. Choose another folder, or pass --overwrite.")
    folder.check((_NAME, *_TABLES, "summary.html"))


def write_summary(summary: TrialSummary, folder: OutputFolder) -> None:
    """Write a summary into a folder, which is made if it is not there."""
    groups, ratios, imputations = _TABLES
    rows = summary.group_rows()
    columns = ["imputation", "scan", "participant_id", *summary.by, "count"]
    columns += [] if summary.exposure is None else ["exposure"]
    with folder.alone(listed_in=_NAME):
        folder.write_text(groups, to_tsv(rows[0], rows))
        folder.write_text(ratios, to_tsv((*summary.by, *_RATIO_COLUMNS), summary.ratio_rows()))
        folder.write_text(imputations, to_tsv(columns, summary.imputation_rows()))
        folder.write_text(_NAME, to_json(summary.to_dict() | {"files": folder.listed()}))
