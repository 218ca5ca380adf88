# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a switch answers P4Runtime calls from here, as primary or not."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from finsy import GRPCStatusCode, P4Client, P4ClientError
from finsy.proto import p4r

from ...hostlib.credentials import CredentialsError
from ..config import SwitchConfig
from .switch_call import switch_credentials

_LOGGER = logging.getLogger(__name__)
_ANSWER_S: Final = 1.0
"""A switch that does not answer within this time counts as out of reach."""


class SwitchProbe:
    """Asks a switch on a connection of its own, which it opens again after each failure."""

    def __init__(self, config: SwitchConfig) -> None:
        self._config = config
        self._client: P4Client | None = None

    async def is_reached(self) -> bool:
        """Return whether the switch answers now."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                if self._client is None:
                    self._client = P4Client(
                        self._config.address,
                        switch_credentials(self._config),
                        wait_for_ready=False,
                    )
                    await self._client.open()
                await self._client.request(p4r.CapabilitiesRequest())
        except P4ClientError as exc:
            if exc.code is not GRPCStatusCode.UNAVAILABLE:
                return True  # a refusal is an answer
            reason = exc.message
        except (TimeoutError, CredentialsError) as exc:
            reason = str(exc) or f"no answer in {_ANSWER_S} s"
        else:
            return True
        _LOGGER.debug("switch %s is out of reach: %s", self._config.name, reason)
        await self.close()
        return False

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
