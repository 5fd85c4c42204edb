"""Routes of people, sessions, keys and members."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from va100.cloud.api.access import COOKIE, ActorOf, Anyone, SiteOf
from va100.cloud.api.schemas import (
    Code,
    KeyView,
    KeyWish,
    MemberView,
    MemberWish,
    Password,
    PasswordChange,
    PersonView,
    Registration,
    SecretView,
    SessionView,
    SignIn,
)
from va100.cloud.records import KeyRecord, PersonRecord
from va100.cloud.service.context import Actor

ROUTER = APIRouter(tags=["accounts"])
Name = Annotated[str, Path(max_length=64)]


@ROUTER.post("/register", status_code=201)
def register(body: Registration, site: SiteOf, address: Anyone) -> PersonView:
    """Make a person and a tenant of its own."""
    person = site.accounts.register(
        body.email, body.password, body.name, tenant=body.tenant, address=address
    )
    return _person(person, Actor(person=person.id, tenant="", scopes=frozenset()))


@ROUTER.post("/sessions", status_code=201)
def sign_in(
    body: SignIn, site: SiteOf, address: Anyone, request: Request, response: Response
) -> SessionView:
    """Begin a session; its cookie comes in the header."""
    signed = site.accounts.sign_in(body.email, body.password, body.code, address=address)
    set_session_cookie(request, response, signed.cookie)
    return SessionView(csrf_token=signed.session.csrf, expires_s=signed.session.expires_s)


@ROUTER.delete("/session", status_code=204)
def sign_out(actor: ActorOf, site: SiteOf, request: Request, response: Response) -> None:
    """End the session that asks."""
    del actor
    site.accounts.sign_out(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE)


def set_session_cookie(request: Request, response: Response, cookie: str) -> None:
    """Give a browser its session; over TLS it never leaves by any other way."""
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, cookie, max_age=14 * 86_400, httponly=True, samesite="lax",
                        secure=secure)  # fmt: skip


@ROUTER.get("/me")
def me(actor: ActorOf, site: SiteOf) -> PersonView:
    """Whoever asks."""
    return _person(site.accounts.person(actor), actor)


def _person(person: PersonRecord, actor: Actor) -> PersonView:
    return PersonView(
        id=person.id,
        email=person.email,
        name=person.name,
        operator=person.operator,
        second_factor=bool(person.totp),
        tenant=actor.tenant,
        scopes=sorted(actor.scopes),
    )


@ROUTER.post("/me/password", status_code=204)
def change_password(body: PasswordChange, actor: ActorOf, site: SiteOf) -> None:
    """Change one's password; all sessions end."""
    site.accounts.change_password(actor, body.old, body.new)


@ROUTER.post("/me/second-factor", status_code=201)
def begin_second_factor(actor: ActorOf, site: SiteOf) -> SecretView:
    """A new secret for an authenticator program; a code of it turns it on."""
    secret, address = site.accounts.begin_totp(actor)
    return SecretView(secret=secret, address=address)


@ROUTER.post("/me/second-factor/confirmation", status_code=204)
def confirm_second_factor(body: Code, actor: ActorOf, site: SiteOf) -> None:
    """Turn the second factor on."""
    site.accounts.confirm_totp(actor, body.code)


@ROUTER.post("/me/second-factor/removal", status_code=204)
def end_second_factor(body: Password, actor: ActorOf, site: SiteOf) -> None:
    """Turn the second factor off."""
    site.accounts.end_totp(actor, body.password)


@ROUTER.get("/keys")
def keys(actor: ActorOf, site: SiteOf) -> list[KeyView]:
    """Keys of the tenant."""
    return [_key(key) for key in site.accounts.keys(actor)]


@ROUTER.post("/keys", status_code=201)
def make_key(body: KeyWish, actor: ActorOf, site: SiteOf) -> KeyView:
    """Make a key; the answer alone holds its secret."""
    key, secret = site.accounts.make_key(actor, body.name, body.scopes, body.lasts_s)
    return _key(key, secret)


@ROUTER.delete("/keys/{key}", status_code=204)
def revoke_key(key: Name, actor: ActorOf, site: SiteOf) -> None:
    """Make a key worthless."""
    site.accounts.revoke_key(actor, key)


def _key(key: KeyRecord, secret: str | None = None) -> KeyView:
    return KeyView(
        id=key.id,
        name=key.name,
        scopes=key.scopes.split(),
        created_s=key.created_s,
        expires_s=key.expires_s,
        used_s=key.used_s,
        secret=secret,
    )


@ROUTER.get("/members")
def members(actor: ActorOf, site: SiteOf) -> list[MemberView]:
    """Who belongs to the tenant."""
    return [
        MemberView(
            person=person.id,
            email=person.email,
            name=person.name,
            role=member.role,
            since_s=member.since_s,
        )
        for member, person in site.accounts.members(actor)
    ]


@ROUTER.put("/members", status_code=204)
def set_member(body: MemberWish, actor: ActorOf, site: SiteOf) -> None:
    """Add a registered person, or change its role."""
    site.accounts.set_member(actor, body.email, body.role)


@ROUTER.delete("/members/{person}", status_code=204)
def remove_member(person: Name, actor: ActorOf, site: SiteOf) -> None:
    """Take a person out of the tenant."""
    site.accounts.remove_member(actor, person)
