"""Every fact says where it comes from, and the documents it names are listed."""

import re
from pathlib import Path

from tests.helpers.spec_walk import spec_instances
from va100.spec.model import Confidence, plain_fields
from va100.spec.sources import TITLES

PAGE = Path(__file__).parents[2] / "docs" / "sources.md"


def listed() -> dict[str, str]:
    """Key to title, as the page's table has them."""
    rows = re.findall(r"^\| `([A-Z0-9-]+)` \| ([^|]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return {key: title.strip() for key, title in rows}


def test_every_field_has_exactly_one_source():
    instances = list(spec_instances())
    assert len(instances) > 300
    for path, spec in instances:
        assert set(spec.sources) == set(plain_fields(spec)), path


def test_sources_name_known_documents_and_a_place_in_them():
    for path, spec in spec_instances():
        for field, source in spec.sources.items():
            assert source.key in TITLES, f"{path}.{field}"
            assert source.where.strip(), f"{path}.{field}"


def test_recollection_is_never_passed_off_as_more():
    for path, spec in spec_instances():
        for field, source in spec.sources.items():
            if source.key in {"RECALLED", "GPU-DB", "GPU-CATALOG", "AMPERE-MICRO"}:
                assert source.confidence is Confidence.ASSUMED, f"{path}.{field}"


def test_the_page_lists_the_same_documents():
    assert listed() == TITLES


def test_every_listed_document_is_used():
    used = {source.key for _, spec in spec_instances() for source in spec.sources.values()}
    assert used == set(TITLES)
