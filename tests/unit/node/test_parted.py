"""Files in mig-parted's form: what they ask, what is wrong with them, and what is written."""

from __future__ import annotations

import json

import pytest

from va100.errors import SetupError
from va100.node.parted import as_json, as_yaml, chosen_layout, layout_of, read_layouts, rule_for


def written(folder, told):
    path = folder / "layouts.json"
    path.write_text(json.dumps(told))
    return path


def rule(**fields):
    return {"devices": "all", "mig-enabled": True, **fields}


def test_a_later_rule_goes_before_an_earlier_one_and_filters_are_minded(tmp_path):
    rules = [
        rule(**{"mig-devices": {"1g.5gb": 7}}),
        rule(devices=[1, 3], **{"mig-enabled": False}),
        rule(**{"device-filter": ["0x20B210DE", "0x20B510DE"], "mig-devices": {"7g.80gb": 1}}),
    ]
    found = read_layouts(written(tmp_path, {"version": "v1", "mig-configs": {"a": rules}}))["a"]
    assert rule_for(found, 0, 0x20B010DE) is found[0]
    assert rule_for(found, 1, 0x20B010DE) is found[1]
    assert rule_for(found, 1, 0x20B510DE) is found[2]
    assert rule_for(found[1:2], 2, 0x20B010DE) is None
    assert found[2].counts == (("7g.80gb", 1),)


def test_the_only_layout_needs_no_label(tmp_path):
    path = written(tmp_path, {"version": "v1", "mig-configs": {"a": [rule()], "b": [rule()]}})
    layouts = read_layouts(path)
    assert chosen_layout({"a": layouts["a"]}, "", path) is layouts["a"]
    for label, said in (("", "2 layouts"), ("c", "holds no layout c")):
        with pytest.raises(SetupError, match=said):
            chosen_layout(layouts, label, path)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([], "holds no mapping"),
        ({"version": "v1", "mig-configs": {}, "more": 1}, "more is unknown"),
        ({"mig-configs": {"a": [rule()]}}, "`version` is None"),
        ({"version": "v1", "mig-configs": []}, "`mig-configs` is to be a mapping"),
        ({"version": "v1", "mig-configs": {"a": {}}}, "mig-configs.a is to be a list"),
        ({"version": "v1", "mig-configs": {"a": ["x"]}}, r"mig-configs.a\[0\] is to be a mapping"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, told, said):
    with pytest.raises(SetupError, match=said):
        read_layouts(written(tmp_path, told))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"speed": 1}, "speed is unknown"),
        ({"mig-enabled": "yes"}, "true or false"),
        ({"devices": "some"}, "`all` or a list of indices"),
        ({"devices": [True]}, "`all` or a list of indices"),
        ({"device-filter": "A100"}, "no PCI number"),
        ({"mig-devices": ["1g.5gb"]}, "mapping from profiles"),
        ({"mig-devices": {"big": 1}}, "big is no profile"),
        ({"mig-devices": {"1g.5gb": 9}}, "number from 0 to 7"),
        ({"mig-enabled": False, "mig-devices": {"1g.5gb": 1}}, "its mig-enabled is false"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_its_place(tmp_path, fields, said):
    path = written(tmp_path, {"version": "v1", "mig-configs": {"a": [rule(**fields)]}})
    with pytest.raises(SetupError, match=said) as caught:
        read_layouts(path)
    assert "mig-configs.a[0]" in str(caught.value)


def test_what_is_written_is_read_again(tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    cards = [(True, {"1g.5gb+me": 1, "1c.3g.20gb": 2}), (False, {}), (True, {})]
    rules = layout_of(cards)
    assert yaml.safe_load(as_yaml("no: label", rules)) == json.loads(as_json("no: label", rules))
    path = tmp_path / "layouts.yaml"
    path.write_text(as_yaml("now", rules))
    found = read_layouts(path)["now"]
    for index, (enabled, devices) in enumerate(cards):
        one = rule_for(found, index, 0)
        assert (one.enabled, dict(one.counts)) == (enabled, devices)


def test_gpus_that_are_alike_are_written_together():
    assert layout_of([(False, {})] * 4)[0]["devices"] == "all"
    assert [r["devices"] for r in layout_of([(True, {}), (False, {}), (True, {})])] == [[0, 2], [1]]
