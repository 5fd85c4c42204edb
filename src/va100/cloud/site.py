"""A site put together: database, services, drivers, and the loop that runs the dispatcher.

The edge gets a :class:`Site` and nothing else; what a machine is comes from outside, through the
driver that is handed in.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from va100.cloud.drivers.base import Driver
from va100.cloud.prices import default_prices
from va100.cloud.records import NodeRecord, PriceRecord
from va100.cloud.service.accounts import Accounts, Hasher
from va100.cloud.service.billing import Billing
from va100.cloud.service.context import Context
from va100.cloud.service.dispatcher import Dispatcher
from va100.cloud.service.instances import Instances
from va100.cloud.service.operators import Operators
from va100.cloud.service.options import SiteOptions
from va100.cloud.store.database import Database
from va100.cloud.templates import SHIPPED, Template, read_templates

LOG: Final = logging.getLogger("va100.cloud")
_PAUSE_S: Final = 0.5


@dataclass(slots=True)
class Site:
    """All services of one worker."""

    context: Context
    accounts: Accounts
    instances: Instances
    billing: Billing
    operators: Operators
    dispatcher: Dispatcher
    drivers: Mapping[str, Driver]
    templates: Mapping[str, Template]
    wake: threading.Event = field(default_factory=threading.Event)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        """Run the dispatcher beside whatever else this worker does."""
        self._end.clear()
        self._thread = threading.Thread(target=self._loop, name="dispatcher", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Finish the tick, let another worker lead, close the database; instances run on."""
        self._end.set()
        self.wake.set()
        if self._thread is not None:
            self._thread.join(timeout=30)
            self._thread = None
            try:
                self.dispatcher.resign()
            except Exception:
                LOG.exception("could not let another worker lead")
        self.context.database.close()

    def _loop(self) -> None:
        while not self._end.is_set():
            try:
                leads = self.dispatcher.tick()
            except Exception:  # a lost database comes back; nothing is kept in memory
                LOG.exception("a tick of the dispatcher failed")
                leads = False
            self.wake.wait(_PAUSE_S if leads else 2 * _PAUSE_S)
            self.wake.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a site is made with, besides its database and drivers."""

    clock: Callable[[], float]
    """Seconds since 1970."""
    token: Callable[[int], str]
    hasher: Hasher
    options: SiteOptions = field(default_factory=SiteOptions)
    nodes: Sequence[NodeRecord] = ()
    """Added when they are not there yet."""
    template_folders: Sequence[Path] = ()


def open_site(database: Database, drivers: Mapping[str, Driver], setting: Setting) -> Site:
    """Migrate a database, add what a new site begins with, and join the services."""
    database.migrate()
    context = Context(database, setting.clock, setting.token, setting.options)
    templates = read_templates([SHIPPED, *setting.template_folders])
    with database.work() as work:
        work.serialise("site")  # several workers may begin at once
        priced = {price.item for price in work.all(PriceRecord)}
        for price in default_prices():
            if price.item not in priced:
                work.add(PriceRecord(item=price.item, from_s=0, micro_per_h=price.micro_per_h))
        for node in setting.nodes:
            if not work.get(NodeRecord, name=node.name):
                work.add(node)
    wake = threading.Event()
    return Site(
        context=context,
        accounts=Accounts(context, setting.hasher),
        instances=Instances(context, templates, drivers, wake.set),
        billing=Billing(context),
        operators=Operators(context),
        dispatcher=Dispatcher(context, drivers, templates, owner=setting.token(8)),
        drivers=drivers,
        templates=templates,
        wake=wake,
    )
