# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The workers of a world: each is started again when it fails, and every sum is checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kill_points.children import Child

StartWorker = Callable[[str, int, bool], Child]
"""Job, worker id, whether it may come to a job that runs."""


@dataclass(eq=False)
class Member:
    """A worker's place in a job, and the process that has it."""

    job: str
    worker_id: int
    child: Child
    is_wanted: bool = True
    """Whether it shall be in the job; else it ends."""
    lines: int = 0
    """Results since `Members.begin`."""
    last: tuple[int, ...] = ()
    """Members of the last result."""
    next_tensor: int | None = None
    error: str = ""
    """What the present process has written last, if it failed."""
    generations: list[int] = field(default_factory=list[int])
    """Of the present process's results, each once."""


class Members:
    """All workers; those that fail and are wanted come back, as a launcher would bring them."""

    def __init__(self, start: StartWorker) -> None:
        self._start = start
        self._all: dict[tuple[str, int], Member] = {}
        self._sums: dict[tuple[int, int], tuple[list[int], int]] = {}
        """Members and value by number of the job and of the tensor."""
        self.results = 0
        self.failures: Counter[str] = Counter()
        """Why workers had to be started again, without numbers."""

    def begin(self) -> None:
        """Ask all for new results."""
        for member in self._all.values():
            member.lines = 0

    def forget_sums(self) -> None:
        """Let numbers of jobs begin again."""
        self._sums.clear()

    def start(self, job: str, worker_id: int, *, is_joining: bool) -> None:
        """Start a worker, and again whenever it fails."""
        child = self._start(job, worker_id, is_joining)
        self._all[job, worker_id] = Member(job, worker_id, child)

    def kill(self, job: str, worker_id: int) -> None:
        """Kill a worker for good."""
        self._all.pop((job, worker_id)).child.kill()

    def leave(self, *places: tuple[str, int]) -> None:
        """Let workers leave their jobs."""
        for place in places:
            self._all[place].is_wanted = False
            self._all[place].child.terminate()

    def leave_all(self) -> None:
        """Let all workers leave."""
        self.leave(*self._all)

    def are_none(self) -> bool:
        """Whether no worker is left."""
        return not self._all

    def dismiss(self, job: str) -> None:
        """Expect the workers of a job to be told of its end."""
        for member in self._all.values():
            if member.job == job:
                member.is_wanted = False

    def have_summed(self, job: str, *worker_ids: int) -> bool:
        """Whether these, and no others, have had new results in a view of just them."""
        members = [m for m in self._all.values() if m.job == job]
        return {m.worker_id for m in members} == {*worker_ids} and all(
            m.lines > 2 and m.last == worker_ids for m in members
        )

    def are_gone(self, job: str) -> bool:
        """Whether no worker of the job is left."""
        return all(member.job != job for member in self._all.values())

    def generations(self) -> dict[str, list[int]]:
        """Return the generations of each process's results, in order."""
        return {f"worker {m.child.pid}": m.generations for m in self._all.values()}

    def look(self) -> None:
        """Read what the workers have written; start those again that have failed."""
        for place, member in list(self._all.items()):
            is_alive = member.child.is_alive()  # first: the last lines come before the end
            self._read(member)
            if is_alive:
                continue
            if not member.is_wanted:
                del self._all[place]
                continue
            self.failures[_without_numbers(member.error or member.child.last_words())] += 1
            self.start(member.job, member.worker_id, is_joining=True)

    def close(self) -> None:
        """Kill all."""
        for member in self._all.values():
            member.child.kill()

    def _read(self, member: Member) -> None:
        for line in member.child.new_lines():
            if "error" in line:
                member.error = line["error"]
                continue
            self._check(member, line)
            member.lines += 1
            member.last = tuple(line["members"])
            if member.generations[-1:] != [line["generation"]]:
                member.generations.append(line["generation"])

    def _check(self, member: Member, line: dict[str, Any]) -> None:
        """Check a sum against its members, the worker's tensors before, and other workers."""
        tensor: int = line["tensor"]
        members: list[int] = line["members"]
        value: int = line["value"]
        who = f"worker {member.worker_id} of job {member.job}: {line}"
        assert line["is_even"], who
        assert value == sum(i + 1 for i in members) * (tensor + 1), who
        assert member.next_tensor in (None, tensor), f"{who}, not tensor {member.next_tensor}"
        member.next_tensor = tensor + 1
        key = (line["job"], tensor)
        assert self._sums.setdefault(key, (members, value)) == (members, value), who
        self.results += 1


def _without_numbers(text: str) -> str:
    return "".join("#" if c.isdigit() else c for c in text)[:200]
