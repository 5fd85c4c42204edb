"""Pages of instances: the list, the launch in four steps, one instance, its terminal."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from va100.cloud.api.access import site_of
from va100.cloud.api.instance_routes import instance_views
from va100.cloud.charts import line_chart
from va100.cloud.geometry import CHIPS
from va100.cloud.products import parse_shape
from va100.cloud.service.instances import Wish
from va100.cloud.web.render import PageRoute, Visitor, go, page
from va100.errors import BadRequest, Conflict, Va100Error

ROUTER = APIRouter(route_class=PageRoute)
Field = Annotated[str, Form(max_length=8192)]
Token = Annotated[str, Form(max_length=128)]
Said = Annotated[str, Query(max_length=8192)]
_LOG_BYTES = 65_536
STEPS = ("GPU", "Template", "Customise", "Review")


@ROUTER.get("/instances")
def instances(request: Request) -> Response:
    """The tenant's instances."""
    visitor = Visitor(request)
    return page(request, "instances.html", visitor=visitor, **_list_facts(request, visitor))


@ROUTER.get("/instances/rows")
def instance_rows(request: Request) -> Response:
    """The rows of the list alone, to be drawn anew."""
    visitor = Visitor(request)
    return page(request, "instance_rows.html", visitor=visitor, **_list_facts(request, visitor))


def _list_facts(request: Request, visitor: Visitor) -> dict[str, Any]:
    site = site_of(request)
    found = site.instances.of_tenant(visitor.actor, limit=500)
    return {"instances": instance_views(site, list(reversed(found)))}


# ---------------------------------------------------------------- launch


@ROUTER.get("/launch")
def launch_form(request: Request, gpu: Said = "", template: Said = "", step: Said = "") -> Response:
    """The step of the launch that what is known so far leads to."""
    visitor = Visitor(request)
    visitor.actor.require("instances:write")
    answers = dict(request.query_params)
    if not gpu or step == "1":
        return _step(request, visitor, 1, answers)
    if not template or step == "2":
        return _step(request, visitor, 2, answers)
    if step != "4":
        return _step(request, visitor, 3, answers)
    try:
        _wish(answers)
    except BadRequest as error:
        return _step(request, visitor, 3, answers, problem=str(error))
    return _step(request, visitor, 4, answers)


def _step(
    request: Request, visitor: Visitor, number: int, answers: Mapping[str, str], *,
    problem: str = "",
) -> HTMLResponse:  # fmt: skip
    site = site_of(request)
    offers = site.instances.offers()
    chosen = None
    if answers.get("gpu"):
        try:
            shape = parse_shape(answers["gpu"], {one.shape.model for one in offers})
            chosen = next((one for one in offers if one.shape == shape), None)
        except BadRequest as error:
            number, problem = 1, str(error)
    template = site.templates.get(answers.get("template", ""))
    if number > 2 and template is None:
        number, problem = 2, "choose a template"
    models = sorted({one.shape.model for one in offers})
    return page(
        request, f"launch_{number}.html", visitor=visitor, step=number, steps=STEPS,
        problem=problem, status=422 if problem else 200,
        answers={name: answers.get(name, "") for name in _ANSWERS}, offers=offers, models=models,
        chips=CHIPS, templates=list(site.templates.values()), template=template, chosen=chosen,
        options=site.context.options,
    )  # fmt: skip


_ANSWERS = ("gpu", "template", "market", "name", "count", "disk_gib", "environment", "ports",
            "ssh_key", "command", "lease_h", "idle_min", "lendable", "nvlink")  # fmt: skip


@ROUTER.post("/launch")
async def launch(request: Request) -> Response:
    """Launch what the four steps came to."""
    form = await request.form(max_fields=40, max_part_size=16_384)
    answers = {name: str(form.get(name, "")) for name in (*_ANSWERS, "csrf", "once")}
    return _launch(request, answers)


def _launch(request: Request, answers: dict[str, str]) -> Response:
    visitor = Visitor(request)
    visitor.require_token(answers["csrf"])
    try:
        made = site_of(request).instances.launch(
            visitor.actor, _wish(answers), once=answers["once"][:100]
        )
    except Va100Error as error:
        return _step(request, visitor, 4, answers, problem=str(error))
    return go(f"/instances/{made[0].id}" if len(made) == 1 else "/instances")


