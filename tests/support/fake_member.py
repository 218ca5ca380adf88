# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that follow view changes by themselves; a test scripts their positions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc

from controller_fixtures import FakeWorker, resume_of
from switchfold.hostlib.control.session_api import session_pb2 as pb


class FakeMember(FakeWorker):
    """Answers every proposal with its position and enters what is committed, unless told not to."""

    def __init__(
        self, address: str, worker_id: int, num_workers: int = 2, /, **fields: Any
    ) -> None:
        fields = {"peer_port": 4000 + worker_id, **fields}
        super().__init__(address, worker_id, num_workers, **fields)
        self.position = 0
        """Tensors started, and completed."""
        self.is_mute = False
        """Whether it ignores proposals."""
        self.is_slow = False
        """Whether it stays in older views."""
        self.reply: pb.JoinReply | None = None
        self.proposals: list[pb.ViewProposal] = []
        self.commits: list[pb.ViewCommit] = []
        self.released: list[tuple[str, int]] = []
        self.ended = ""
        """Why the job ended, or the status that the stream ended with."""
        self.has_mismatch = False
        """Whether the job ended because workers submitted different tensors."""
        self._changed = asyncio.Event()

    async def join(self) -> FakeMember:
        await super().join()
        return self

    @property
    def view(self) -> pb.View:
        """The view that was committed last."""
        return self.commits[-1].view if self.commits else self.first_join_reply.view

    @property
    def first_join_reply(self) -> pb.JoinReply:
        """The join reply that let this worker in."""
        assert self.reply is not None
        return self.reply

    def resume(self, generation: int = 0, proposed: int = 0) -> pb.Resume:
        """Return the Resume of this worker for a view; by default for that of its join reply."""
        resume = resume_of(self.first_join_reply)
        resume.generation = generation or resume.generation
        resume.proposed = proposed
        return resume

    @property
    def members(self) -> list[int]:
        """Worker ids of that view."""
        return [member.worker_id for member in self.view.members]

    async def until(self, is_so: Callable[[], Any], limit_s: float = 60.0) -> float:
        """Wait until the condition holds; return the time that it took, in seconds."""
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(limit_s):
                while not is_so():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"worker {self.join_request.worker_id}: not within {limit_s} s: "
                f"{self.proposals} {self.commits} {self.ended!r}"
            ) from None
        return time.monotonic() - began_s

    async def until_members(self, *members: int, limit_s: float = 60.0) -> float:
        """Wait for a committed view of these workers."""
        return await self.until(
            lambda: self.reply is not None and self.members == [*members], limit_s
        )

    async def until_settled(
        self, is_so: Callable[[], Any], what: str, limit_s: float = 60.0
    ) -> None:
        """Wait for a condition that no message reports."""
        end_s = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < end_s, f"not within {limit_s} s: {what}"
            await asyncio.sleep(0.01)

    async def enter(self) -> None:
        """Report that this worker uses no older view."""
        await self.send(view_entered=pb.ViewEntered(generation=self.view.generation))

    async def answer(self) -> None:
        """Answer the last proposal."""
        generation = self.proposals[-1].generation
        await self.send(view_ready=pb.ViewReady(generation=generation, position=self.position))

    async def _read(self) -> None:
        try:
            while isinstance(message := await self._call.read(), pb.ControllerMessage):
                with suppress(asyncio.InvalidStateError):  # the stream's end tells more
                    await self._take(message)
                self._changed.set()
            self.ended = self.ended or "end of stream"
        except grpc.aio.AioRpcError:
            self.ended = f"{await self._call.code()}: {await self._call.details()}"
        self._changed.set()

    async def _take(self, message: pb.ControllerMessage) -> None:
        match message.WhichOneof("message"):
            case "join_reply":
                self.reply = self.reply or message.join_reply
            case "view_proposal":
                self.proposals.append(message.view_proposal)
                if not self.is_mute:
                    await self.answer()
            case "view_commit":
                self.commits.append(message.view_commit)
                if not self.is_slow:
                    await self.enter()
            case "barrier_released":
                self.released.append((message.barrier_released.name, message.barrier_released.use))
            case "job_ended":
                self.ended = message.job_ended.reason
                self.has_mismatch = message.job_ended.is_mismatch
            case other:
                raise AssertionError(other)


async def start_members(address: str, num_workers: int, /, **fields: Any) -> list[FakeMember]:
    """Start a job and wait until it runs."""
    members = [
        await FakeMember(address, worker_id, num_workers, **fields).join()
        for worker_id in range(num_workers)
    ]
    for member in members:
        await member.until(lambda member=member: member.reply)
    return members


async def close_all(*members: FakeWorker) -> None:
    """Break all connections."""
    for member in members:
        await member.close()
