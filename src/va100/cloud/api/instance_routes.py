"""Routes of instances: what there is to rent, launch, life, and what goes on inside."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query

from va100.cloud.api.access import ActorOf, Anyone, SiteOf
from va100.cloud.api.schemas import (
    Command,
    EventView,
    FinishedView,
    InstancePage,
    InstanceView,
    Keys,
    Launch,
    LogView,
    ProductView,
    QuotaView,
    Renewal,
    Resize,
    SampleView,
    Seconds,
    TemplateView,
    TerminalPiece,
    TerminalView,
    TerminalWish,
)
from va100.cloud.models import Tier
from va100.cloud.products import per_h_micro
from va100.cloud.records import PLACED, InstanceRecord
from va100.cloud.service.billing import price_book
from va100.cloud.service.instances import Wish, shape_of
from va100.cloud.site import Site
from va100.errors import BadRequest, Conflict

ROUTER = APIRouter(tags=["instances"])
Name = Annotated[str, Path(max_length=64)]
Offset = Annotated[int, Query(ge=0, le=2**40)]
_PIECE_BYTES = 262_144


def instance_views(site: Site, records: list[InstanceRecord]) -> list[InstanceView]:
    """Instances as they are shown, with the prices of now."""
    with site.context.database.work() as work:
        book = price_book(work)
    now_s = site.context.now_s()
    off = site.context.options.spot_discount_per_mille
    views = []
    for one in records:
        shape = shape_of(one)
        hourly = per_h_micro(shape, book, now_s)
        if one.market == "spot":
            hourly -= hourly * off // 1000
        views.append(
            InstanceView(
                gpu=str(shape),
                eighths=shape.eighths,
                tier=Tier(one.tier).name.lower() if one.state in PLACED else "",
                per_h_micro=hourly,
                **{
                    name: getattr(one, name)
                    for name in InstanceView.model_fields
                    if name not in ("gpu", "eighths", "tier", "per_h_micro")
                },
            )
        )
    return views


def _view(site: Site, record: InstanceRecord) -> InstanceView:
    return instance_views(site, [record])[0]


@ROUTER.get("/offers")
def offers(site: SiteOf, address: Anyone) -> list[ProductView]:
    """Everything that can be rented here, with the prices of now."""
    del address
    return [
        ProductView(
            gpu=str(one.shape),
            title=one.title,
            model=one.shape.model,
            profile=one.shape.profile,
            cards=one.shape.cards,
            eighths=one.shape.eighths,
            memory_bytes=one.memory_bytes,
            sm_count=one.sm_count,
            per_h_micro=one.per_h_micro,
            spot_per_h_micro=one.spot_per_h_micro,
        )
        for one in site.instances.offers()
    ]


@ROUTER.get("/templates")
def templates(site: SiteOf, address: Anyone) -> list[TemplateView]:
    """What an instance can start with."""
    del address
    return [
        TemplateView(
            name=one.name,
            title=one.title,
            summary=one.summary,
            image=one.image,
            disk_gib=one.disk_gib,
            ports=list(one.ports),
        )
        for one in site.templates.values()
    ]


@ROUTER.get("/quota")
def quota(actor: ActorOf, site: SiteOf) -> QuotaView:
    """What the tenant has of what it may have."""
    return QuotaView(**site.instances.quota(actor))


@ROUTER.get("/instances")
def instances(
    actor: ActorOf,
    site: SiteOf,
    after: Annotated[str, Query(max_length=64, description="the last page's `next`")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    deleted: Annotated[bool, Query(description="deleted ones, too")] = False,  # noqa: FBT002
) -> InstancePage:
    """The tenant's instances, oldest first."""
    found = site.instances.of_tenant(actor, after=after, limit=limit + 1, deleted=deleted)
    more = found[limit - 1].id if len(found) > limit else None
    return InstancePage(items=instance_views(site, found[:limit]), next=more)


@ROUTER.post("/instances", status_code=201)
def launch(
    body: Launch,
    actor: ActorOf,
    site: SiteOf,
    idempotency_key: Annotated[
        str, Header(max_length=100, description="sent again, it launches nothing new")
    ] = "",
) -> list[InstanceView]:
    """Launch an instance, or a gang that starts together."""
    wish = Wish(**body.model_dump())
    return instance_views(site, site.instances.launch(actor, wish, once=idempotency_key))


@ROUTER.get("/instances/{name}")
def show(name: Name, actor: ActorOf, site: SiteOf) -> InstanceView:
    """One instance, by identifier or name."""
    return _view(site, site.instances.show(actor, name))


@ROUTER.delete("/instances/{name}")
def delete(name: Name, actor: ActorOf, site: SiteOf) -> InstanceView:
    """End an instance for good, its disk with it."""
    return _view(site, site.instances.delete(actor, name))


