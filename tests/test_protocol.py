import json

import numpy as np
import pytest

from lesioncount import PROTOCOLS, CountingProtocol
from lesioncount.errors import LesionCountError, ProtocolError


def test_default_is_the_protocol_of_the_paper():
    assert CountingProtocol() == CountingProtocol.named("paper")
    assert CountingProtocol().threshold == 0.1
    assert CountingProtocol().connectivity == "edges"


def test_protocols_cannot_be_changed():
    with pytest.raises(AttributeError):
        CountingProtocol().threshold = 0.2


@pytest.mark.parametrize(
    ("connectivity", "in_2d", "in_3d"),
    [
        ("faces", 1, 1),
        ("edges", 2, 2),
        ("corners", 2, 3),
        (4, 1, None),
        (8, 2, None),
        (6, None, 1),
        (18, None, 2),
        (26, None, 3),
    ],
)
def test_connectivity_in_two_and_three_dimensions(connectivity, in_2d, in_3d):
    for ndim, expected in ((2, in_2d), (3, in_3d)):
        if expected is None:
            with pytest.raises(ProtocolError, match=f"does not fit a {ndim}-D map"):
                CountingProtocol(connectivity=connectivity).neighbours(ndim)
        else:
            assert CountingProtocol(connectivity=connectivity).neighbours(ndim) == expected


@pytest.mark.parametrize("name", PROTOCOLS)
def test_presets_survive_json(name):
    protocol = CountingProtocol.named(name)
    assert CountingProtocol.from_json(protocol.to_json()) == protocol
    assert PROTOCOLS[name].description


def test_json_holds_every_field_as_a_plain_value():
    sizes = np.int32(3), np.float64(4), 5, np.float16(6)
    protocol = CountingProtocol(np.float32(0.25), np.int64(26), *sizes, np.str_("peaks"), np.float32(0.125))
    assert json.loads(protocol.to_json()) == {
        "threshold": 0.25, "connectivity": 26, "min_voxels": 3, "min_volume_mm3": 4.0, "min_diameter_mm": 5.0,
        "min_length_mm": 6.0, "candidates": "peaks", "min_persistence": 0.125,
    }  # fmt: skip


def test_json_may_leave_fields_out():
    assert CountingProtocol.from_json('{"threshold": 0.3}') == CountingProtocol(threshold=0.3)
    assert CountingProtocol.from_json('{"threshold": 0.3}').candidates == "regions"


def test_components_have_no_peaks_but_the_same_size_and_connectivity():
    protocol = CountingProtocol(connectivity=26, min_voxels=3, candidates="peaks", min_persistence=0.1)
    assert protocol.components_above(0.5) == CountingProtocol(threshold=0.5, connectivity=26, min_voxels=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"treshold": 0.3}', "no field 'treshold'"),
        ("[1, 2]", "as a JSON object"),
        ("{", "does not parse"),
        ('{"threshold": "low"}', "threshold to be a number"),
    ],
)
def test_wrong_json_is_explained(text, message):
    with pytest.raises(ProtocolError, match=message):
        CountingProtocol.from_json(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threshold": 1}, r"threshold in \[0, 1\), but got 1"),
        ({"threshold": -0.1}, r"threshold in \[0, 1\)"),
        ({"threshold": 50}, "Percent"),
        ({"threshold": float("nan")}, "threshold to be a number"),
        ({"threshold": None}, "threshold to be a number"),
        ({"threshold": True}, "threshold to be a number"),
        ({"connectivity": 7}, "Connectivity 7 is unknown"),
        ({"connectivity": "diagonal"}, "'diagonal' is unknown"),
        ({"connectivity": None}, "None is unknown"),
        ({"min_voxels": 2.5}, "whole number"),
        ({"min_voxels": -1}, "whole number"),
        ({"min_volume_mm3": -3}, "at least 0"),
        ({"min_diameter_mm": float("inf")}, "at least 0"),
        ({"min_length_mm": -0.1}, "min_length_mm to be a size of at least 0"),
        ({"candidates": "hills"}, "'hills'"),
        ({"candidates": None}, 'to be "regions", "peaks" or "detections"'),
        ({"candidates": "peaks", "min_persistence": 1}, r"min_persistence in \[0, 1\)"),
        ({"candidates": "peaks", "min_persistence": "much"}, "min_persistence to be a number"),
        ({"min_persistence": 0.1}, "Only peaks have a persistence"),
    ],
)
def test_nonsense_is_refused(fields, message):
    with pytest.raises(ProtocolError, match=message) as caught:
        CountingProtocol(**fields)
    assert isinstance(caught.value, LesionCountError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["nobody", None, []])
def test_unknown_preset_names_the_known_ones(name):
    with pytest.raises(ProtocolError, match="Known are paper, faces, corners, ms, peaks"):
        CountingProtocol.named(name)


def test_a_protocol_reads_as_a_sentence():
    sizes = {"min_voxels": 2, "min_volume_mm3": 3, "min_diameter_mm": 1.5, "min_length_mm": 4}
    assert str(CountingProtocol(threshold=0.3, connectivity=26, **sizes)) == (
        "voxels above 0.3, connected through 26 neighbours, at least 2 voxels, at least 3 mm³, at least 1.5 mm across, "
        "at least 4 mm long"
    )
    assert str(CountingProtocol(candidates="peaks", min_persistence=0.05)) == (
        "voxels above 0.1, connected through edges, split into peaks that stand out by at least 0.05"
    )
