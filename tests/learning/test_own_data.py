"""Data of one's own: which pictures, masks and counts belong together, in which part, and what is said where not."""

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the extra [train]")
Image = pytest.importorskip("PIL.Image", reason="needs the extra [train]")

from learning.own_pictures import write_dots  # noqa: E402 - after the checks

from lesioncount.errors import CohortError, ConfigError, LesionCountError  # noqa: E402
from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.label_table import LabelTable  # noqa: E402
from lesioncount.learning.own_data import read_own_data  # noqa: E402
from lesioncount.learning.scans import MANY  # noqa: E402
from lesioncount.learning.split import split_by_patient  # noqa: E402


def config_of(folder, text="", counts="counts.csv", masks=""):
    lines = [f"images = '{folder / 'pictures'}'"]
    lines += [f"counts = '{folder / counts}'"] if counts else []
    lines += [f"masks = '{folder / masks}'"] if masks else []
    return TrainingConfig.from_toml("\n".join(["[data]", *lines, text]))


def own(folder, text="", **options):
    return read_own_data(config_of(folder, text, **options).data)


def every(source):
    return [source[i] for i in range(len(source))]


@pytest.fixture
def folder(tmp_path):
    return write_dots(tmp_path / "own", 10, masks=True)


def test_counts_alone(folder):
    data = own(folder)
    completed = data.completed(config_of(folder))
    assert (completed.data.shape, completed.loss.max_count, completed.loss.rescue) == ((32, 32), 3, True)
    assert (completed.run.pretrain_epochs, completed.run.epochs) == (0, 120)
    parts = data.sources()
    assert [len(parts[part]) for part in ("train", "val", "test")] == [6, 2, 2]
    for scan in every(parts["train"]):
        assert scan.mask is None
        assert scan.at_least == scan.at_most == int(scan.name[-2:]) % 4
        assert scan.images.shape == (1, 32, 32)
        assert abs(scan.images.mean()) < 1e-5
    assert "10 pictures (1 channel of 32 × 32 pixels), learned from counts alone: 6 train, 2 val, 2 test" in str(data)


def test_a_network_worse_than_a_constant_is_said_with_both_numbers(folder):
    data, config = own(folder), config_of(folder)
    assert data.warning({"test_rps": 0.1}, config) == data.warning({}, config) == ""
    assert "RPS 3.00 against " in data.warning({"test_rps": 3.0}, config)


def test_masks_are_counted_and_keep_the_stages_of_the_training(folder):
    data = own(folder, counts="", masks="masks")
    completed = data.completed(config_of(folder, counts="", masks="masks"))
    assert (completed.run.pretrain_epochs, completed.loss.rescue) == (20, False)
    for scan in every(data.sources()["test"]):
        assert scan.at_least == scan.at_most == int(scan.name[-2:]) % 4
        assert (scan.mask.sum() > 0) == (scan.at_least > 0)


def test_some_masks_and_counts_of_the_others(folder):
    for number in range(7):
        (folder / "masks" / f"dish{number:02}.png").unlink()
    data = own(folder, masks="masks")
    assert sum(scan.mask is not None for scan in data.scans) == 3
    with_masks = own(folder, counts="", masks="masks")
    assert len(with_masks.scans) == 3
    assert [path.name for path in with_masks.unknown] == [f"dish{number:02}.png" for number in range(7)]
    assert with_masks.lists({})["predict"] == list(with_masks.unknown)
    assert "7 without a count or mask are for prediction: predict.txt" in str(with_masks)


def test_counts_that_contradict_masks_are_named_and_touching_lesions_are_not(folder):
    table = folder / "counts.csv"
    table.write_text(table.read_text().replace("dish03.png,3", "dish03.png,5"))  # more than the mask tells apart
    assert max(scan.at_least for scan in own(folder, masks="masks").scans) == 5
    table.write_text(table.read_text().replace("dish03.png,5", "dish03.png,2"))
    with pytest.raises(CohortError, match="dish03: the table says 2 lesions, but the mask has 3"):
        own(folder, masks="masks")


def test_values_of_masks(folder):
    path = folder / "masks" / "dish03.png"
    mask = np.asarray(Image.open(path)) // 255
    mask[0, 0], mask[0, -1] = 7, 8
    Image.fromarray(mask).save(path)
    with pytest.raises(CohortError, match=r"holds 0, 1, 7, 8.*mask_label = 8, or.*instances = true"):
        own(folder, counts="", masks="masks")
    counts = [
        own(folder, text, counts="", masks="masks").scans[3].at_least for text in ("instances = true", "mask_label = 7")
    ]
    assert counts == [3, 1]
    Image.fromarray(mask[:-1]).save(path)
    with pytest.raises(CohortError, match=r"must lie pixel on pixel.* the mask .*has shape \(31, 32\)"):
        own(folder, counts="", masks="masks")