@ROUTER.post("/instances/{name}/stop")
def stop(name: Name, actor: ActorOf, site: SiteOf) -> InstanceView:
    """Free an instance's GPU; its disk stays."""
    return _view(site, site.instances.stop(actor, name))


@ROUTER.post("/instances/{name}/start")
def start(name: Name, actor: ActorOf, site: SiteOf) -> InstanceView:
    """Let a resting instance wait for a GPU again."""
    return _view(site, site.instances.start(actor, name))


@ROUTER.post("/instances/{name}/restart")
def restart(name: Name, actor: ActorOf, site: SiteOf) -> InstanceView:
    """Stop an instance and start it again."""
    return _view(site, site.instances.restart(actor, name))


@ROUTER.post("/instances/{name}/renew")
def renew(name: Name, body: Renewal, actor: ActorOf, site: SiteOf) -> InstanceView:
    """Let a lease last from now on for its time again."""
    return _view(site, site.instances.renew(actor, name, body.lease_s))


@ROUTER.post("/instances/{name}/resize")
def resize(name: Name, body: Resize, actor: ActorOf, site: SiteOf) -> InstanceView:
    """Give a resting instance another shape."""
    return _view(site, site.instances.resize(actor, name, body.gpu))


@ROUTER.post("/instances/{name}/lend")
def lend(name: Name, actor: ActorOf, site: SiteOf) -> InstanceView:
    """Pause an instance and let spot instances have its GPU until it is recalled."""
    return _view(site, site.instances.lend(actor, name))


@ROUTER.post("/instances/{name}/recall")
def recall(name: Name, actor: ActorOf, site: SiteOf) -> InstanceView:
    """Ask for a lent GPU back; it is there within the site's notice."""
    return _view(site, site.instances.recall(actor, name))


@ROUTER.post("/instances/{name}/exec")
def execute(name: Name, body: Command, actor: ActorOf, site: SiteOf) -> FinishedView:
    """Run a command inside a running instance."""
    done = site.instances.execute(actor, name, body.command, timeout_s=body.timeout_s)
    return FinishedView(
        exit_code=done.exit_code,
        output=done.output.decode(errors="replace"),
        errors=done.errors.decode(errors="replace"),
    )


@ROUTER.get("/instances/{name}/logs")
def logs(name: Name, actor: ActorOf, site: SiteOf, offset: Offset = 0) -> LogView:
    """What an instance printed, from an offset on."""
    text, after = site.instances.logs(actor, name, offset=offset, limit=_PIECE_BYTES)
    return LogView(text=text.decode(errors="replace"), next=after)


@ROUTER.get("/instances/{name}/events")
def events(name: Name, actor: ActorOf, site: SiteOf) -> list[EventView]:
    """What happened to an instance, latest first."""
    found = site.instances.events(actor, name)
    return [EventView(at_s=one.at_s, kind=one.kind, text=one.text) for one in found]


@ROUTER.get("/instances/{name}/samples")
def samples(
    name: Name, actor: ActorOf, site: SiteOf, since_s: Annotated[Seconds, Query()] = 0
) -> list[SampleView]:
    """An instance's figures since a moment."""
    return [
        SampleView(
            at_s=one.at_s,
            busy_ratio=one.busy_ratio,
            memory_bytes=one.memory_bytes,
            cpu_s=one.cpu_s,
        )
        for one in site.instances.samples(actor, name, since_s=since_s)
    ]


@ROUTER.post("/instances/{name}/terminals", status_code=201)
def open_terminal(name: Name, body: TerminalWish, actor: ActorOf, site: SiteOf) -> TerminalView:
    """Start a shell on a terminal inside a running instance."""
    found, driver = site.instances.running(actor, name, "instances:write")
    if found.state != "running" or found.lent:
        raise Conflict(f"{found.name} is {'lent' if found.lent else found.state}")
    terminal = driver.open_terminal(found.id, columns=body.columns, rows=body.rows)
    return TerminalView(terminal=terminal)


@ROUTER.get("/instances/{name}/terminals/{terminal}")
def terminal_output(
    name: Name, terminal: Name, actor: ActorOf, site: SiteOf, offset: Offset = 0
) -> TerminalPiece:
    """What a terminal showed, from an offset on."""
    found, driver = site.instances.running(actor, name, "instances:write")
    data, after, ended = driver.terminal_output(
        found.id, terminal, offset=offset, limit=_PIECE_BYTES
    )
    return TerminalPiece(data=base64.b64encode(data).decode(), next=after, ended=ended)


@ROUTER.post("/instances/{name}/terminals/{terminal}", status_code=204)
def terminal_input(name: Name, terminal: Name, body: Keys, actor: ActorOf, site: SiteOf) -> None:
    """Type into a terminal."""
    found, driver = site.instances.running(actor, name, "instances:write")
    try:
        keys = base64.b64decode(body.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest("base 64", field="data") from error
    driver.terminal_input(found.id, terminal, keys)
