"""What a hand tries first in a notebook: tables, pictures, rows, keywords, images of other libraries."""

import json
import math
import re
import subprocess
import sys
from dataclasses import fields
from xml.etree import ElementTree as ET

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lesioncount as lc
from lesioncount.demo import example_maps
from lesioncount.distributions.plotting import grouped
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.distributions.with_extra import CountWithExtra
from lesioncount.errors import (
    BinaryMapWarning,
    MissingExtraError,
    ProtocolError,
    ShapeError,
    SpacingError,
    UnknownOptionError,
    VoxelTypeError,
)
from lesioncount.folder.plain import cells
from lesioncount.protocol import ComponentFields, ProtocolFields
from lesioncount.results.scan_numbers import CountNumbers
from lesioncount.views.notebook import html_of_count, picture, table_of


@pytest.fixture
def probabilities():
    return example_maps()["unsure"]


@pytest.fixture
def touching():
    p = np.zeros((5, 12))
    p[1:4, 1:6], p[1:4, 6:11] = 0.3, 0.3
    p[2, 3], p[2, 8] = 0.9, 0.8
    return p


class TestRows:
    def test_a_candidate_is_a_row_of_the_columns(self, probabilities):
        candidates = lc.find_candidates(probabilities, spacing_mm=(3, 1, 1))
        for i, candidate in enumerate(candidates):
            assert candidate == candidates[i - len(candidates)] == candidates[np.int64(i)]
            assert candidate.label == i + 1
            assert candidate.n_voxels == candidates.n_voxels[i] == (candidates.label_map() == i + 1).sum()
            assert candidate.peak_probability == probabilities[candidate.peak_index] == candidate.existence
            assert candidate.volume_mm3 == 3 * candidate.n_voxels
            assert probabilities[candidate.slices].max() == candidate.peak_probability
        assert len(list(candidates)) == len(candidates) == 5
        assert candidates[1:3] == [candidates[1], candidates[2]]

    def test_rows_that_are_not_there(self, probabilities):
        candidates = lc.find_candidates(probabilities)
        for row in (5, -6):
            with pytest.raises(IndexError, match=f"no candidate {row}: the map has 5"):
                candidates[row]
        with pytest.raises(TypeError):
            candidates["first"]

    def test_peaks_have_their_saddles(self, touching):
        high, low = lc.find_candidates(touching, protocol="peaks")
        assert (high.existence, high.saddle_index, high.saddle_probability) == (0.9, None, 0)
        assert low.existence == pytest.approx(0.5)
        assert touching[low.saddle_index] == low.saddle_probability == 0.3

    def test_an_empty_map_has_no_rows(self):
        result = lc.count_lesions(np.zeros((3, 4)))
        assert list(result.candidates) == []
        pytest.importorskip("pandas", reason="needs the extra [notebook]")
        assert len(result.to_dataframe()) == len(result.candidates.to_dataframe()) == 0


