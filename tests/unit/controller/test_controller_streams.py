# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The end of a worker's stream is noticed, whatever else happens at the same moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from switchfold.controller.api.session_service import SessionService
from switchfold.controller.jobs.worker_lease import Outbox
from switchfold.hostlib.control.session_api import session_pb2 as pb


@pytest.mark.parametrize("steps", range(8))
def test_stream_end_counts_when_the_call_is_cancelled_too(steps: int):
    """A worker that dies ends its stream, and its call is cancelled some steps later."""

    async def scenario() -> None:
        membership: Any = Mock()
        membership.enter = AsyncMock(return_value=(Mock(), Mock(), Outbox()))
        ends = asyncio.Event()
        messages = [pb.WorkerMessage(join_request=pb.JoinRequest(job_name="train", udp_port=5000))]

        async def read() -> object:
            if messages:
                return messages.pop()
            await ends.wait()
            return None

        context: Any = Mock(read=read)
        call = asyncio.create_task(SessionService(membership).Join(object(), context))
        async with asyncio.timeout(60):
            while not membership.enter.await_count:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        ends.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        membership.stream_ended.assert_called_once()

    asyncio.run(scenario())