def test_masks_below_the_pictures_and_with_a_suffix(folder):
    (folder / "masks").rename(folder / "pictures" / "truth")
    for path in (folder / "pictures" / "truth").iterdir():
        path.rename(path.with_name(path.stem + "_mask.png"))
    data = own(folder, "mask_suffix = '_mask'", counts="", masks="pictures/truth")
    assert len(data.scans) == 10
    assert all(scan.mask is not None for scan in data.scans)


def test_pictures_of_different_sizes_are_padded_or_brought_to_one(folder):
    path = folder / "pictures" / "dish03.png"
    picture, mask = Image.open(path), Image.open(folder / "masks" / "dish03.png")
    picture.crop((0, 0, 32, 40)).save(path)
    mask.crop((0, 0, 32, 40)).save(folder / "masks" / "dish03.png")
    data = own(folder, masks="masks")
    assert data.shape == (40, 32)
    assert "of up to 40 × 32, padded to that size" in str(data)
    assert {scan.images.shape for part in data.sources().values() for scan in every(part)} == {(1, 40, 32)}
    small = own(folder, "resize = [16, 24]", masks="masks")
    assert small.completed(config_of(folder, "resize = [16, 24]")).data.shape == (16, 24)
    scans = [scan for part in small.sources().values() for scan in every(part)]
    assert {scan.images.shape for scan in scans} == {(1, 16, 24)}
    assert {scan.mask.shape for scan in scans} == {(16, 24)}
    with pytest.raises(ConfigError, match="resize in \\[data\\] to have 2 numbers"):
        own(folder, "resize = [16, 24, 3]")


def test_large_pictures_come_with_advice(tmp_path):
    folder = write_dots(tmp_path / "own", 3)
    assert own(folder).advice == ""
    Image.fromarray(np.zeros((1200, 1000), np.uint8)).save(folder / "pictures" / "dish00.png")
    assert own(folder).advice.endswith("write in [data], for example: resize = [600, 500]")


def test_pictures_of_another_kind_are_named(folder):
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(folder / "pictures" / "odd.png")
    with pytest.raises(
        CohortError, match=r"odd\.png has 3 channels of 32 × 32 pixels, and .*dish00\.png has 1 channel"
    ):
        own(folder)


def test_scans_of_several_files(tmp_path, rng):
    (tmp_path / "pictures").mkdir()
    rows = ["scan,at_least,at_most,patient,split"]
    for number in range(4):
        for suffix in ("_T1w", "_FLAIR"):
            image = nibabel.Nifti1Image(rng.normal(size=(5, 4, 3)), np.eye(4))
            nibabel.save(image, tmp_path / "pictures" / f"sub-{number}{suffix}.nii.gz")
        rows.append(f"sub-{number},{number},n/a,{'aabc'[number]},{('train', 'train', 'val', 'test')[number]}")
    (tmp_path / "counts.csv").write_text("\n".join(rows))
    data = own(tmp_path, "channels = ['_T1w', '_FLAIR']")
    parts = data.sources()
    scan = parts["train"][1]
    assert (scan.images.shape, scan.name, scan.patient) == ((2, 3, 4, 5), "sub-1", "a")
    assert (scan.at_least, scan.at_most) == (1, MANY)
    assert [len(parts[part]) for part in ("train", "val", "test")] == [2, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,n\ndish00,1\n", "column 'scan' in .*name, n.*name it in \\[data\\]: scan_column = "),
        ("scan,n\ndish00,1\n", "column 'count' in .*count_column"),
        ("scan,count,count\na,1,1\n", "more than one column 'count'"),
        ("scan,count\na,1\na.png,2\n", "'a' has more than one row"),
        ("scan,count\nother,1\n", "No row of .* belongs to a picture. Pictures are called dish00, dish01"),
        (
            "scan,count\ndish00,many\n",
            "expected a whole number of at least 0, or n/a, as count of dish00, but got 'many'",
        ),
        ("scan,count\ndish00,-1\n", "as count of dish00, but got '-1'"),
        ("scan,count,at_least\ndish00,1,2\n", "contradict each other"),
        ("scan,at_least,at_most\ndish00,3,2\n", "at_least of dish00 is above at_most"),
        ("scan,count,split\ndish00,1,learn\n", "expected train, val, test or n/a as split of dish00, but got 'learn'"),
        ("scan,count\ndish00,1,2,3\n", "more cells than the header"),
        ("scan,count\ndish00,n/a\n", r"dish00\.png and all other pictures have neither a mask nor a count"),
    ],
)
def test_tables_that_cannot_be_used(folder, text, message):
    (folder / "counts.csv").write_text(text)
    with pytest.raises(LesionCountError, match=message):
        own(folder)


