"""One-time codes of a second factor, as authenticator programs make them (RFC 6238)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from typing import Final
from urllib.parse import quote

STEP_S: Final = 30
DIGITS: Final = 6


def code(secret: str, step: int) -> str:
    """The code of a step.

    Parameters
    ----------
    secret : str
        In base 32, without padding.
    """
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    mark = hmac.new(key, struct.pack(">Q", step), hashlib.sha1).digest()
    place = mark[-1] & 15
    number = struct.unpack(">I", mark[place : place + 4])[0] & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def matching_step(secret: str, given: str, at_s: float, *, after: int) -> int | None:
    """The step that a code is of, now or one to either side; none if it is of none.

    Parameters
    ----------
    after : int
        The last step whose code was used: codes are good once.
    """
    now = int(at_s // STEP_S)
    for step in (now - 1, now, now + 1):
        if step > after and hmac.compare_digest(code(secret, step), given):
            return step
    return None


def address(secret: str, account: str, issuer: str = "va100") -> str:
    """What a QR code for authenticator programs holds."""
    return f"otpauth://totp/{quote(issuer)}:{quote(account)}?secret={secret}&issuer={quote(issuer)}"


def secret_of(digits: str) -> str:
    """Spell random bytes, given in hexadecimal, in base 32."""
    return base64.b32encode(bytes.fromhex(digits)).decode().rstrip("=")
