"""The console's place in an application: its pages, its files."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from va100.cloud.web import account_pages, billing_pages, instance_pages, operator_pages, ports
from va100.cloud.web.render import STATIC


def add_console(app: FastAPI) -> None:
    """Add all pages."""
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    for module in (account_pages, instance_pages, billing_pages, operator_pages, ports):
        app.include_router(module.ROUTER, include_in_schema=False)
