"""The whole OpenAPI document, with odd and broken requests: no fault of ours."""

from __future__ import annotations

import contextlib
import warnings

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("fastapi", reason="the extra `cloud` is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the packages that it brings
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
    )

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.unit.cloud.sites import Clock, join, make_site, settle
from va100.cloud.api.app import create_app
from va100.cloud.service.instances import Wish

pytestmark = pytest.mark.filterwarnings("ignore")  # those of schemathesis's own


def test_no_request_makes_a_server_error(tmp_path, full):
    site = make_site(url=f"sqlite:///{tmp_path}/cloud.db", clock=Clock(), welcome_micro=10**13)
    app = create_app(site, version="test", dispatch=False, per_s=1e9, burst=1e9)
    ann = join(site, "ann")
    site.instances.launch(ann, Wish(gpu="sxm80:1g.10gb", name="one"))
    settle(site)
    secret = site.accounts.make_key(ann, "all", sorted(ann.scopes))[1]
    headers = {"Authorization": f"Bearer {secret}"}
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", app)
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]
    tried = 0
    for found in schema.get_all_operations():
        thrown_at(found.ok(), headers, checks, examples=50 if full else 3)
        tried += 1
    assert tried > 45
    site.context.database.close()


def thrown_at(operation, headers, checks, *, examples):
    """Requests that fit one operation, and such as don't."""
    for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=examples, deadline=None, database=None, derandomize=True,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate],
        )  # fmt: skip
        def throw(case):
            case.validate_response(case.call(headers=headers), checks=checks)

        with contextlib.suppress(Unsatisfiable):  # whatever it takes, nothing would be wrong
            throw()