def test_a_table_that_is_not_there_is_said_without_a_number(folder):
    with pytest.raises(LesionCountError, match=r"nothing\.csv cannot be read: No such file or directory\.$"):
        own(folder, counts="nothing.csv")


def test_tables_of_spreadsheets(tmp_path):
    (tmp_path / "t.csv").write_text("\ufeffFile; n ;patient\r\nday1\\a.JPG;3.0;p1\r\n;;\r\nb;;p2\r\n", "utf-8")
    table = LabelTable(tmp_path / "t.csv", scan_column="File", count_column="n")
    assert (table.label_of("day1/a").count, table.label_of("day1/a").patient) == (3, "p1")
    assert table.label_of("b").count is None
    assert table.label_of("c") is None


def test_one_row_does_not_serve_two_pictures(folder):
    (folder / "pictures" / "again").mkdir()
    Image.open(folder / "pictures" / "dish00.png").save(folder / "pictures" / "again" / "dish00.png")
    with pytest.raises(CohortError, match="the row 'dish00' would serve both"):
        own(folder)


def test_nothing_to_learn_from(folder):
    with pytest.raises(ConfigError, match=r'Expected images in \[data\].*images = "pictures"'):
        read_own_data(TrainingConfig().data)
    with pytest.raises(ConfigError, match=r'Expected masks or counts in \[data\].*counts = "counts.csv"'):
        own(folder, counts="")


def test_patients_by_their_names(folder):
    data = own(folder, "patient = 'dish(\\d)'")
    assert {scan.patient for scan in data.scans} == {"0"}
    with pytest.raises(CohortError, match=r"Expected at least 3 patients, .* but there is 1"):
        data.parts()
    with pytest.raises(ConfigError, match=r"Expected patient in \[data\] to be a regular expression"):
        own(folder, "patient = '('")
    with pytest.raises(CohortError, match="finds no patient in this name"):
        own(folder, "patient = 'sub-.*'")


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 6)), min_size=1, max_size=60),
    st.tuples(*[st.floats(0.05, 1)] * 3),
    st.integers(0, 5),
)
def test_parts_are_of_whole_patients_have_their_shares_and_are_the_same_every_time(scans, shares, seed):
    patients, kinds = [f"p{patient}" for patient, _ in scans], [kind for _, kind in scans]
    n = len(set(patients))
    if n < 3:
        with pytest.raises(CohortError, match="at least 3 patients"):
            split_by_patient(patients, [""] * len(scans), kinds, shares=shares, seed=seed)
        return
    parts = split_by_patient(patients, [""] * len(scans), kinds, shares=shares, seed=seed)
    of = dict(zip(patients, parts, strict=True))
    assert [of[patient] for patient in patients] == parts
    sizes = [sum(part == name for part in of.values()) for name in ("train", "val", "test")]
    assert min(sizes) >= 1
    expected = [n * share / sum(shares) for share in shares]
    assert all(abs(size - share) < 2 or min(expected) < 1 for size, share in zip(sizes, expected, strict=True))
    order = np.random.default_rng(seed).permutation(len(scans))
    again = split_by_patient(
        [patients[i] for i in order], [""] * len(scans), [kinds[i] for i in order], shares=shares, seed=seed
    )
    assert [parts[i] for i in order] == again


def test_parts_of_a_table():
    with pytest.raises(CohortError, match="to some pictures but not to all"):
        split_by_patient(["a", "b"], ["train", ""], [0, 0], shares=(1, 1, 1), seed=0)
    with pytest.raises(CohortError, match="'a' is in two parts, train and val"):
        split_by_patient(["a", "a"], ["train", "val"], [0, 0], shares=(1, 1, 1), seed=0)
    with pytest.raises(CohortError, match="puts no picture into val or test"):
        split_by_patient(["a", "b"], ["train", "train"], [0, 0], shares=(1, 1, 1), seed=0)
