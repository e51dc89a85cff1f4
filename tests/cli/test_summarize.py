"""``lesioncount summarize``: what is printed, and what is refused."""

import re
import sys

import pytest
from small_trial import counted, write_table

from lesioncount.cli import main


@pytest.fixture
def trial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counted(tmp_path / "maps", tmp_path / "out")


@pytest.mark.usefixtures("trial")
def test_a_plain_table_of_80_columns_is_printed(capsys):
    pytest.importorskip("statsmodels", reason="needs the extra [stats]")
    assert main(["summarize", "out", "--by", "arm"]) == 0
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert re.search(r"^arm +patients +scans +lesions +mean per scan +doubt$", shown, re.MULTILINE)
    assert re.search(r"^placebo +6 +6 +37\.2 \[\d+, \d+\] +6\.20 \[\d\.\d\d, \d\.\d\d\] +\d+ %$", shown, re.MULTILINE)
    assert re.search(
        r"^  treated: 0\.\d\d \[0\.\d\d, 0\.\d\d\], p [=<] 0\.0\d+, \d+ % of the variance", shown, re.MULTILINE
    )
    assert "Rate ratios to placebo, per scan:" in shown
    assert "note: Counts are those of the maps as they are" in shown


@pytest.mark.usefixtures("trial")
def test_nothing_is_written_unless_asked_for(tmp_path, capsys):
    before = sorted(tmp_path.rglob("*"))
    assert main(["summarize", "out", "--by", "arm"]) == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert "Results:" not in capsys.readouterr().out


@pytest.mark.usefixtures("trial")
def test_files_and_a_page_are_written(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    assert main(["summarize", "out", "--by", "arm", "-o", "summary"]) == 0
    files = {path.name for path in (tmp_path / "summary").iterdir() if path.is_file() and path.name[0] != "."}
    assert files == {"summary.json", "groups.tsv", "ratios.tsv", "imputations.tsv", "summary.html"}
    shown = capsys.readouterr().out
    assert "Results: summary\nReport: summary/summary.html\n" in shown
    assert main(["summarize", "out", "--by", "arm", "-o", "summary"]) == 2
    assert main(["summarize", "out", "--by", "arm", "-o", "summary", "--overwrite", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_rates_and_sessions_are_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    counted(tmp_path / "maps", tmp_path / "out", sessions=2)
    assert main(["summarize", "out", "--by", "arm", "session_id", "--reference", "treated", "ses-01"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^arm/session_id +patients", shown, re.MULTILINE)
    assert shown.index("treated, ses-01 ") < shown.index("placebo, ses-01 ")
    write_table(tmp_path / "maps" / "participants.tsv", years=range(1, 13))
    assert main(["summarize", "out", "--by", "arm", "--exposure", "years"]) == 2
    assert "sub-01 has several scans" in capsys.readouterr().err
    assert main(["summarize", "out", "--by", "arm"]) == 0
    assert "Some patients have several scans." in capsys.readouterr().out


@pytest.mark.usefixtures("trial")
def test_rates_are_per_unit_of_the_exposure(tmp_path, capsys):
    write_table(tmp_path / "maps" / "participants.tsv", years=[2] * 12)
    assert main(["summarize", "out", "--by", "arm", "--exposure", "years"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^placebo .* 3\.10 \[", shown, re.MULTILINE)
    assert "Rates are lesions per unit of years" in " ".join(shown.split())


@pytest.mark.usefixtures("trial")
def test_a_missing_page_or_package_is_said(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setitem(sys.modules, "statsmodels.discrete.discrete_model", None)
    assert main(["summarize", "out", "--by", "arm", "-o", "summary"]) == 0
    shown = capsys.readouterr()
    assert "There will be no summary.html" in shown.err
    assert "treated: not known: A rate ratio needs the package statsmodels" in " ".join(shown.out.split())
    assert "Ratios:" not in shown.out
    assert "Report:" not in shown.out


@pytest.mark.usefixtures("trial")
def test_long_names_of_groups_are_cut(tmp_path, capsys):
    text = (tmp_path / "maps" / "participants.tsv").read_text()
    (tmp_path / "t.tsv").write_text(text.replace("placebo", "placebo and whatever else the site had at hand"))
    assert main(["summarize", "out", "--by", "arm", "--participants", "t.tsv"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^placebo and whatever …  +6 ", shown, re.MULTILINE)
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.usefixtures("trial")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("summarize maps --by arm", "Expected the results of a run in maps"),
        ("summarize out --by site", "Expected a column 'site'"),
        ("summarize out --by arm --participants none.tsv", "none.tsv cannot be read"),
        ("summarize out --by arm --reference nobody", "no group 'nobody'"),
        ("summarize out --by arm --imputations 1", "Expected from 2 to 10000 imputations"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path, capsys, command, message):
    assert main([*command.split(), "-o", "summary"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "summary").exists()


@pytest.mark.usefixtures("trial")
@pytest.mark.parametrize("name", ["summary.json", "groups.tsv", "ratios.tsv", "imputations.tsv", "summary.html"])
def test_files_of_others_are_left_alone(tmp_path, capsys, name):
    (tmp_path / "summary").mkdir()
    (tmp_path / "summary" / name).write_text("mine")
    for option in ([], ["--overwrite"]):
        assert main(["summarize", "out", "--by", "arm", "-o", "summary", *option]) == 2
        assert f"{name} is not a result of an earlier run" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "summary").iterdir()] == [name]


@pytest.mark.usefixtures("trial")
def test_one_patient_has_a_mean_without_an_interval(tmp_path, capsys):
    write_table(tmp_path / "t.tsv", who=["alone", *["others"] * 11])
    assert main(["summarize", "out", "--by", "who", "--participants", "t.tsv", "--reference", "others"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^alone +1 +1 +4\.30 \[\d, \d\] +4\.30 +–$", shown, re.MULTILINE)
    assert "  alone: not known: there is one patient only" in shown


@pytest.mark.usefixtures("trial")
def test_one_group_has_no_ratios(tmp_path, capsys):
    write_table(tmp_path / "t.tsv", everyone=["all"] * 12)
    assert main(["summarize", "out", "--by", "everyone", "--participants", "t.tsv"]) == 0
    shown = capsys.readouterr().out
    assert "Rate ratios" not in shown
    assert "Ratios:" not in shown
