"""The API: who may do what, on every route; problems, paging, repetition, limits, headers."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("fastapi", reason="the extra `cloud` is not installed")
pytest.importorskip("httpx", reason="the extra `cloud` is not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # which of two HTTP clients the test client prefers
    from fastapi.testclient import TestClient

from tests.unit.cloud.sites import PASSWORD, Clock, join, make_site, settle
from va100 import errors
from va100.cloud.api.app import create_app
from va100.cloud.api.problems import STATUSES
from va100.cloud.records import InstanceRecord
from va100.cloud.service.instances import Wish
from va100.cloud.web.console import add_console

SLICE = "sxm80:1g.10gb"
OPEN = {
    ("post", "/v1/register"),
    ("post", "/v1/sessions"),
    ("get", "/v1/offers"),
    ("get", "/v1/templates"),
    ("get", "/v1/prices"),
}
"""What anyone may ask."""


@pytest.fixture
def site(tmp_path):
    site = make_site(url=f"sqlite:///{tmp_path}/cloud.db", clock=Clock())
    yield site
    site.context.database.close()


_MADE = []


@pytest.fixture
def app(site):
    """One application for all tests, since it takes long to make; each has a site of its own."""
    if not _MADE:
        _MADE.append(create_app(site, version="test", dispatch=False, per_s=1e6, burst=1e6))
        add_console(_MADE[0])
    _MADE[0].state.site = site
    return _MADE[0]


@pytest.fixture
def ann(site):
    return join(site, "ann")


@pytest.fixture
def bob(site, ann):
    return join(site, "bob")


def client_of(app, site, actor, scopes=None):
    """A client with a key of someone's."""
    secret = site.accounts.make_key(actor, "test", scopes)[1]
    return TestClient(app, headers={"Authorization": f"Bearer {secret}"})


def routes(app):
    """Every method and path of the API, with what its path names."""
    for path, methods in app.openapi()["paths"].items():
        for method, facts in methods.items():
            names = [p["name"] for p in facts.get("parameters", []) if p["in"] == "path"]
            yield method, path, names, facts


def filled(path, values):
    """A path with what its braces name."""
    for name, value in values.items():
        path = path.replace("{" + name + "}", value)
    return path


BODIES = {
    "Renewal": {}, "Resize": {"gpu": SLICE}, "Command": {"command": ["id"]}, "TerminalWish": {},
    "Keys": {"data": ""}, "NodeWish": {"name": "n2", "model": "A100-SXM4-80GB", "gpu_count": 1},
    "NodeState": {"state": "down"}, "TenantChange": {"weight": 2},
    "Promise": {"tenant": "ann", "gpu": SLICE, "count": 1},
    "PriceWish": {"item": "disk", "micro_per_h": 1}, "Launch": {"gpu": SLICE},
    "Payment": {"tenant": "t", "amount_micro": 5}, "TopUp": {"amount_micro": 5},
    "Room": {"gpu": SLICE},
    "KeyWish": {"name": "k"}, "MemberWish": {"email": "ann@example.com", "role": "viewer"},
    "Code": {"code": "1"}, "Password": {"password": PASSWORD},
    "PasswordChange": {"old": PASSWORD, "new": PASSWORD + "!"},
    "SignIn": {"email": "x@y.z", "password": PASSWORD},
    "Registration": {"email": "new@example.com", "password": PASSWORD},
}  # fmt: skip


def body_of(facts):
    content = facts.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    return BODIES[content["schema"]["$ref"].rpartition("/")[2]]


