"""The newcomer's path in a real Chromium: register, launch in four steps, a terminal, a bill."""

from __future__ import annotations

import shutil
import warnings

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("uvicorn", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from tests.helpers.cloud_sites import Served, account, end_instances  # noqa: E402

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome")
     if (path := shutil.which(name))), None,
)  # fmt: skip
SLICE = "A100-SXM4-80GB:1g.10gb"
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (apt install chromium)")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("browser") / "site").begin()
    yield served
    served.end()
    served.end_programs()


@pytest.fixture(scope="module")
def operator(site):
    return account(site, "operator")


@pytest.fixture
def page(browser, site, operator):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(30_000)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    yield page
    context.close()
    assert problems == []


def register(page, site, operator, name):
    page.goto(site.url)
    page.click("header >> text=Register")
    page.fill("#email", f"{name}@example.com")
    page.fill("#name", name.title())
    page.fill("#password", "correct horse battery")
    page.click("main button")
    page.wait_for_url("**/launch")
    tenants = operator.call("GET", "/operator/tenants")
    tenant = next(t["id"] for t in tenants if t["name"] == name)
    operator.call("PATCH", f"/operator/tenants/{tenant}", {"trusted": True})


def launch(page, name):
    page.check(f"input[value='{SLICE}']")
    page.click("text=Next: template")
    page.check("input[value=cuda]")
    page.click("text=Next: customise")
    page.fill("#name", name)
    page.click("text=Next: review")
    assert page.inner_text("dd strong") == "$0.5728"
    page.click("button:has-text('Launch')")
    page.wait_for_selector(".state.running")


def test_a_newcomer_runs_a_program_on_a_rented_slice(page, site, operator):
    register(page, site, operator, "ann")
    launch(page, "demo")
    assert "1/8 of a card" in page.inner_text("main")
    page.click("text=Terminal")
    page.wait_for_selector(".xterm-screen")
    screen = page.locator(".xterm-rows")
    sync_api.expect(screen).to_contain_text("$", timeout=30_000)
    page.keyboard.type("echo $((6*7)) end; nvidia-smi -L\n")
    sync_api.expect(screen).to_contain_text("42 end", timeout=30_000)
    sync_api.expect(screen).to_contain_text("MIG 1g.10gb", timeout=60_000)
    page.goto(f"{site.url}/billing")
    assert "demo" in page.inner_text("main")
    assert page.locator("svg.chart").count() == 1
    page.goto(f"{site.url}/instances")
    page.click("text=demo")
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("button:has-text('Delete')")
    sync_api.expect(page.locator("main")).to_contain_text("Nothing runs yet", timeout=30_000)


def test_it_works_on_a_phone_and_by_keyboard(page, site, operator):
    register(page, site, operator, "bob")
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/instances", "/launch", "/billing", "/keys", "/members", "/account"):
        page.goto(site.url + path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{path} is wider than a phone"
    page.goto(f"{site.url}/launch")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("input[name=gpu]:checked").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("text=What it starts with")


def test_no_page_has_an_accessibility_fault(page, site, operator):
    register(page, site, operator, "cyd")
    launch(page, "box")
    shown = page.url
    found = {}
    for address in (
        shown, *(site.url + path for path in (
            "/instances", "/launch", "/launch?gpu=sxm80", "/launch?gpu=sxm80&template=cuda",
            "/launch?gpu=sxm80&template=cuda&step=4", "/billing", "/keys", "/members", "/account",
        )),
    ):  # fmt: skip
        page.goto(address)
        found[address] = faults(page)
    for path in ("/", "/sign-in", "/register"):
        page.context.clear_cookies()
        page.goto(site.url + path)
        found[path] = faults(page)
    assert not any(found.values()), found


def test_the_operators_map_shows_who_is_where(page, site, operator):
    made = operator.launch(SLICE, name="mapped")
    operator.wait(made["id"], "running")
    page.goto(f"{site.url}/sign-in?next=/operator")
    page.fill("#email", "operator@example.com")
    page.fill("#password", "correct horse battery")
    page.click("main button")
    page.wait_for_url("**/operator")
    assert page.locator("rect.part.standard").count() >= 1
    labels = [one.get_attribute("aria-label") for one in page.locator("svg[role=img]").all()]
    assert any("mapped of operator, 1g.10gb, standard" in label for label in labels)
    page.fill("#room-gpu", "sxm80:8")
    page.click("button:has-text('Plan')")
    page.wait_for_url("**/operator?room=*")
    assert "No moves" in page.inner_text("main")
    assert faults(page) == []
    page.goto(f"{site.url}/operator/audit")
    assert faults(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/operator", "/operator/audit"):
        page.goto(site.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    end_instances(operator)


def faults(page):
    """What axe finds on a page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")
    found = axe.Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found]
