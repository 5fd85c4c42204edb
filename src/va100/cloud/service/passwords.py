"""Argon2 for passwords, behind the two calls that accounts make."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError


class Argon2:
    """Argon2id; the encoded hash carries its cost, so it can be raised later."""

    def __init__(self, *, memory_kib: int = 65_536, passes: int = 3) -> None:
        self._hasher = PasswordHasher(time_cost=passes, memory_cost=memory_kib)

    def hash(self, password: str) -> str:
        """An encoded hash with a salt of its own."""
        return self._hasher.hash(password)

    def verify(self, encoded: str, password: str) -> bool:
        """Whether a password is the hashed one."""
        try:
            return self._hasher.verify(encoded, password)
        except (Argon2Error, InvalidHashError):
            return False