def test_every_route_needs_someone_known(app, site, ann):
    stranger = TestClient(app)
    for method, path, names, facts in routes(app):
        if (method, path) in OPEN:
            continue
        target = filled(path, {name: "0" if name == "gpu" else "x" for name in names})
        answer = stranger.request(method, target, json=body_of(facts))
        assert answer.status_code == 401, (method, target, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"


def test_every_route_is_closed_to_a_key_without_scopes(app, site, ann):
    site.instances.launch(ann, Wish(gpu=SLICE, name="one"))
    settle(site)
    key = site.accounts.make_key(ann, "all")[0]
    seen = client_of(app, site, ann, ["members:read"])
    allowed = {"/v1/me", "/v1/keys", "/v1/members"}
    for method, path, _, facts in routes(app):
        if (method, path) in OPEN or (method == "get" and path in allowed):
            continue
        if path == "/v1/session":
            continue  # a key has no session to end
        values = {"name": "one", "key": key.id, "person": ann.person, "gpu": "0",
                  "node": "node-1", "terminal": "00" * 8}  # fmt: skip
        target = filled(path, values)
        answer = seen.request(method, target, json=body_of(facts), params={"gpu": SLICE})
        own = target == f"/v1/members/{ann.person}"  # everyone may leave, but the last owner
        assert answer.status_code == (409 if own else 403), (method, target, answer.text)


def test_no_route_shows_or_touches_another_tenants_things(app, site, ann, bob):
    """All of ann's identifiers, on every route that takes one, as bob and as bob's key."""
    one = site.instances.launch(ann, Wish(gpu=SLICE, name="anns"))[0]
    settle(site)
    key = site.accounts.make_key(ann, "anns")[0]
    before = everything(site)
    client = client_of(app, site, bob)
    values = {
        "name": [one.id, "anns", "node-1", ann.tenant], "key": [key.id], "person": [ann.person],
        "terminal": ["00" * 8], "node": ["node-1"], "gpu": ["0"],
    }  # fmt: skip
    tried = 0
    for method, path, names, facts in routes(app):
        if not names:
            continue
        for value in values[names[0]]:
            target = path.replace("{" + names[0] + "}", value)
            for name in names[1:]:
                target = target.replace("{" + name + "}", values[name][0])
            answer = client.request(method, target, json=body_of(facts))
            assert answer.status_code in (403, 404), (method, target, answer.text)
            assert one.id not in answer.text.replace(value, "")
            tried += 1
    assert tried > 60
    for path in ("/v1/instances", "/v1/instances?deleted=true", "/v1/keys", "/v1/members",
                 "/v1/usage", "/v1/entries", "/v1/invoice", "/v1/quota", "/v1/me"):  # fmt: skip
        text = client.get(path).text
        assert not any(word in text for word in (one.id, key.id, ann.tenant, ann.person)), path
    assert everything(site) == before


def everything(site):
    with site.context.database.work() as work:
        return work.all(InstanceRecord, order=("id",))


def test_another_tenant_cannot_be_chosen(app, site, ann, bob):
    browser = TestClient(app)
    body = {"email": "bob@example.com", "password": PASSWORD}
    browser.post("/v1/sessions", json=body)
    answer = browser.get("/v1/instances", headers={"X-Tenant": ann.tenant})
    assert answer.status_code == 404


def test_pages_of_another_tenant_are_not_there(app, site, ann, bob):
    one = site.instances.launch(ann, Wish(gpu=SLICE, name="anns"))[0]
    settle(site)
    browser = TestClient(app)
    browser.post("/sign-in", data={"email": "bob@example.com", "password": PASSWORD})
    for path in (f"/instances/{one.id}", f"/instances/{one.id}/live",
                 f"/instances/{one.id}/terminal", f"/instances/{one.id}/ports/8000/"):  # fmt: skip
        assert browser.get(path).status_code == 404, path
    for path in ("/operator", "/operator/audit"):
        assert browser.get(path).status_code == 403, path
    assert "anns" not in browser.get("/instances").text


class TestSession:
    def test_what_changes_needs_the_token(self, app, site, ann):
        browser = TestClient(app)
        body = {"email": "ann@example.com", "password": PASSWORD}
        token = browser.post("/v1/sessions", json=body).json()["csrf_token"]
        wish = {"gpu": SLICE}
        assert browser.post("/v1/instances", json=wish).status_code == 403
        headers = {"X-CSRF-Token": token}
        assert browser.post("/v1/instances", json=wish, headers=headers).status_code == 201
        assert browser.get("/v1/instances").status_code == 200

    def test_forms_need_the_token(self, app, site, ann):
        browser = TestClient(app)
        browser.post("/sign-in", data={"email": "ann@example.com", "password": PASSWORD})
        for path in ("/launch", "/keys", "/members", "/billing/top-up", "/sign-out",
                     "/account/password", "/operator/nodes/node-1"):  # fmt: skip
            data = {"csrf": "wrong", "name": "n", "email": "e", "role": "r", "amount": "1",
                    "old": "o", "new": "n", "state": "down"}  # fmt: skip
            assert browser.post(path, data=data).status_code == 403, path

    def test_another_sites_page_cannot_sign_in(self, app, site, ann):
        browser = TestClient(app)
        data = {"email": "ann@example.com", "password": PASSWORD}
        answer = browser.post("/sign-in", data=data, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403

    def test_sign_in_leads_to_this_site_alone(self, app, site, ann):
        browser = TestClient(app, follow_redirects=False)
        for target in ("//evil.example", "https://evil.example", "/\\evil.example", "x"):
            data = {"email": "ann@example.com", "password": PASSWORD, "next": target}
            assert browser.post("/sign-in", data=data).headers["location"] == "/instances"

    def test_the_cookie_is_kept_from_scripts(self, app, site, ann):
        answer = TestClient(app).post(
            "/v1/sessions", json={"email": "ann@example.com", "password": PASSWORD}
        )
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie


class TestInstances:
    def test_a_key_word_launches_once(self, app, site, ann):
        client = client_of(app, site, ann)
        headers = {"Idempotency-Key": "k"}
        first = client.post("/v1/instances", json={"gpu": SLICE}, headers=headers)
        again = client.post("/v1/instances", json={"gpu": SLICE}, headers=headers)
        assert [i["id"] for i in first.json()] == [i["id"] for i in again.json()]
        other = client.post("/v1/instances", json={"gpu": "sxm80"}, headers=headers)
        assert other.status_code == 409
        assert len(client.get("/v1/instances").json()["items"]) == 1

    def test_pages_go_on_where_they_ended(self, app, site, ann):
        client = client_of(app, site, ann)
        for number in range(5):
            client.post("/v1/instances", json={"gpu": SLICE, "name": f"i{number}"})
        seen, after = [], ""
        while after is not None:
            page = client.get("/v1/instances", params={"limit": 2, "after": after}).json()
            assert len(page["items"]) <= 2
            seen += [one["name"] for one in page["items"]]
            after = page["next"]
        assert sorted(seen) == [f"i{number}" for number in range(5)]

    def test_inside(self, app, site, ann):
        client = client_of(app, site, ann)
        client.post("/v1/instances", json={"gpu": SLICE, "name": "one"})
        body = {"command": ["echo", "hi"]}
        assert client.post("/v1/instances/one/exec", json=body).status_code == 409
        settle(site)
        assert client.post("/v1/instances/one/exec", json=body).json()["output"] == "echo hi"
        assert client.get("/v1/instances/one/logs").json() == {"text": "hello\n", "next": 6}
        terminal = client.post("/v1/instances/one/terminals", json={}).json()["terminal"]
        piece = client.get(f"/v1/instances/one/terminals/{terminal}").json()
        assert piece == {"data": "JCA=", "next": 2, "ended": False}
        bad = client.post(f"/v1/instances/one/terminals/{terminal}", json={"data": "?"})
        assert bad.status_code == 422

    @pytest.mark.parametrize("name", ["../x", "..%2fx", "a b", "$(id)", "'; drop table x"])
    def test_odd_names_are_nobodys(self, app, site, ann, name):
        assert client_of(app, site, ann).get(f"/v1/instances/{name}").status_code == 404


class TestLending:
    def test_asked_for_it_is_returned_and_says_when_to_ask_again(self, app, site, ann):
        client = client_of(app, site, ann)
        client.post("/v1/instances", json={"gpu": SLICE, "name": "one"})
        settle(site, 2)
        client.post("/v1/instances/one/lend")
        settle(site, 1)
        answer = client.post("/v1/instances/one/exec", json={"command": ["true"]})
        assert (answer.status_code, answer.headers["Retry-After"]) == (409, "2")
        settle(site, 2)
        answer = client.post("/v1/instances/one/exec", json={"command": ["echo", "x"]})
        assert answer.json()["output"] == "echo x"


def test_room_is_made_by_operators(app, site, ann, bob):
    client = client_of(app, site, ann, sorted(ann.scopes))
    answer = client.post("/v1/operator/defragmentation", json={"gpu": SLICE})
    assert (answer.status_code, answer.json()["moves"]) == (202, [])
    assert client.get("/v1/operator/defragmentation?gpu=h100").status_code == 422
    answer = client_of(app, site, bob).post("/v1/operator/defragmentation", json={"gpu": SLICE})
    assert answer.status_code == 403


class TestProblems:
    def test_every_error_of_tenants_has_a_status(self):
        found = [errors.TenantError]
        for cls in found:
            found.extend(cls.__subclasses__())
        assert set(found[1:]) <= set(STATUSES)

    def test_a_problem_names_the_field(self, app, site, ann):
        client = client_of(app, site, ann)
        answer = client.post("/v1/instances", json={"gpu": "a100-80g:0.5"})
        assert answer.status_code == 422
        assert answer.json()["field"] == "gpu"
        assert "take the slice" in answer.json()["detail"]

    def test_unknown_words_are_refused(self, app, site, ann):
        client = client_of(app, site, ann)
        answer = client.post("/v1/instances", json={"gpu": SLICE, "gpus": 2})
        assert answer.status_code == 422
        assert "gpus" in answer.json()["detail"]

    def test_retry_after(self, app, site, ann):
        client = TestClient(app)
        body = {"email": "ann@example.com", "password": "wrong password"}
        for _ in range(5):
            assert client.post("/v1/sessions", json=body).status_code == 401
        answer = client.post("/v1/sessions", json=body)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0

    def test_too_many_requests_of_a_key(self, site, ann):
        app = create_app(site, version="test", dispatch=False, per_s=0.001, burst=3)
        client = client_of(app, site, ann)
        statuses = [client.get("/v1/me").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]

    def test_a_large_body_is_refused(self, app, site, ann):
        answer = TestClient(app).post("/v1/register", content=b"x" * (2 << 20))
        assert answer.status_code == 413

    def test_no_such_path_and_method(self, app):
        client = TestClient(app)
        for method, path, status in (("get", "/v1/none", 404), ("delete", "/v1/offers", 405)):
            answer = client.request(method, path)
            assert (answer.status_code, answer.json()["status"]) == (status, status)


def test_answers_carry_strict_headers(app, site, ann):
    for path in ("/", "/v1/offers", "/healthz", "/static/console.css", "/none"):
        headers = TestClient(app).get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_health_and_figures(app, site, ann):
    client = TestClient(app)
    site.instances.launch(ann, Wish(gpu="sxm80"))
    settle(site)
    assert client.get("/healthz").text == "ok\n"
    assert client.get("/readyz").text == "ok\n"
    lines = client.get("/metrics").text.splitlines()
    assert "va100_cloud_eighths_used 8" in lines
    assert 'va100_cloud_instances{state="running"} 1' in lines


def test_the_document_is_openapi_3_1(app):
    document = app.openapi()
    assert document["openapi"].startswith("3.1")
    assert all(path.startswith("/v1/") for path in document["paths"])
    for _, path, _, facts in routes(app):
        assert facts["summary"], path
        assert "401" in facts["responses"], path


def test_texts_of_tenants_are_shown_as_texts(app, site, ann):
    site.accounts.register("eve@example.com", PASSWORD, "<script>alert(1)</script>")
    site.accounts.set_member(ann, "eve@example.com", "viewer")
    browser = TestClient(app)
    browser.post("/sign-in", data={"email": "ann@example.com", "password": PASSWORD})
    text = browser.get("/members").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_the_console_from_registration_to_bill(app, site):
    browser = TestClient(app)
    assert "Virtual A100s" in browser.get("/").text
    data = {"email": "new@example.com", "name": "New", "password": PASSWORD}
    assert "Next: template" in browser.post("/register", data=data).text
    assert "Next: customise" in browser.get("/launch?gpu=sxm80").text
    assert "Next: review" in browser.get("/launch?gpu=sxm80&template=cuda").text
    review = browser.get("/launch?gpu=sxm80&template=cuda&step=4&name=one").text
    token = review.partition('name="csrf" value="')[2].partition('"')[0]
    form = {"csrf": token, "gpu": "sxm80", "template": "cuda", "name": "one", "once": "1",
            "environment": "A=1\nB=2", "command": "sleep 5", "lease_h": "2"}  # fmt: skip
    browser.post("/launch", data=form)
    browser.post("/launch", data=form)
    settle(site)
    page = browser.get("/instances").text
    assert page.count(">one</a>") == 1
    shown = browser.get("/instances/one").text
    assert "running" in shown
    assert "hello" in shown
    browser.post("/billing/top-up", data={"csrf": token, "amount": "5", "once": "2"})
    assert "$29.99" in browser.get("/billing").text or "$30.00" in browser.get("/billing").text
    browser.post("/instances/one/stop", data={"csrf": token})
    settle(site)
    assert "stopped" in browser.get("/instances/one").text
    wrong = browser.get("/launch?gpu=sxm80&template=cuda&step=4&environment=x")
    assert wrong.status_code == 422
    assert "is no NAME=VALUE" in wrong.text
