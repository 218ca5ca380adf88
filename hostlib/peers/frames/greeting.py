# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The greeting of a client: who it is, what it wants, and a proof that it knows the secret."""

from __future__ import annotations

import enum
import hashlib
import hmac
import struct
import sys
from typing import NamedTuple

from ...errors import PeerProtocolError, PeerRefusedError
from .header import GREETING_BYTES

_GREETING = struct.Struct("!IIHHBB32s")
assert _GREETING.size == GREETING_BYTES


class Purpose(enum.IntEnum):
    """Purposes of connections. Exponents have their own ones, as they have their own slots."""

    REDUCE_VALUES = 1
    REDUCE_EXPONENTS = 2
    """Also what else workers agree on before they reduce values."""
    FETCH = 3
    PARAMETERS = 4
    FACTORS = 5
    TABLES = 6
    TRANSFERS = 7
    MODELS = 8
    """That a worker sends on to another one."""


class Greeting(NamedTuple):
    """Names both ends of a connection and its purpose."""

    job: int
    generation: int
    sender: int
    """Worker id of the connecting end."""
    receiver: int
    """Worker id of the listening end."""
    purpose: Purpose

    def pack(self, token: str, nonce: bytes) -> bytes:
        """Return the payload: the fields and a proof that the sender knows the token."""
        fields = _GREETING.pack(*self, sys.byteorder == "little", b"")
        proof = _proof(token, nonce, fields)
        return fields[: -len(proof)] + proof

    @classmethod
    def unpack(cls, payload: bytes, token: str, nonce: bytes) -> Greeting:
        """Return the greeting.

        Raises PeerProtocolError if it is malformed, PeerRefusedError if the secret is wrong.
        """
        if len(payload) != _GREETING.size:
            raise PeerProtocolError(f"greeting of {len(payload)} bytes")
        job, generation, sender, receiver, purpose, is_little, proof = _GREETING.unpack(payload)
        fields = payload[: -len(proof)] + bytes(len(proof))
        if not hmac.compare_digest(proof, _proof(token, nonce, fields)):
            raise PeerRefusedError("wrong secret; give all workers of the job the same token")
        if is_little != (sys.byteorder == "little"):
            raise PeerRefusedError(
                "the workers' byte orders differ; run them on machines of one kind"
            )
        if purpose not in list(Purpose):
            raise PeerProtocolError(f"unknown purpose {purpose}")
        return cls(job, generation, sender, receiver, Purpose(purpose))


def _proof(token: str, nonce: bytes, fields: bytes) -> bytes:
    return hmac.digest(token.encode(), nonce + fields, hashlib.sha256)
