# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A controller at a TCP address, in front of a fake switch; for jobs between hosts.

Arguments: folder for its files, address to listen at, `host_gone_s`. Prints where it listens.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from controller_fixtures import fake_switch, make_config, serving

LEASE_S = 600.0
"""Far longer than any test: no worker is evicted for silence alone."""


async def main(folder: str, listen: str, host_gone_s: str) -> None:
    async with fake_switch() as fake:
        config = make_config(
            Path(folder), fake, listen=listen, lease_s=LEASE_S, host_gone_s=float(host_gone_s)
        )
        async with serving(config) as server:
            print(server.address, flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
