"""People and tenants: registration, sign-in, sessions, keys, members, second factors."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Protocol

from va100.cloud.ledger import Entry, Kind
from va100.cloud.records import (
    AttemptRecord,
    KeyRecord,
    MemberRecord,
    PersonRecord,
    SessionRecord,
    TenantRecord,
)
from va100.cloud.service import totp
from va100.cloud.service.billing import post
from va100.cloud.service.context import ROLES, SCOPES, Actor, Context, record_audit
from va100.cloud.store.database import Work
from va100.errors import (
    BadRequest,
    Conflict,
    NotFound,
    NotPermitted,
    NotSignedIn,
    TooManyRequests,
)

KEY_PREFIX: Final = "va100-"
LEAST_PASSWORD: Final = 10
MOST_PASSWORD: Final = 256
_EMAIL: Final = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,190}")
_TENANT: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_MOST_FAILURES: Final = 5
_FAILURES_S: Final = 900
_MOST_KEYS: Final = 50


class Hasher(Protocol):
    """How passwords are kept."""

    def hash(self, password: str) -> str:
        """An encoded hash with its salt."""
        ...

    def verify(self, encoded: str, password: str) -> bool:
        """Whether a password is the hashed one."""
        ...


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new session: the cookie's value is told once."""

    cookie: str
    session: SessionRecord


