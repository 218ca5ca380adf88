# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The beginning and the end of a worker's stream, whatever else happens at the same moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from unittest.mock import AsyncMock, Mock

import grpc
import pytest

from hand_clock import HandClock
from switchfold.controller.api.callers.source_calls import SourceCalls
from switchfold.controller.api.session_service import SessionService
from switchfold.controller.errors import InvalidJobError
from switchfold.controller.jobs.punctual_timer import PunctualTimer
from switchfold.controller.jobs.worker_lease import Outbox
from switchfold.hostlib.control.session_api import session_pb2 as pb

JOIN = pb.WorkerMessage(join_request=pb.JoinRequest(job_name="train", udp_port=5000))


def test_timer_calls_back_only_where_the_loop_is_in_time():
    async def scenario() -> None:
        clock, called = HandClock(), Mock()
        PunctualTimer(5.0, called)
        await clock.pass_by(9.0)  # 4 s late: it is set again for 0.5 s
        await clock.pass_by(0.4)
        await clock.pass_by(0.6)  # late again
        called.assert_not_called()
        await clock.pass_by(0.5)
        called.assert_called_once()
        PunctualTimer(5.0, called).cancel()
        await clock.pass_by(5.0)
        called.assert_called_once()

    asyncio.run(scenario())


@pytest.mark.parametrize("waited_s", [6.0, 5.0])
def test_worker_is_refused_for_its_own_delay_alone(waited_s: float):
    """A JoinRequest is due within 5 s, but a controller that stood still has not read it yet."""

    async def scenario() -> None:
        clock = HandClock()
        message: asyncio.Future[object] = asyncio.Future()
        membership: Any = Mock(enter=AsyncMock(side_effect=InvalidJobError("got here")))
        context: Any = Mock(read=lambda: message, abort=AsyncMock(side_effect=RuntimeError))
        context.peer.return_value = "unix:"
        call = asyncio.create_task(
            SessionService(membership, SourceCalls(1)).Join(object(), context)
        )
        await clock.pass_by(0.0)
        await clock.pass_by(waited_s)
        if not message.done():
            message.set_result(JOIN)
        with pytest.raises(RuntimeError):
            await call
        is_late = waited_s > 5.0
        expected = (
            "got here" if is_late else "no JoinRequest within 5 s; send it first on the stream"
        )
        context.abort.assert_awaited_once_with(grpc.StatusCode.INVALID_ARGUMENT, expected)

    asyncio.run(scenario())


@pytest.mark.parametrize("steps", range(8))
def test_stream_end_counts_when_the_call_is_cancelled_too(steps: int):
    """A worker that dies ends its stream, and its call is cancelled some steps later."""

    async def scenario() -> None:
        membership: Any = Mock()
        membership.enter = AsyncMock(return_value=(Mock(), Mock(), Outbox()))
        ends = asyncio.Event()
        messages = [JOIN]

        async def read() -> object:
            if messages:
                return messages.pop()
            await ends.wait()
            return None

        context: Any = Mock(read=read)
        context.peer.return_value = "unix:"
        call = asyncio.create_task(
            SessionService(membership, SourceCalls(1)).Join(object(), context)
        )
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
