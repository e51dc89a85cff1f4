"""Attacks on the count: what they change, whom they leave alone, and where they see nothing."""

from dataclasses import fields

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from lesioncount.learning.networks import UNetOutput, counting_network  # noqa: E402
from lesioncount.learning.scans import LearningScan  # noqa: E402
from lesioncount_reproduction.experiments.attack import AttackOutcome, UndoneHead, attack  # noqa: E402 - after the checks
from lesioncount_reproduction.experiments.jobs import attackable  # noqa: E402
from lesioncount_reproduction.experiments.kept_files import save_arrays  # noqa: E402
from lesioncount_reproduction.experiments.presets import AttackSettings  # noqa: E402

SIDE = 12
BACKGROUND = -4.0  # below the threshold of candidates, and above that of the adaptive attack
ADAPTIVE = 0.001

# Of a voxel of the image in one step of Adam, and how many there are.
SETTINGS = AttackSettings(n_scans=8, max_steps=40, rate=0.05, noise=1e-5)


class ImageAsMap(torch.nn.Module):
    """A UNet whose logits are its image: an attack can be followed with a pencil."""

    def forward(self, images):
        return UNetOutput(images[:, :1], images, images)


def by_hand():
    network = counting_network("map", spatial_dims=2, in_channels=1, filters=2, levels=2)
    network.unet = ImageAsMap()
    return network.eval().requires_grad_(False)


def random_network(method):
    """Weights are random, but the count depends on the image."""
    torch.manual_seed(3)
    network = counting_network(method, spatial_dims=2, in_channels=1, filters=4, levels=2, prevalence=0.2)
    return network.eval().requires_grad_(False)