def digest(secret: str) -> str:
    """What is kept of a random secret: it is long, so one round is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Accounts:
    """Operations on people, tenants, sessions and keys."""

    def __init__(self, context: Context, hasher: Hasher) -> None:
        self.context = context
        self.hasher = hasher

    # ------------------------------------------------------------ registration and sign-in

    def register(
        self, email: str, password: str, name: str = "", *, tenant: str = "", address: str = ""
    ) -> PersonRecord:
        """Make a person and a tenant of its own; the first one ever runs the site."""
        if not self.context.options.open_registration:
            raise NotPermitted("registration is closed: ask an operator of this site")
        return self.make_person(email, password, name, tenant=tenant, address=address)

    def make_person(
        self,
        email: str,
        password: str,
        name: str = "",
        *,
        tenant: str = "",
        address: str = "",
    ) -> PersonRecord:
        """Make a person and its tenant whether or not registration is open."""
        email = _email(email)
        _require_password(password)
        hashed = self.hasher.hash(password)
        now_s = self.context.now_s()
        with self.context.database.work() as work:
            if work.get(PersonRecord, email=email):
                raise Conflict("someone with this e-mail address is registered: sign in instead")
            person = PersonRecord(
                id=f"p-{self.context.token(8)}",
                email=email,
                name=name.strip()[:100] or email.partition("@")[0],
                password=hashed,
                created_s=now_s,
                operator=work.count(PersonRecord) == 0,
            )
            work.add(person)
            actor = Actor(person=person.id, tenant="", scopes=frozenset(), address=address)
            self._make_tenant(work, actor, tenant or _suggested(email), taken=not tenant)
            record_audit(self.context, work, actor, "register", person.id, email)
        return person

    def _make_tenant(self, work: Work, actor: Actor, name: str, *, taken: bool) -> TenantRecord:
        """Make a tenant; if ``taken``, its name may be changed when another has it."""
        if not _TENANT.fullmatch(name):
            raise BadRequest("1 to 40 small letters, digits and dashes", field="tenant")
        if work.get(TenantRecord, name=name):
            if not taken:
                raise Conflict(f"a tenant named {name} is there already")
            name = f"{name[:32]}-{self.context.token(3)}"
        now_s = self.context.now_s()
        tenant = TenantRecord(id=f"t-{self.context.token(6)}", name=name, created_s=now_s)
        work.add(tenant)
        work.add(MemberRecord(tenant=tenant.id, person=actor.person, role="owner", since_s=now_s))
        welcome = self.context.options.welcome_micro
        if welcome:
            entry = Entry(
                tenant=tenant.id,
                kind=Kind.CREDIT,
                amount_micro=welcome,
                at_s=now_s,
                meter=f"welcome:{tenant.id}",
                text="welcome",
            )
            post(work, [entry])
        return tenant

    def sign_in(self, email: str, password: str, code: str = "", *, address: str = "") -> SignedIn:
        """Begin a session.

        Raises
        ------
        NotSignedIn
            Wrong address or password, told apart by nothing; or a missing or wrong code.
        TooManyRequests
            Too many failures for this account or from this address.
        """
        email = email.strip().lower()
        names = [f"sign-in:{email}", *([f"from:{address}"] if address else [])]
        with self.context.database.work() as work:
            for name in names:
                self._refuse_throttled(work, name)
            person = work.get(PersonRecord, email=email)
        known = self.hasher.verify(person.password if person else _NOBODY, password[:MOST_PASSWORD])
        if person is None or not known:
            self._failed(names)
            raise NotSignedIn("wrong e-mail address or password")
        if person.totp:
            self._use_code(person, code, names)
        with self.context.database.work() as work:
            work.remove(AttemptRecord, id=names[0])
            return self._begin_session(work, person, address)

    def _use_code(self, person: PersonRecord, code: str, names: list[str]) -> None:
        step = totp.matching_step(person.totp, code, self.context.clock(), after=person.totp_step)
        if step is not None:
            with self.context.database.work() as work:
                values = {"totp_step": step}
                if work.change(PersonRecord, values, id=person.id, totp_step=person.totp_step):
                    return
        if code:
            self._failed(names)
        raise NotSignedIn("code: the six digits of your authenticator are needed")

    def _begin_session(self, work: Work, person: PersonRecord, address: str) -> SignedIn:
        now_s = self.context.now_s()
        cookie = self.context.token(32)
        session = SessionRecord(
            digest=digest(cookie),
            person=person.id,
            csrf=self.context.token(16),
            created_s=now_s,
            expires_s=now_s + self.context.options.session_s,
        )
        work.add(session)
        work.remove(SessionRecord, expires_s__lt=now_s)
        actor = Actor(person=person.id, tenant="", scopes=frozenset(), address=address)
        record_audit(self.context, work, actor, "sign-in", person.id)
        return SignedIn(cookie, session)

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        with self.context.database.work() as work:
            work.remove(SessionRecord, digest=digest(cookie))

    def _refuse_throttled(self, work: Work, name: str) -> None:
        attempt = work.get(AttemptRecord, id=name)
        if attempt is None or attempt.count < _MOST_FAILURES:
            return
        # Each failure past the limit doubles the wait, up to the time that all are forgotten in.
        wait_s = min(_FAILURES_S, 2 ** int(attempt.count - _MOST_FAILURES + 3))
        left_s = attempt.since_s + wait_s - self.context.clock()
        if left_s > 0:
            raise TooManyRequests(retry_after_s=int(left_s) + 1)

    def _failed(self, names: list[str]) -> None:
        with self.context.database.work() as work:
            self._count_failure(work, names)

    def _count_failure(self, work: Work, names: list[str]) -> None:
        now_s = self.context.clock()
        for name in names:
            attempt = work.get(AttemptRecord, id=name)
            if attempt is None:
                work.add(AttemptRecord(id=name, count=1, since_s=now_s))
                continue
            recent = now_s - attempt.since_s < _FAILURES_S
            weight = 1 if name.startswith("sign-in:") else 0.2  # an address may be an office's
            count = attempt.count + weight if recent else 1
            work.change(AttemptRecord, {"count": count, "since_s": now_s}, id=name)

    # ------------------------------------------------------------ who asks

    def of_session(self, cookie: str, tenant: str = "", *, address: str = "") -> tuple[Actor, str]:
        """Who a cookie stands for, in a tenant of its own or its first; and its CSRF token.

        Raises
        ------
        NotSignedIn
        NotFound
            It does not belong to that tenant.
        """
        with self.context.database.work() as work:
            session = work.get(SessionRecord, digest=digest(cookie))
            if session is None or session.expires_s <= self.context.now_s():
                raise NotSignedIn("sign in first")
            person = work.get(PersonRecord, id=session.person)
            assert person is not None
            return self._actor(work, person, tenant, address), session.csrf

    def _actor(self, work: Work, person: PersonRecord, tenant: str, address: str) -> Actor:
        memberships = work.all(MemberRecord, person=person.id, order=("since_s",))
        chosen = next((m for m in memberships if tenant in ("", m.tenant)), None)
        if chosen is None and tenant:
            named = work.get(TenantRecord, name=tenant)
            chosen = next((m for m in memberships if named and m.tenant == named.id), None)
        if chosen is None:
            raise NotFound("tenant", tenant or "of yours")
        scopes = ROLES[chosen.role] | ({"operator"} if person.operator else set())
        return Actor(
            person=person.id, tenant=chosen.tenant, scopes=frozenset(scopes), address=address
        )

    def of_key(self, secret: str, *, address: str = "") -> Actor:
        """Who a bearer key stands for.

        Raises
        ------
        NotSignedIn
        """
        now_s = self.context.now_s()
        with self.context.database.work() as work:
            key = work.get(KeyRecord, digest=digest(secret))
            over = key is not None and key.expires_s is not None and key.expires_s <= now_s
            if key is None or key.revoked_s is not None or over:
                raise NotSignedIn("this key is unknown, revoked or over")
            person = work.get(PersonRecord, id=key.person)
            member = work.get(MemberRecord, tenant=key.tenant, person=key.person)
            if person is None or member is None:
                raise NotSignedIn("whoever made this key does not belong to the tenant any more")
            if key.used_s is None or now_s - key.used_s >= 60:
                work.change(KeyRecord, {"used_s": now_s}, id=key.id)
        may = ROLES[member.role] | ({"operator"} if person.operator else set())
        return Actor(
            person=key.person,
            tenant=key.tenant,
            scopes=frozenset(key.scopes.split()) & may,
            key=key.id,
            address=address,
        )

    # ------------------------------------------------------------ keys

    def make_key(
        self, actor: Actor, name: str, scopes: list[str] | None = None, lasts_s: int | None = None
    ) -> tuple[KeyRecord, str]:
        """Make a key; its secret is told once."""
        actor.require("keys:write")
        wanted = set(scopes) if scopes else set(actor.scopes) - {"operator"}
        strange = sorted(wanted - set(SCOPES))
        if strange:
            raise BadRequest(
                f"{', '.join(strange)}: not one of {', '.join(SCOPES)}", field="scopes"
            )
        beyond = sorted(wanted - actor.scopes)
        if beyond:
            raise NotPermitted(f"a key cannot have scopes that you lack: {', '.join(beyond)}")
        if lasts_s is not None and lasts_s <= 0:
            raise BadRequest("a number of seconds above 0", field="lasts_s")
        now_s = self.context.now_s()
        secret = KEY_PREFIX + self.context.token(24)
        key = KeyRecord(
            id=f"k-{self.context.token(6)}",
            tenant=actor.tenant,
            person=actor.person,
            name=_label(name),
            digest=digest(secret),
            scopes=" ".join(sorted(wanted)),
            created_s=now_s,
            expires_s=None if lasts_s is None else now_s + lasts_s,
        )
        with self.context.database.work() as work:
            if work.count(KeyRecord, tenant=actor.tenant, revoked_s=None) >= _MOST_KEYS:
                raise Conflict(f"this tenant has {_MOST_KEYS} keys: revoke one first")
            work.add(key)
            record_audit(self.context, work, actor, "make-key", key.id, key.scopes)
        return key, secret

    def keys(self, actor: Actor) -> list[KeyRecord]:
        """Keys of the actor's tenant that have not been revoked."""
        actor.require("members:read")
        with self.context.database.work() as work:
            return work.all(KeyRecord, tenant=actor.tenant, revoked_s=None, order=("created_s",))

    def revoke_key(self, actor: Actor, key: str) -> None:
        """Make a key worthless."""
        actor.require("keys:write")
        with self.context.database.work() as work:
            changed = work.change(
                KeyRecord,
                {"revoked_s": self.context.now_s()},
                id=key,
                tenant=actor.tenant,
                revoked_s=None,
            )
            if not changed:
                raise NotFound("key", key)
            record_audit(self.context, work, actor, "revoke-key", key)

    # ------------------------------------------------------------ second factor

    def begin_totp(self, actor: Actor) -> tuple[str, str]:
        """A new secret and its address for a QR code; good once a code confirms it."""
        _require_session(actor)
        secret = totp.secret_of(self.context.token(20))
        with self.context.database.work() as work:
            person = work.get(PersonRecord, id=actor.person)
            assert person is not None
            work.change(PersonRecord, {"totp_pending": secret}, id=person.id)
        return secret, totp.address(secret, person.email)

    def confirm_totp(self, actor: Actor, code: str) -> None:
        """Turn the second factor on, with a first code."""
        _require_session(actor)
        with self.context.database.work() as work:
            person = work.get(PersonRecord, id=actor.person)
            assert person is not None
            if not person.totp_pending:
                raise Conflict("ask for a new secret first")
            step = totp.matching_step(person.totp_pending, code, self.context.clock(), after=0)
            if step is None:
                raise BadRequest("not the code of now", field="code")
            values = {"totp": person.totp_pending, "totp_pending": "", "totp_step": step}
            work.change(PersonRecord, values, id=person.id)
            record_audit(self.context, work, actor, "totp-on", person.id)

    def end_totp(self, actor: Actor, password: str) -> None:
        """Turn the second factor off; the password is asked again."""
        _require_session(actor)
        self._require_own_password(actor, password)
        with self.context.database.work() as work:
            work.change(PersonRecord, {"totp": "", "totp_pending": ""}, id=actor.person)
            record_audit(self.context, work, actor, "totp-off", actor.person)

    def change_password(self, actor: Actor, old: str, new: str) -> None:
        """Change one's password; all other sessions end."""
        _require_session(actor)
        self._require_own_password(actor, old)
        _require_password(new)
        hashed = self.hasher.hash(new)
        with self.context.database.work() as work:
            work.change(PersonRecord, {"password": hashed}, id=actor.person)
            work.remove(SessionRecord, person=actor.person)
            record_audit(self.context, work, actor, "change-password", actor.person)

    def _require_own_password(self, actor: Actor, password: str) -> None:
        name = f"sign-in:{actor.person}"
        with self.context.database.work() as work:
            self._refuse_throttled(work, name)
            person = work.get(PersonRecord, id=actor.person)
        assert person is not None
        if not self.hasher.verify(person.password, password[:MOST_PASSWORD]):
            self._failed([name])
            raise NotPermitted("the password is wrong")

    # ------------------------------------------------------------ members

    def members(self, actor: Actor) -> list[tuple[MemberRecord, PersonRecord]]:
        """Who belongs to the actor's tenant."""
        actor.require("members:read")
        with self.context.database.work() as work:
            found = work.all(MemberRecord, tenant=actor.tenant, order=("since_s",))
            people = {p.id: p for p in work.all(PersonRecord, id__in=[m.person for m in found])}
        return [(member, people[member.person]) for member in found]

    def set_member(self, actor: Actor, email: str, role: str) -> MemberRecord:
        """Add a registered person to the tenant, or change its role."""
        actor.require("members:write")
        if role not in ROLES:
            raise BadRequest(f"{role!r} is none of {', '.join(ROLES)}", field="role")
        with self.context.database.work() as work:
            person = work.get(PersonRecord, email=_email(email))
            if person is None:
                raise NotFound("person", f"{email}; ask them to register first")
            own = work.get(MemberRecord, tenant=actor.tenant, person=actor.person)
            if role == "owner" and (own is None or own.role != "owner"):
                raise NotPermitted("only an owner makes owners")
            self._require_not_last_owner(work, actor, person.id, role)
            member = MemberRecord(
                tenant=actor.tenant, person=person.id, role=role, since_s=self.context.now_s()
            )
            if not work.change(MemberRecord, {"role": role}, tenant=actor.tenant, person=person.id):
                work.add(member)
            record_audit(self.context, work, actor, "set-member", person.id, role)
        return member

    def remove_member(self, actor: Actor, person: str) -> None:
        """Take a person out of the tenant; its keys stop working."""
        if person != actor.person:
            actor.require("members:write")
        with self.context.database.work() as work:
            self._require_not_last_owner(work, actor, person, "")
            if not work.remove(MemberRecord, tenant=actor.tenant, person=person):
                raise NotFound("member", person)
            record_audit(self.context, work, actor, "remove-member", person)

    def _require_not_last_owner(self, work: Work, actor: Actor, person: str, role: str) -> None:
        current = work.get(MemberRecord, tenant=actor.tenant, person=person)
        if current is None or current.role != "owner" or role == "owner":
            return
        asker = work.get(MemberRecord, tenant=actor.tenant, person=actor.person)
        if asker is None or asker.role != "owner":
            raise NotPermitted("only an owner changes owners")
        if work.count(MemberRecord, tenant=actor.tenant, role="owner") == 1:
            raise Conflict("a tenant needs an owner: make another one first")

    def tenants(self, actor: Actor) -> list[tuple[TenantRecord, str]]:
        """Tenants that the actor's person belongs to, with its role; a key sees its own."""
        with self.context.database.work() as work:
            found = work.all(MemberRecord, person=actor.person, order=("since_s",))
            named = {t.id: t for t in work.all(TenantRecord, id__in=[m.tenant for m in found])}
        return [
            (named[member.tenant], member.role)
            for member in found
            if not actor.key or member.tenant == actor.tenant
        ]

    def person(self, actor: Actor) -> PersonRecord:
        """The actor's person."""
        with self.context.database.work() as work:
            found = work.get(PersonRecord, id=actor.person)
        assert found is not None
        return found


_NOBODY: Final = (
    "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHRvZm5vYm9keQ$"
    "u1bXWSMTNR4Q9rJrrAwtH9wYAZ0cS0vyXPpYoTPpVwE"
)
"""A hash that no password has, so that unknown addresses take as long to refuse as known ones."""


def _email(text: str) -> str:
    email = text.strip().lower()
    if not _EMAIL.fullmatch(email):
        raise BadRequest(f"{text[:80]!r} is no e-mail address", field="email")
    return email


def _require_password(password: str) -> None:
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise BadRequest(f"{LEAST_PASSWORD} to {MOST_PASSWORD} characters", field="password")


def _label(text: str) -> str:
    label = text.strip()
    if not 1 <= len(label) <= 60 or not label.isprintable():
        raise BadRequest("1 to 60 printable characters", field="name")
    return label


def _suggested(email: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", email.partition("@")[0]).strip("-")[:30].strip("-")
    return name or "tenant"


def _require_session(actor: Actor) -> None:
    if actor.key:
        raise NotPermitted("a key cannot change how its person signs in")
