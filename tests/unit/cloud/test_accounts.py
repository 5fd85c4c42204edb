"""Sign-in, keys, members and second factors: what lets in, and what does not."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")

from tests.unit.cloud.sites import PASSWORD, Clock, join, make_site
from va100.cloud.records import KeyRecord, PersonRecord, SessionRecord
from va100.cloud.service import totp
from va100.cloud.service.passwords import Argon2
from va100.errors import (
    BadRequest,
    Conflict,
    NotFound,
    NotPermitted,
    NotSignedIn,
    TooManyRequests,
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def site(clock):
    site = make_site(clock=clock)
    yield site
    site.context.database.close()


def sign_in(site, name="ann", password=PASSWORD, code=""):
    return site.accounts.sign_in(f"{name}@example.com", password, code, address="10.0.0.1")


def test_the_first_person_runs_the_site(site):
    assert join(site, "ann").operator
    assert not join(site, "bob").operator


def test_an_address_is_registered_once_whatever_its_case(site):
    join(site, "ann")
    with pytest.raises(Conflict):
        site.accounts.register("ANN@example.com", PASSWORD)


@pytest.mark.parametrize(("email", "password"), [("ann", PASSWORD), ("a@b", "short"), ("", "")])
def test_registration_refuses(site, email, password):
    with pytest.raises(BadRequest):
        site.accounts.register(email, password)


def test_closed_registration(clock):
    site = make_site(clock=clock, open_registration=False)
    with pytest.raises(NotPermitted, match="closed"):
        site.accounts.register("ann@example.com", PASSWORD)
    site.context.database.close()


def test_wrong_passwords_are_throttled_and_forgotten(site, clock):
    join(site, "ann")
    for _ in range(5):
        with pytest.raises(NotSignedIn):
            sign_in(site, password="wrong password")
    with pytest.raises(TooManyRequests) as refused:
        sign_in(site)
    clock.move(refused.value.retry_after_s)
    sign_in(site)
    with pytest.raises(NotSignedIn):
        sign_in(site, password="wrong password")


def test_strangers_and_wrong_passwords_are_told_the_same(site):
    join(site, "ann")
    messages = set()
    for name in ("ann", "nobody"):
        with pytest.raises(NotSignedIn) as refused:
            sign_in(site, name, "wrong password")
        messages.add(str(refused.value))
    assert len(messages) == 1


def test_a_session_ends(site, clock):
    join(site, "ann")
    cookie = sign_in(site).cookie
    site.accounts.of_session(cookie)
    clock.move(15 * 86_400)
    with pytest.raises(NotSignedIn):
        site.accounts.of_session(cookie)


def test_no_secret_is_kept(site):
    actor = join(site, "ann")
    cookie = sign_in(site).cookie
    _, secret = site.accounts.make_key(actor, "k")
    with site.context.database.work() as work:
        kept = repr([*work.all(SessionRecord), *work.all(KeyRecord)])
    assert cookie not in kept
    assert secret not in kept


def test_argon2_hashes_and_verifies():
    hasher = Argon2(memory_kib=64, passes=1)
    encoded = hasher.hash(PASSWORD)
    assert encoded.startswith("$argon2id$")
    assert hasher.verify(encoded, PASSWORD)
    assert not hasher.verify(encoded, "another")
    assert not hasher.verify("no hash", PASSWORD)


class TestKeys:
    def test_a_key_has_its_scopes_and_no_more(self, site):
        actor = join(site, "ann")
        _, secret = site.accounts.make_key(actor, "k", ["instances:read"])
        found = site.accounts.of_key(secret)
        assert found.scopes == {"instances:read"}
        with pytest.raises(NotPermitted):
            site.accounts.make_key(found, "more")

    def test_a_key_cannot_make_a_greater_one(self, site):
        actor = join(site, "ann")
        _, secret = site.accounts.make_key(actor, "k", ["keys:write"])
        with pytest.raises(NotPermitted, match="lack"):
            site.accounts.make_key(site.accounts.of_key(secret), "more", ["operator"])
        with pytest.raises(BadRequest, match="not one of"):
            site.accounts.make_key(actor, "odd", ["everything"])

    def test_a_key_ends(self, site, clock):
        actor = join(site, "ann")
        key, secret = site.accounts.make_key(actor, "k", lasts_s=100)
        site.accounts.of_key(secret)
        clock.move(100)
        with pytest.raises(NotSignedIn):
            site.accounts.of_key(secret)
        _, other = site.accounts.make_key(actor, "l")
        site.accounts.revoke_key(actor, site.accounts.keys(actor)[-1].id)
        with pytest.raises(NotSignedIn):
            site.accounts.of_key(other)
        with pytest.raises(NotFound):
            site.accounts.revoke_key(join(site, "bob"), key.id)

    def test_a_key_follows_its_persons_role(self, site):
        ann, bob = join(site, "ann"), join(site, "bob")
        site.accounts.set_member(ann, "bob@example.com", "developer")
        cookie = sign_in(site, "bob").cookie
        there = site.accounts.of_session(cookie, ann.tenant)[0]
        _, secret = site.accounts.make_key(there, "k")
        site.accounts.set_member(ann, "bob@example.com", "viewer")
        assert "instances:write" not in site.accounts.of_key(secret).scopes
        site.accounts.remove_member(ann, bob.person)
        with pytest.raises(NotSignedIn):
            site.accounts.of_key(secret)


class TestMembers:
    def test_only_owners_make_and_change_owners(self, site):
        ann, bob = join(site, "ann"), join(site, "bob")
        site.accounts.set_member(ann, "bob@example.com", "admin")
        there = site.accounts.of_session(sign_in(site, "bob").cookie, ann.tenant)[0]
        for email, role in (("bob@example.com", "owner"), ("ann@example.com", "viewer")):
            with pytest.raises(NotPermitted, match="owner"):
                site.accounts.set_member(there, email, role)
        with pytest.raises(NotPermitted, match="owner"):
            site.accounts.remove_member(there, ann.person)
        with pytest.raises(Conflict, match="needs an owner"):
            site.accounts.remove_member(ann, ann.person)
        site.accounts.remove_member(there, bob.person)

    def test_others_tenants_are_not_there(self, site):
        ann = join(site, "ann")
        join(site, "bob")
        with pytest.raises(NotFound):
            site.accounts.of_session(sign_in(site, "bob").cookie, ann.tenant)


class TestSecondFactor:
    def turn_on(self, site, clock):
        actor = join(site, "ann")
        secret, address = site.accounts.begin_totp(actor)
        assert secret in address
        site.accounts.confirm_totp(actor, totp.code(secret, clock() // 30))
        return actor, secret

    def test_the_published_examples(self):
        """RFC 6238, appendix B, SHA-1, the last six of its eight digits."""
        secret = totp.secret_of(b"12345678901234567890".hex())
        for at_s, expected in ((59, "287082"), (1_111_111_109, "081804"), (20_000_000_000,
                                                                           "353130")):  # fmt: skip
            assert totp.code(secret, at_s // 30) == expected

    def test_a_code_is_needed_and_good_once(self, site, clock):
        _, secret = self.turn_on(site, clock)
        with pytest.raises(NotSignedIn, match="code"):
            sign_in(site)
        clock.move(30)
        code = totp.code(secret, clock() // 30)
        sign_in(site, code=code)
        with pytest.raises(NotSignedIn, match="code"):
            sign_in(site, code=code)

    def test_guessed_codes_are_throttled(self, site, clock):
        self.turn_on(site, clock)
        for _ in range(5):
            with pytest.raises(NotSignedIn):
                sign_in(site, code="000000")
        with pytest.raises(TooManyRequests):
            sign_in(site, code="000000")

    def test_it_takes_the_password_to_turn_it_off(self, site, clock):
        actor, _ = self.turn_on(site, clock)
        with pytest.raises(NotPermitted):
            site.accounts.end_totp(actor, "wrong password")
        site.accounts.end_totp(actor, PASSWORD)
        sign_in(site)

    def test_a_key_cannot_touch_it(self, site):
        actor = join(site, "ann")
        _, secret = site.accounts.make_key(actor, "k")
        with pytest.raises(NotPermitted, match="key"):
            site.accounts.begin_totp(site.accounts.of_key(secret))


def test_a_new_password_ends_all_sessions(site):
    actor = join(site, "ann")
    cookie = sign_in(site).cookie
    site.accounts.change_password(actor, PASSWORD, "another good password")
    with pytest.raises(NotSignedIn):
        site.accounts.of_session(cookie)
    sign_in(site, password="another good password")
    with site.context.database.work() as work:
        assert work.count(PersonRecord) == 1