class TestTables:
    def test_a_result_is_a_table_of_its_candidates(self, probabilities):
        pytest.importorskip("pandas")
        result = lc.count_lesions(probabilities, spacing_mm=(3, 1, 1))
        frame = result.to_dataframe()
        assert list(frame.columns[:2]) == ["label", "existence"]
        np.testing.assert_array_equal(frame["existence"], result.existence)
        np.testing.assert_array_equal(frame["peak_index-0"], result.candidates.peak_index[:, 0])
        assert result.candidates.to_dataframe().equals(frame.drop(columns="existence"))

    def test_without_pandas_the_message_says_what_to_install(self, probabilities, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        result = lc.count_lesions(probabilities)
        for table in (result, result.candidates):
            with pytest.raises(MissingExtraError, match=r"to_dataframe\(\) needs the package pandas.*'\.\[notebook\]'"):
                table.to_dataframe()

    def test_json_has_everything_and_no_nan(self, touching):
        result = lc.count_lesions(touching, protocol="peaks")
        read = json.loads(result.to_json(), parse_constant=pytest.fail)
        assert read == json.loads(json.dumps(result.to_dict()))
        assert read["protocol"] == result.protocol.to_dict()
        assert read["pmf"] == result.distribution.pmf().tolist()
        assert [lesion["existence"] for lesion in read["lesions"]] == pytest.approx([0.9, 0.5])
        assert read["lesions"][0]["volume_mm3"] is None
        assert json.loads(result.candidates.to_json())["lesions"] == read["lesions"]

    def test_json_says_what_tables_say(self, probabilities):
        count = lc.count_lesions(probabilities).distribution
        written, row = count.to_dict(), cells(CountNumbers.of(count))
        assert {name: value for name, value in row.items() if not name.startswith("p_")} == {
            name: value for name, value in written.items() if name != "pmf"
        }
        assert json.loads(count.to_json()) == written


class TestKeywords:
    def test_fields_of_the_protocol_are_keywords(self, probabilities):
        wanted = lc.CountingProtocol(threshold=0.3, connectivity=26, min_voxels=2)
        result = lc.count_lesions(probabilities, threshold=0.3, connectivity=26, min_voxels=2)
        assert result.protocol == wanted
        assert str(result) == str(lc.count_lesions(probabilities, protocol=wanted))

    def test_all_fields_are(self):
        names = {field.name for field in fields(lc.CountingProtocol)}
        assert set(ProtocolFields.__annotations__) == names
        assert set(ComponentFields.__annotations__) == names - {
            "threshold",
            "candidates",
            "min_persistence",
            "merge_within_mm",
        }

    def test_keywords_go_before_the_protocol(self, touching):
        result = lc.count_lesions(touching, protocol="peaks", threshold=0.35)
        assert result.protocol == lc.CountingProtocol(candidates="peaks", threshold=0.35)
        assert len(lc.find_candidates(touching, protocol="peaks", candidates="regions")) == 1

    def test_every_function_that_counts_has_them(self, probabilities, tmp_path):
        np.save(tmp_path / "map.npy", probabilities)
        counter = lc.StreamingCounter(probabilities.shape[1:], probabilities.dtype, threshold=0.3)
        counter.push(probabilities)
        expected = len(lc.find_candidates(probabilities, threshold=0.3))
        assert len(counter.result().candidates) == expected == 4
        assert len(lc.count_file(tmp_path / "map.npy", threshold=0.3).result.candidates) == expected
        assert len(lc.count_files(tmp_path, threshold=0.3)[0].existence) == expected
        assert lc.connected_component_count(probabilities, threshold=0.3, min_voxels=20) == 3

    @pytest.mark.parametrize(
        ("name", "advice"),
        [
            ("treshold", "Did you mean threshold="),
            ("spacing", "Did you mean spacing_mm="),
            ("xyz", "There are protocol"),
        ],
    )
    def test_names_that_are_none_are_refused(self, probabilities, tmp_path, name, advice):
        for count in (lc.count_lesions, lc.find_candidates):
            with pytest.raises(UnknownOptionError, match=f"no option '{name}'. {advice}"):
                count(probabilities, **{name: 1})
        with pytest.raises(TypeError, match=f"no option '{name}'"):
            lc.count_file(tmp_path / "none.npy", **{name: 1})

    def test_values_are_checked_as_those_of_a_protocol(self, probabilities):
        with pytest.raises(ProtocolError, match="threshold in"):
            lc.count_lesions(probabilities, threshold=30)


class TestImages:
    def test_nibabel(self, probabilities):
        image = nibabel.Nifti1Image(probabilities, np.diag([3.0, 1.0, 0.5, 1.0]))
        result = lc.count_lesions(image)
        assert result.candidates.spacing_mm == (3.0, 1.0, 0.5)
        assert str(result) == str(lc.count_lesions(probabilities, spacing_mm=(3, 1, 0.5)))
        assert lc.count_lesions(image, spacing_mm=(1, 1, 1)).candidates.volume_mm3[0] == result.candidates.n_voxels[0]

    def test_nibabel_counts_as_its_file_does(self, probabilities, tmp_path):
        sheared = np.array([[2.0, 0.5, 0, 9], [0, 1.0, 0, 8], [0, 0, 1.5, 7], [0, 0, 0, 1]])
        image = nibabel.Nifti1Image(probabilities, sheared)
        image.header.set_xyzt_units("micron")
        nibabel.save(image, tmp_path / "map.nii.gz")
        here, there = lc.count_lesions(image).candidates, lc.count_file(tmp_path / "map.nii.gz").result.candidates
        np.testing.assert_allclose(here.volume_mm3, there.volume_mm3)
        assert here.spacing_mm == pytest.approx(there.spacing_mm)
        assert here.volume_mm3[0] == pytest.approx(here.n_voxels[0] * 3e-9)

    @pytest.mark.parametrize(("unit", "per_mm"), [("micron", 1000.0), ("meter", 0.001)])
    def test_nibabel_images_of_one_grid_in_other_units_lie_in_the_same_place(self, probabilities, unit, per_mm):
        affine = np.array([[3.0, 0, 0, -20], [0, 1.0, 0, 30], [0, 0, 0.5, 40], [0, 0, 0, 1]])
        in_mm = nibabel.Nifti1Image(probabilities, affine)
        in_mm.header.set_xyzt_units("mm")
        other = nibabel.Nifti1Image(probabilities, np.diag([per_mm, per_mm, per_mm, 1.0]) @ affine)
        other.header.set_xyzt_units(unit)
        for pair in ((in_mm, other), (other, in_mm)):
            changes = lc.compare(*pair)
            assert changes.new.mean() == changes.gone.mean() == 0
            np.testing.assert_allclose(changes.before.existence, changes.after.existence)
            assert changes.after.candidates.spacing_mm == pytest.approx((3, 1, 0.5))
        assert lc.compare(in_mm, other.slicer[:, :, 4:]).gone.mean() == 0

    def test_nibabel_with_one_volume_in_four_axes(self, probabilities):
        result = lc.count_lesions(nibabel.Nifti1Image(probabilities[..., None], np.eye(4)))
        assert result.candidates.shape == probabilities.shape

    @pytest.mark.parametrize(
        ("shape", "advice"),
        [((2, 8, 9, 7), r"probabilities\[1\]"), ((1, 8, 9, 7), r"probabilities\[0\]"),
         ((8, 9, 7, 2), r"probabilities\[\.\.\., 1\]"), ((1, 1, 8, 9, 7), r"probabilities\[0\]")],
    )  # fmt: skip
    def test_several_maps_are_told_apart_by_the_shorter_end(self, shape, advice):
        with pytest.raises(ShapeError, match=f"Choose one channel or one scan first, such as {advice}"):
            lc.count_lesions(np.zeros(shape))

    def test_simpleitk(self, probabilities):
        sitk = pytest.importorskip("SimpleITK")
        image = sitk.GetImageFromArray(probabilities)
        image.SetSpacing((0.5, 1.0, 3.0))  # x, y, z
        mask = sitk.GetImageFromArray(np.ones(probabilities.shape, np.uint8))
        result = lc.count_lesions(image, mask=mask)
        assert result.candidates.spacing_mm == (3.0, 1.0, 0.5)
        np.testing.assert_array_equal(result.existence, lc.count_lesions(probabilities).existence)

    def test_meta_tensor(self, probabilities):
        monai, torch = pytest.importorskip("monai.data"), pytest.importorskip("torch")
        tensor = monai.MetaTensor(torch.as_tensor(probabilities)[None], affine=np.diag([3.0, 1.0, 0.5, 1.0]))
        for image in (tensor, tensor[0]):
            assert lc.count_lesions(image).candidates.spacing_mm == (3.0, 1.0, 0.5)
            assert lc.count_lesions(image).candidates.shape == probabilities.shape
        with pytest.raises(ShapeError, match="2-D or 3-D"):
            lc.count_lesions(monai.list_data_collate([tensor, tensor]))

    @pytest.mark.parametrize(("unit", "mm"), [(None, 1.0), ("mm", 1.0), ("µm", 1e-3), ("cm", 10.0)])
    def test_xarray(self, probabilities, unit, mm):
        xarray = pytest.importorskip("xarray")
        coords = {
            dim: np.arange(n) * step for dim, n, step in zip("zyx", probabilities.shape, (-3, 1, 0.5), strict=True)
        }
        array = xarray.DataArray(probabilities, dims=("z", "y", "x"), coords=coords)
        for dim in "zyx" if unit else "":
            array.coords[dim].attrs["units"] = unit
        assert lc.count_lesions(array).candidates.spacing_mm == pytest.approx((3 * mm, mm, 0.5 * mm))

    @pytest.mark.parametrize(
        "x", [None, [0, 1, 3, 4], ["a", "b", "c", "d"], [5, 5, 5, 5]], ids=["none", "uneven", "names", "flat"]
    )
    def test_xarray_without_a_size_has_none(self, x):
        xarray = pytest.importorskip("xarray")
        coords = {"y": [0.0, 2.0, 4.0]} | ({} if x is None else {"x": x})
        array = xarray.DataArray(np.full((3, 4), 0.3), dims=("y", "x"), coords=coords)
        assert lc.count_lesions(array).candidates.spacing_mm is None
        with pytest.raises(SpacingError, match="voxel size is unknown"):
            lc.count_lesions(array, min_volume_mm3=3)

    def test_xarray_in_seconds_has_no_size(self):
        xarray = pytest.importorskip("xarray")
        array = xarray.DataArray(np.full((3, 4), 0.3), dims=("t", "x"), coords={"t": [0, 1, 2], "x": [0, 1, 2, 3]})
        array.coords["t"].attrs["units"] = "s"
        assert lc.count_lesions(array).candidates.spacing_mm is None

    def test_a_path_is_told_where_to_go(self, tmp_path):
        for path in (tmp_path / "map.nii.gz", "map.nii.gz"):
            for count in (lc.count_lesions, lc.find_candidates, lc.connected_component_count):
                with pytest.raises(ShapeError, match=r"got the path.*lesioncount.count_file\(path\)"):
                    count(path)
        with pytest.raises(ShapeError, match=r"mask as an array.*count_file"):
            lc.count_lesions(np.zeros((3, 3)), mask="mask.nii.gz")
        with pytest.raises(ShapeError, match=r"lesioncount.count_files\(paths\)"):
            lc.count_lesions(["a.nii.gz", "b.nii.gz"])

    def test_tensors_are_told_what_to_do(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(VoxelTypeError, match=r"requires grad. Pass tensor.detach\(\)\. To train .*CountLoss"):
            lc.count_lesions(torch.rand(3, 3, requires_grad=True))
        with pytest.raises(VoxelTypeError, match=r"bfloat16.*Pass tensor.float\(\)\."):
            lc.count_lesions(torch.rand(3, 3).bfloat16())
        with pytest.raises(VoxelTypeError, match=r"device. Pass tensor.cpu\(\)\."):
            lc.count_lesions(torch.rand(3, 3, device="meta"))
        assert len(lc.count_lesions(torch.full((3, 3), 0.3)).candidates) == 1

    def test_bfloat16_of_numpy_is_told_what_to_do(self):
        kinds = pytest.importorskip("ml_dtypes")
        with pytest.raises(VoxelTypeError, match=r"dtype is bfloat16. Pass probabilities.astype\(numpy.float32\)"):
            lc.count_lesions(np.zeros((3, 3), kinds.bfloat16))


class TestPictures:
    def test_html_is_a_drawing_and_a_table(self, probabilities):
        result = lc.count_lesions(probabilities, spacing_mm=(3, 1, 1))
        html = result._repr_html_()
        tree = ET.fromstring(html.replace("<br>", "<br/>"))  # noqa: S314 - our own
        bars = tree.findall(".//{*}rect")
        titles = [bar.find("{*}title").text for bar in bars]
        assert titles == [f"P({k}) = {p:.3g}" for k, p in enumerate(result.distribution.pmf())]
        assert {bar.get("fill") for bar in bars} == {"currentColor"}
        assert result.headline in "".join(tree.itertext())
        assert len(tree.findall(".//tbody/tr")) == 5
        assert not re.search(r"#[0-9a-f]{3,6}\b|<script|<style|url\(|href", html)

    def test_bars_outside_of_the_interval_are_paler(self, probabilities):
        result = lc.count_lesions(probabilities)
        shades = re.findall(r'fill-opacity="([\d.]+)"', result._repr_html_())
        low, high = result.distribution.interval(0.9)
        assert [shade == "0.85" for shade in shades] == [low <= k <= high for k in range(len(shades))]

    @given(st.lists(st.floats(0, 1), max_size=300))
    def test_all_probability_is_drawn_in_few_bars(self, p):
        count = lc.PoissonBinomial(p)
        edges, drawn = grouped(count, 60)
        assert len(drawn) <= 60
        assert len(edges) == len(drawn) + 1
        assert drawn.min() >= 0
        assert 0.997 <= drawn.sum() <= 1 + 1e-12
        ET.fromstring(f"<div>{picture(count).replace('<br>', '')}</div>")  # noqa: S314 - our own

    def test_texts_are_escaped(self):
        evil = "<script>alert('x')</script>&"
        assert "<script" not in table_of([evil], [[evil]])
        candidates = lc.find_candidates(np.full((3, 3), 0.3))
        assert "<script" not in html_of_count(evil, lc.PoissonBinomial([0.3]), candidates)

    def test_a_warning_is_shown_and_an_empty_map_is_not_an_error(self):
        with pytest.warns(BinaryMapWarning):
            result = lc.count_lesions(np.eye(3))
        assert "⚠ This map is binary" in result._repr_html_()
        assert "0 lesions most likely (100.0%)" in lc.count_lesions(np.zeros((3, 3)))._repr_html_()

    @pytest.mark.parametrize(
        "count",
        [
            lc.PoissonBinomial([0.2, 0.9]),
            lc.PoissonBinomial([]),
            lc.PoissonBinomial(np.full(3000, 0.5)),
            lc.MixtureOfCounts([lc.PoissonBinomial([0.2]), lc.PoissonBinomial([0.9, 0.8])]),
            CountWithExtra(lc.PoissonBinomial([0.5]), 2.0, 0.7),
            SumOfCounts([lc.PoissonBinomial([0.5]), lc.PoissonBinomial([0.5])]),
        ],
        ids=["two", "none", "many", "mixture", "extra", "sum"],
    )
    def test_every_distribution_can_be_drawn(self, count):
        figure = pytest.importorskip("matplotlib.figure").Figure()
        ax = figure.subplots()
        assert count.plot(ax=ax, color="teal") is ax
        heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.patches}
        assert math.fsum(heights.values()) > 0.99
        for k, height in heights.items():
            assert height == pytest.approx(count.pmf(k))
        low, high = count.interval(0.9)
        assert [bar.get_alpha() == 1 for bar in ax.patches] == [low <= k <= high for k in heights]
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of lesions", "probability")

    def test_the_current_axes_are_the_default(self):
        pyplot = pytest.importorskip("matplotlib.pyplot")
        pyplot.switch_backend("agg")
        _, ax = pyplot.subplots()
        assert lc.PoissonBinomial([0.5]).plot() is ax
        pyplot.close()

    def test_without_matplotlib_the_message_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(MissingExtraError, match=r"plot\(\) needs the package matplotlib.*'\.\[notebook\]'"):
            lc.PoissonBinomial([0.5]).plot()

    def test_nothing_is_loaded_that_is_not_needed(self):
        code = (
            "import sys, numpy as np, lesioncount as lc\n"
            "result = lc.count_lesions(np.full((4, 4), 0.3), threshold=0.2)\n"
            "result._repr_html_(); result.to_json(); list(result.candidates)\n"
            "print([m for m in ('pandas', 'matplotlib', 'torch', 'nibabel', 'xarray') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"