def _wish(answers: Mapping[str, str]) -> Wish:
    """What the answers ask for.

    Raises
    ------
    BadRequest
        One of them means nothing; the message names it.
    """
    variables = {}
    for line in answers.get("environment", "").splitlines():
        if line.strip():
            name, equals, value = line.partition("=")
            if not equals:
                raise BadRequest(f"{line[:40]!r} is no NAME=VALUE", field="environment")
            variables[name.strip()] = value
    try:
        command = shlex.split(answers.get("command", ""))
    except ValueError as error:
        raise BadRequest(str(error), field="command") from error
    hours, minutes = _number(answers, "lease_h"), _number(answers, "idle_min")
    return Wish(
        gpu=answers.get("gpu", ""),
        template=answers.get("template", ""),
        name=answers.get("name", "").strip(),
        market=answers.get("market") or "on-demand",
        count=_number(answers, "count") or 1,
        nvlink=bool(answers.get("nvlink")),
        disk_gib=_number(answers, "disk_gib"),
        environment=variables,
        ports=[_port(word) for word in answers.get("ports", "").replace(",", " ").split()],
        ssh_key=answers.get("ssh_key", "").strip(),
        command=command,
        lease_s=None if hours is None else hours * 3600,
        idle_stop_s=None if minutes is None else minutes * 60,
        lendable=bool(answers.get("lendable")),
    )


def _number(answers: Mapping[str, str], name: str) -> int | None:
    text = answers.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadRequest(f"{text[:20]!r} is no number", field=name)
    return int(text)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        raise BadRequest(f"{text[:20]!r} is no port", field="ports")
    return int(text)


# ---------------------------------------------------------------- one instance


@ROUTER.get("/instances/{name}")
def instance(request: Request, name: str) -> Response:
    """One instance."""
    visitor = Visitor(request)
    return page(request, "instance.html", visitor=visitor, **_facts(request, visitor, name))


@ROUTER.get("/instances/{name}/live")
def instance_live(request: Request, name: str) -> Response:
    """What changes on an instance's page, to be drawn anew."""
    visitor = Visitor(request)
    return page(request, "instance_live.html", visitor=visitor, **_facts(request, visitor, name))


def _facts(request: Request, visitor: Visitor, name: str) -> dict[str, Any]:
    site = site_of(request)
    record = site.instances.show(visitor.actor, name)
    now_s = site.context.now_s()
    samples = site.instances.samples(visitor.actor, record.id, since_s=now_s - 3600)
    try:
        text, after = site.instances.logs(visitor.actor, record.id, offset=0, limit=1 << 26)
        log = text[-_LOG_BYTES:].decode(errors="replace")
    except Conflict:
        log, after = "", 0
    busy = [((one.at_s - now_s) / 60, 100 * one.busy_ratio) for one in samples]
    memory = [((one.at_s - now_s) / 60, one.memory_bytes / 2**30) for one in samples]
    return {
        "instance": instance_views(site, [record])[0],
        "record": record,
        "events": site.instances.events(visitor.actor, record.id, limit=30),
        "log": log,
        "log_bytes": after,
        "busy_chart": line_chart("GPU at work, percent, over the last hour", {"GPU": busy},
                                 unit=" %", x_unit=" min", top=100),
        "memory_chart": line_chart("Memory, GiB, over the last hour", {"memory": memory},
                                   unit=" GiB", x_unit=" min", top=1),
        "now_s": now_s,
    }  # fmt: skip


@ROUTER.post("/instances/{name}/{verb}")
def change(request: Request, name: str, verb: str, csrf: Token, gpu: Field = "") -> Response:
    """Stop, start, restart, renew, lend, recall, resize or delete an instance."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    instances = site_of(request).instances
    if verb == "resize":
        instances.resize(visitor.actor, name, gpu)
        return go(f"/instances/{name}")
    verbs = {
        "stop": instances.stop, "start": instances.start, "restart": instances.restart,
        "delete": instances.delete, "renew": instances.renew, "lend": instances.lend,
        "recall": instances.recall,
    }  # fmt: skip
    if verb not in verbs:
        raise BadRequest(f"there is no {verb}")
    found = verbs[verb](visitor.actor, name)
    return go("/instances" if verb == "delete" else f"/instances/{found.id}")


@ROUTER.get("/instances/{name}/terminal")
def terminal(request: Request, name: str) -> Response:
    """A terminal inside an instance."""
    visitor = Visitor(request)
    visitor.actor.require("instances:write")
    record = site_of(request).instances.show(visitor.actor, name)
    response = page(request, "terminal.html", visitor=visitor, instance=record)
    # The terminal's widget makes its own style sheets; scripts stay as strict as elsewhere.
    response.headers["Content-Security-Policy"] = (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self'; "
        "img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    return response
