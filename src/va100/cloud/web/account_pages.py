"""Pages of people: the first one, registration, sign-in, keys, members, the account."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from va100.cloud.api.access import COOKIE, anyone, site_of
from va100.cloud.api.account_routes import set_session_cookie
from va100.cloud.service.context import ROLES, SCOPES
from va100.cloud.web.render import (
    TENANT_COOKIE,
    PageRoute,
    Visitor,
    go,
    local_path,
    page,
    require_same_origin,
)
from va100.errors import BadRequest, Conflict, NotFound, NotSignedIn, TooManyRequests, Va100Error

ROUTER = APIRouter(route_class=PageRoute)
Field = Annotated[str, Form(max_length=300)]
Token = Annotated[str, Form(max_length=128)]


@ROUTER.get("/")
def first(request: Request) -> Response:
    """The instances of whoever is signed in; what there is for everyone else."""
    if request.cookies.get(COOKIE):
        return go("/instances")
    anyone(request)
    site = site_of(request)
    return page(request, "first.html", offers=site.instances.offers(),
                isolation=[driver.isolation() for driver in site.drivers.values()])  # fmt: skip


@ROUTER.get("/register")
def registration(request: Request) -> Response:
    """The form to register."""
    anyone(request)
    return page(request, "register.html", problem="", email="", name="",
                open=site_of(request).context.options.open_registration)  # fmt: skip


@ROUTER.post("/register")
def register(request: Request, email: Field, password: Field, name: Field = "") -> Response:
    """Register, and sign in."""
    require_same_origin(request)
    site = site_of(request)
    address = anyone(request)
    try:
        site.accounts.register(email, password, name, address=address)
        signed = site.accounts.sign_in(email, password, address=address)
    except (BadRequest, Conflict) as error:
        return page(request, "register.html", status=422, problem=str(error), email=email,
                    name=name, open=True)  # fmt: skip
    response = go("/launch")
    set_session_cookie(request, response, signed.cookie)
    return response


@ROUTER.get("/sign-in")
def sign_in_form(request: Request, next: str = "/instances") -> Response:
    """The form to sign in."""
    anyone(request)
    return page(request, "sign_in.html", problem="", email="", next=local_path(next))


@ROUTER.post("/sign-in")
def sign_in(
    request: Request, email: Field, password: Field, code: Field = "", next: Field = "/instances"
) -> Response:  # fmt: skip
    """Begin a session."""
    require_same_origin(request)
    try:
        signed = site_of(request).accounts.sign_in(email, password, code, address=anyone(request))
    except (NotSignedIn, TooManyRequests) as error:
        status = 429 if isinstance(error, TooManyRequests) else 401
        return page(request, "sign_in.html", status=status, problem=str(error), email=email,
                    next=local_path(next))  # fmt: skip
    response = go(local_path(next))
    set_session_cookie(request, response, signed.cookie)
    return response


@ROUTER.post("/sign-out")
def sign_out(request: Request, csrf: Token) -> Response:
    """End the session."""
    Visitor(request).require_token(csrf)
    site_of(request).accounts.sign_out(request.cookies.get(COOKIE, ""))
    response = go("/")
    response.delete_cookie(COOKIE)
    response.delete_cookie(TENANT_COOKIE)
    return response


@ROUTER.post("/tenant")
def choose_tenant(request: Request, csrf: Token, tenant: Field) -> Response:
    """Look at another of one's tenants."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    if tenant not in {one.id for one, _ in visitor.tenants}:
        raise NotFound("tenant", tenant)
    response: RedirectResponse = go("/instances")
    response.set_cookie(TENANT_COOKIE, tenant, httponly=True, samesite="lax",
                        secure=request.url.scheme == "https")  # fmt: skip
    return response


# ---------------------------------------------------------------- keys and members


@ROUTER.get("/keys")
def keys(request: Request) -> Response:
    """Keys of the tenant."""
    return _keys(request, Visitor(request))


