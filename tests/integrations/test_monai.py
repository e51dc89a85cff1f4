"""Transforms, loss and metric with the real MONAI."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
# Of MONAI itself: LoadImage tries readers that are not installed.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:NvImgCodec:UserWarning")

from monai.data import DataLoader, Dataset, MetaTensor  # noqa: E402 - after the check for MONAI
from monai.inferers import sliding_window_inference  # noqa: E402
from monai.losses import DiceCELoss  # noqa: E402
from monai.transforms import Activationsd, Compose, LoadImaged  # noqa: E402

import lesioncount as lc  # noqa: E402
from lesioncount.errors import CutOffMapWarning, ShapeError  # noqa: E402
from lesioncount.integrations.monai import CountLesions, CountLesionsd, CountMetric  # noqa: E402
from lesioncount.torch import CountLoss  # noqa: E402


def probability_map(*peaks, shape=(12, 12, 12)):
    p = np.full(shape, 0.01, dtype=np.float32)
    for i, peak in enumerate(peaks):
        p[(1 + 3 * i,) * len(shape)] = peak
    return p


def test_transform_counts_a_channel_first_map():
    count = CountLesions()(torch.from_numpy(probability_map(0.9, 0.4))[None])
    assert count.distribution == lc.count_lesions(probability_map(0.9, 0.4)).distribution


def test_spacing_of_a_metatensor_is_honoured():
    map_ = MetaTensor(probability_map(0.9)[None], affine=torch.diag(torch.tensor([1.0, 2.0, 3.0, 1.0])))
    assert CountLesions()(map_).candidates.volume_mm3.tolist() == pytest.approx([6.0])
    small = lc.CountingProtocol(min_volume_mm3=7)
    assert len(CountLesions(small)(map_).candidates) == 0
    flat = MetaTensor(probability_map(0.9, shape=(9, 9))[None], affine=torch.diag(torch.tensor([2.0, 2.0, 9.0, 1.0])))
    assert CountLesions()(flat).candidates.volume_mm3.tolist() == pytest.approx([4.0])


def test_several_channels_need_a_choice():
    both = torch.from_numpy(np.stack([1 - probability_map(0.9), probability_map(0.9)]))
    with pytest.raises(ShapeError, match="say which with channel="):
        CountLesions()(both)
    assert CountLesions(channel=1)(both).distribution.mode() == 1


def test_masks_are_counted_silently_and_cut_off_maps_are_not():
    mask = torch.from_numpy((probability_map(0.9, 0.8) > 0.5).astype(np.float32))[None]
    assert CountLesions()(mask).distribution.mode() == 2
    cut = probability_map(0.9, 0.8)
    cut[cut < 0.5] = 0
    with pytest.warns(CutOffMapWarning):
        CountLesions()(torch.from_numpy(cut)[None])


def test_dictionary_transform_works_in_a_pipeline_of_files(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    for i in range(4):
        image = nibabel.Nifti1Image(probability_map(*[0.9] * i), np.diag([1.0, 1.0, 2.0, 1.0]))
        nibabel.save(image, tmp_path / f"{i}.nii.gz")
    pipeline = Compose([LoadImaged("pred", ensure_channel_first=True), CountLesionsd("pred")])
    data = Dataset([{"pred": str(tmp_path / f"{i}.nii.gz")} for i in range(4)], pipeline)
    batch = next(iter(DataLoader(data, batch_size=4)))
    assert batch["pred_count"].tolist() == [0, 1, 2, 3]
    assert batch["pred_count_probs"].shape == (4, 5)
    assert batch["pred_count_probs"].sum(1).tolist() == pytest.approx([1] * 4)


def test_missing_keys_are_an_error_unless_allowed():
    with pytest.raises(KeyError):
        CountLesionsd("pred")({})
    assert CountLesionsd("pred", allow_missing_keys=True)({}) == {}


def test_count_loss_adds_to_dice():
    network = torch.nn.Conv3d(1, 1, 3, padding=1)
    images = torch.randn(2, 1, 12, 12, 12)
    masks = (images > 2.5).float()
    logits = network(images)
    loss = DiceCELoss(sigmoid=True)(logits, masks) + 0.01 * CountLoss(max_count=4)(logits, torch.tensor([3, 0]))
    loss.backward()
    assert network.weight.grad.isfinite().all()


def touching():
    p = np.full((1, 9, 9, 9), 0.01, dtype=np.float32)
    p[0, 4, 4, 2:7] = 0.9, 0.5, 0.2, 0.4, 0.8
    return torch.from_numpy(p)


@pytest.mark.parametrize("logits", [False, True])
def test_peaks_that_touch_are_counted_apart(logits):
    given = torch.logit(touching()) if logits else touching()
    assert CountLesions("peaks", logits=logits)(given).existence.tolist() == pytest.approx([0.9, 0.6])
    scan = CountLesionsd("pred", "peaks", logits=logits, max_count=2)({"pred": given})
    assert scan["pred_count"] == 2
    assert scan["pred_count_probs"].tolist() == pytest.approx([0.04, 0.42, 0.54])


def test_metric_of_peaks_takes_masks_and_counts():
    maps = touching()[None]
    metric = CountMetric("nll", "peaks", max_count=2)
    metric(maps, torch.tensor([2]))
    assert metric.aggregate().item() == pytest.approx(-np.log(0.54), rel=1e-5)
    metric.reset()
    metric(maps, (maps > 0.45).float())  # a mask in which the two are apart
    assert metric.aggregate().item() == pytest.approx(-np.log(0.54), rel=1e-5)
    metric.reset()
    metric(maps, (maps > 0.1).float())  # and one in which they are one: a mask has no saddles
    assert metric.aggregate().item() == pytest.approx(-np.log(0.42), rel=1e-5)


def test_metric_of_masks_and_of_counts_agree():
    maps = torch.from_numpy(np.stack([probability_map(*[0.8] * i)[None] for i in range(4)]))
    masks = (maps > 0.5).float()
    for name, expected in (("accuracy", 1.0), ("f1", 1.0), ("nll", None), ("rps", None)):
        from_masks, from_counts = CountMetric(name), CountMetric(name)
        from_masks(maps[:1], masks[:1])
        from_masks(maps[1:], masks[1:])
        from_counts(list(maps), [torch.tensor([i]) for i in range(4)])
        score = from_masks.aggregate().item()
        assert score == pytest.approx(from_counts.aggregate().item())
        assert expected is None or score == expected
        from_masks.reset()
        from_masks(maps[:1], torch.tensor([0]))
        assert len(from_masks.get_buffer()) == 1


def test_sliding_windows_then_a_count():
    """The example of the documentation: windows are put together before lesions are counted, never after."""
    image = torch.from_numpy(probability_map(0.9, 0.8, 0.7, shape=(20, 20, 20)))[None, None]
    logits = sliding_window_inference(torch.logit(image), (8, 8, 8), 4, lambda window: window, overlap=0.25)
    after = Compose([Activationsd("pred", sigmoid=True), CountLesionsd("pred")])({"pred": logits[0]})
    assert after["pred_count"] == 3


def test_outputs_of_a_softmax_are_counted():
    output = torch.randn(2, 6, 7, 8, generator=torch.Generator().manual_seed(2)) * 3
    expected = lc.count_lesions(output.softmax(0)[1].numpy())
    for transform in (
        CountLesions(logits=True, activation="softmax"),
        CountLesions(logits=True, activation="softmax", channel=1),
    ):
        assert transform(output).distribution.mean() == pytest.approx(expected.distribution.mean(), rel=1e-5)
    after = CountLesions(activation="softmax")(output.softmax(0))
    assert after.distribution.mean() == pytest.approx(expected.distribution.mean(), rel=1e-5)
    counted = CountLesionsd("map", logits=True, activation="softmax")({"map": output})
    assert counted["map_count"] == expected.distribution.mode()
    with pytest.raises(ShapeError, match="say which with channel="):
        CountLesions(logits=True, activation="softmax")(torch.zeros(3, 6, 7, 8))