def scan(peaks, count, name="a"):
    """An image with lesions of these logits, apart from each other."""
    image = np.full((1, SIDE, SIDE), BACKGROUND, np.float32)
    for i, peak in enumerate(peaks):
        image[0, 3 * (i // 4) + 1, 3 * (i % 4) + 1] = peak
    return LearningScan(name, f"patient {name}", image, None, count, count)


def noisy_scans(network, n=10, seed=0, dtype=np.float32):
    """Random images, each with the count that the network gives it."""
    images = np.random.default_rng(seed).normal(size=(n, 1, SIDE, SIDE)).astype(dtype)
    labels = network(torch.from_numpy(images)).log_probs.argmax(1).tolist()
    return [LearningScan(f"s{i}", f"p{i}", images[i], None, labels[i], labels[i]) for i in range(n)]


def count_of(network, image):
    return int(network(torch.from_numpy(image)[None]).log_probs.argmax())


def test_scans_that_are_counted_wrong_are_not_attacked():
    scans = [scan([0.2], 2, "wrong"), scan([0.2], 1, "right")]
    found = attack(by_hand(), scans, settings=SETTINGS, weight=0.1)
    assert found.labels.tolist() == [2, 1]
    assert found.before.tolist() == [1, 1]
    assert found.after.tolist() == [1, 0]
    assert found.patients.tolist() == ["patient wrong", "patient right"]
    assert (found.input_change[0], found.map_change[0], found.map_norm[0]) == (0, 0, 0)
    assert not found.blind.any()


def test_an_attack_lowers_the_peak_that_counts_until_it_does_not():
    """From a logit of 0.2, steps of 0.05 need five to get below 0: P = 1/2 is not yet another count."""
    found = attack(by_hand(), [scan([0.2], 1)], settings=SETTINGS, weight=0.0)
    assert found.after.tolist() == [0]
    assert found.steps[0] in (4, 5)
    assert found.input_change[0] == pytest.approx(0.05 * found.steps[0], abs=0.01)
    example = found.example
    assert example["voxel"].tolist() == [1, 1]
    assert np.abs(example["noise"]).argmax() == SIDE + 1
    change = 1 / (1 + np.exp(-0.2 + found.input_change[0])) - 1 / (1 + np.exp(-0.2))
    assert found.map_change[0] == pytest.approx(-change, abs=1e-3)
    assert found.map_norm[0] == pytest.approx(-change, abs=1e-3)


def test_an_attack_that_has_no_steps_left_has_failed():
    few = AttackSettings(n_scans=8, max_steps=3, rate=0.05)
    found = attack(by_hand(), [scan([2.0], 1)], settings=few, weight=0.0)
    assert (found.after.tolist(), found.steps.tolist()) == ([1], [3])
    assert found.input_change[0] > 0.1
    assert found.example == {}


def test_a_high_price_of_changes_protects_the_map():
    cheap, dear = (attack(by_hand(), [scan([1.0], 1)], settings=SETTINGS, weight=w) for w in (0.0, 1000.0))
    assert cheap.after.tolist() == [0]
    assert dear.after.tolist() == [1]
    assert dear.map_norm[0] < 0.2 * cheap.map_norm[0]


def test_five_lesions_and_more_are_one_class():
    found = attack(by_hand(), [scan([5.0] * 7, 7)], settings=SETTINGS, weight=0.1)
    assert found.labels.tolist() == found.before.tolist() == [4]


@pytest.mark.parametrize("method", ["map", "bottleneck"])
def test_a_success_changes_the_count_of_the_image_with_its_noise(method):
    network = random_network(method)
    scans = noisy_scans(network)
    found = attack(network, scans, settings=SETTINGS, weight=0.1)
    assert (found.before == found.labels).all()
    fooled = found.after != found.labels
    assert fooled.any()
    example = found.example
    row = int(example["row"])
    assert fooled[row]
    np.testing.assert_array_equal(example["image"], scans[row].images)
    assert count_of(network, example["image"]) == found.labels[row]
    assert count_of(network, example["image"] + example["noise"]) == found.after[row] != found.labels[row]
    images = (example["image"], example["image"] + example["noise"])
    maps = [network.segment(torch.from_numpy(image)[None]).sigmoid()[0, 0].numpy() for image in images]
    np.testing.assert_allclose(example["map_before"], maps[0], atol=1e-6)
    np.testing.assert_allclose(example["map_after"], maps[1], atol=1e-6)
    assert found.map_change[row] == pytest.approx(np.abs(maps[1] - maps[0]).max(), abs=1e-5)
    assert found.map_change[row] == found.map_change[fooled].min()
    assert found.map_norm[row] == pytest.approx(np.linalg.norm(maps[1] - maps[0]), rel=1e-3)


@pytest.mark.parametrize("method", ["map", "multihead"])
def test_no_voxel_changes_by_more_than_its_steps(method):
    network = random_network(method)
    found = attack(network, noisy_scans(network), settings=SETTINGS, weight=0.5)
    assert (found.input_change <= SETTINGS.rate * (found.steps + 2) + 6 * SETTINGS.noise).all()
    assert (found.steps <= SETTINGS.max_steps).all()
    withstood = (found.after == found.labels) & ~found.blind
    assert (found.steps[withstood] == SETTINGS.max_steps).all()


@pytest.mark.parametrize("method", ["map", "bottleneck"])
def test_the_voxel_of_an_example_lies_in_its_map(method):
    network = random_network(method)
    found = attack(network, noisy_scans(network), settings=SETTINGS, weight=0.1)
    voxel = found.example["voxel"]
    assert voxel.shape == (2,)
    assert (voxel >= 0).all()
    assert (voxel < SIDE).all()


def test_an_attack_on_a_map_without_candidates_is_blind():
    found = attack(by_hand(), [scan([], 0, "empty"), scan([0.2], 1, "other")], settings=SETTINGS, weight=0.1)
    assert found.before.tolist() == [0, 1]
    assert found.blind.tolist() == [True, False]
    assert found.steps[0] == 0
    assert found.after[0] == 0
    assert found.input_change[0] <= 6 * SETTINGS.noise
    assert found.after[1] == 0  # the other is attacked as ever


def test_an_adaptive_attack_sees_what_the_other_is_blind_to():
    hard = AttackSettings(n_scans=8, max_steps=40, rate=0.2)
    found = attack(by_hand(), [scan([], 0)], settings=hard, weight=0.0, gradient_threshold=ADAPTIVE)
    assert not found.blind.any()
    assert found.steps[0] > 0
    assert (found.before[0], found.after[0]) == (0, 1)
    assert count_of(by_hand(), found.example["image"] + found.example["noise"]) == 1
    # The highest voxel rises from -4 to above 0, where one lesion is more probable than none.
    assert found.input_change[0] > 4
    assert tuple(found.example["voxel"]) == np.unravel_index(np.abs(found.example["noise"][0]).argmax(), (SIDE, SIDE))


def test_a_count_that_the_wider_view_holds_impossible_leaves_all_numbers_finite():
    """Above 0.001 two lesions are one candidate: there is nothing to be gained, and the other scan is attacked."""
    two = scan([2.0, 2.0], 2, "two")
    found = attack(by_hand(), [two, scan([], 0, "none")], settings=SETTINGS, weight=0.1, gradient_threshold=ADAPTIVE)
    assert found.before.tolist() == [2, 0]
    assert found.blind.tolist() == [True, False]
    assert np.isfinite(found.input_change).all()
    assert found.input_change[1] > 0.5


def test_a_weight_that_is_undone_moves_existence_and_leaves_candidates():
    network, logits = by_hand(), torch.tensor([2.0, -1.0])
    network.head = UndoneHead(network.head, 3.0)
    found = network(torch.from_numpy(scan(logits.tolist(), 2).images)[None]).log_probs[0].exp()
    first, second = torch.sigmoid(logits - np.log(3)).tolist()
    assert found[0].item() == pytest.approx((1 - first) * (1 - second), rel=1e-5)
    assert found[2].item() == pytest.approx(first * second, rel=1e-5)
    # At -2.1, above 0.1 as it is and far below with the weight undone, it is a candidate all the same.
    faint = network(torch.from_numpy(scan([-2.1], 1).images)[None]).log_probs[0].exp()
    assert faint[1].item() == pytest.approx(torch.sigmoid(torch.tensor(-2.1 - np.log(3))).item(), rel=1e-4)


def test_an_attack_on_an_undone_count_goes_on_until_that_count_changes():
    as_it_is, undone = by_hand(), by_hand()
    undone.head = UndoneHead(undone.head, 3.0)
    found = [attack(one, [scan([1.5], 1)], settings=SETTINGS, weight=0.0) for one in (as_it_is, undone)]
    assert [one.after[0] for one in found] == [0, 0]
    assert found[0].input_change[0] == pytest.approx(1.5, abs=0.1)  # until its logit is below 0
    assert found[1].input_change[0] == pytest.approx(1.5 - np.log(3), abs=0.1)
    seen = attack(undone, [scan([], 0)], settings=SETTINGS, weight=0.0, gradient_threshold=ADAPTIVE)
    assert not seen.blind.any()


@pytest.mark.parametrize(
    ("method", "gradient_threshold"), [("map", None), ("map", ADAPTIVE), ("bottleneck", None), ("multihead", None)]
)
def test_a_batch_gives_what_each_scan_gives_alone(method, gradient_threshold):
    """In double precision: Adam makes steps of one size of the smallest gradients, and of their rounding."""
    network = random_network(method).double()
    scans = noisy_scans(network, dtype=np.float64)  # more than go through the network together
    still = AttackSettings(n_scans=10, max_steps=12, rate=0.05, noise=0.0)
    options = {"settings": still, "weight": 0.1, "gradient_threshold": gradient_threshold}
    together = attack(network, scans, **options)
    alone = [attack(network, [one], **options) for one in scans]
    for name in ("labels", "before", "after", "steps", "blind"):
        assert getattr(together, name).tolist() == [getattr(one, name)[0] for one in alone], name
    for name in ("input_change", "map_change", "map_norm"):
        expected = [getattr(one, name)[0] for one in alone]
        np.testing.assert_allclose(getattr(together, name), expected, rtol=1e-4, atol=1e-7, err_msg=name)


def test_the_same_seed_begins_with_the_same_noise():
    network = random_network("bottleneck")
    scans = noisy_scans(network, n=3)
    loud = AttackSettings(n_scans=3, max_steps=1, rate=0.0, noise=0.01)
    first, again, other = (attack(network, scans, settings=loud, weight=0.1, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.input_change, again.input_change)
    assert (first.input_change != other.input_change).all()


def test_outcomes_survive_a_file(tmp_path):
    network = random_network("bottleneck")
    found = attack(network, noisy_scans(network), settings=SETTINGS, weight=0.1)
    save_arrays(tmp_path / "outcome.npz", found.arrays())
    again = AttackOutcome.load(tmp_path / "outcome.npz")
    for one in fields(AttackOutcome):
        np.testing.assert_equal(getattr(again, one.name), getattr(found, one.name))
    assert set(again.example) == {"row", "image", "noise", "map_before", "map_after", "voxel"}


def test_an_outcome_without_success_has_no_example(tmp_path):
    found = attack(by_hand(), [scan([], 0)], settings=SETTINGS, weight=0.1)
    save_arrays(tmp_path / "outcome.npz", found.arrays())
    assert AttackOutcome.load(tmp_path / "outcome.npz").example == {}


def test_attacked_are_scans_of_different_patients_with_few_lesions():
    scans = [
        LearningScan(f"s{i}", f"p{i // 3}", np.zeros((1, 2, 2), np.float32), None, count, count)
        for i, count in enumerate([0, 1, 9, 4, 5, 6, 7, 8, 9, 2, 2, 2])
    ]
    chosen = attackable(scans, 10, seed=1)
    assert {one.patient for one in chosen} == {"p0", "p1", "p3"}
    assert len(chosen) == 3
    assert max(one.at_least for one in chosen) <= 4
    assert [one.name for one in attackable(scans, 10, seed=1)] == [one.name for one in chosen]
    assert len(attackable(scans, 2, seed=1)) == 2