def _keys(request: Request, visitor: Visitor, *, secret: str = "", problem: str = "") -> Response:
    found = site_of(request).accounts.keys(visitor.actor)
    own = [scope for scope in SCOPES if scope in visitor.actor.scopes]
    return page(request, "keys.html", visitor=visitor, keys=found, scopes=own, words=SCOPES,
                secret=secret, problem=problem)  # fmt: skip


@ROUTER.post("/keys")
def make_key(
    request: Request,
    csrf: Token,
    name: Field,
    scopes: Annotated[list[str], Form()] = [],  # noqa: B006 -- never changed
    days: Annotated[int, Form(ge=1, le=3650)] = 90,
) -> Response:
    """Make a key, and show its secret once."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        _, secret = site_of(request).accounts.make_key(
            visitor.actor, name, scopes or None, days * 86_400
        )
    except BadRequest as error:
        return _keys(request, visitor, problem=str(error))
    return _keys(request, visitor, secret=secret)


@ROUTER.post("/keys/revoke")
def revoke_key(request: Request, csrf: Token, key: Field) -> Response:
    """Make a key worthless."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    site_of(request).accounts.revoke_key(visitor.actor, key)
    return go("/keys")


@ROUTER.get("/members")
def members(request: Request) -> Response:
    """Who belongs to the tenant."""
    return _members(request, Visitor(request))


def _members(request: Request, visitor: Visitor, *, problem: str = "") -> Response:
    found = site_of(request).accounts.members(visitor.actor)
    return page(request, "members.html", visitor=visitor, members=found, roles=list(ROLES),
                problem=problem)  # fmt: skip


@ROUTER.post("/members")
def set_member(request: Request, csrf: Token, email: Field, role: Field) -> Response:
    """Add a person, or change its role."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).accounts.set_member(visitor.actor, email, role)
    except Va100Error as error:
        return _members(request, visitor, problem=str(error))
    return go("/members")


@ROUTER.post("/members/remove")
def remove_member(request: Request, csrf: Token, person: Field) -> Response:
    """Take a person out of the tenant."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).accounts.remove_member(visitor.actor, person)
    except Va100Error as error:
        return _members(request, visitor, problem=str(error))
    return go("/members")


# ---------------------------------------------------------------- the account


@ROUTER.get("/account")
def account(request: Request) -> Response:
    """The person's own page."""
    return _account(request, Visitor(request))


def _account(
    request: Request, visitor: Visitor, *, problem: str = "", secret: str = "", address: str = ""
) -> Response:
    return page(request, "account.html", visitor=visitor, problem=problem, secret=secret,
                address=address)  # fmt: skip


@ROUTER.post("/account/second-factor")
def begin_second_factor(request: Request, csrf: Token) -> Response:
    """A new secret for an authenticator program."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    secret, address = site_of(request).accounts.begin_totp(visitor.actor)
    return _account(request, visitor, secret=secret, address=address)


@ROUTER.post("/account/second-factor/confirm")
def confirm_second_factor(request: Request, csrf: Token, code: Field) -> Response:
    """Turn the second factor on."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).accounts.confirm_totp(visitor.actor, code.strip())
    except Va100Error as error:
        return _account(request, visitor, problem=str(error))
    return go("/account")


@ROUTER.post("/account/second-factor/remove")
def end_second_factor(request: Request, csrf: Token, password: Field) -> Response:
    """Turn the second factor off."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).accounts.end_totp(visitor.actor, password)
    except Va100Error as error:
        return _account(request, visitor, problem=str(error))
    return go("/account")


@ROUTER.post("/account/password")
def change_password(request: Request, csrf: Token, old: Field, new: Field) -> Response:
    """Change the password; all sessions end."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).accounts.change_password(visitor.actor, old, new)
    except Va100Error as error:
        return _account(request, visitor, problem=str(error))
    return go("/sign-in")
