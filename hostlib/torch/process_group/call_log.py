# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Log of the collectives that a rank has called in a group, and comparison between ranks."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, final

LOGGED_CALLS: Final = 256
"""Number of latest calls that a rank keeps; ranks differ only in calls in flight."""


class CallText(NamedTuple):
    """What a call of a collective is about."""

    what: str
    """Operation, dtype, shapes and root, for messages."""
    key: str
    """The part that, besides the kind, must be the same on all ranks."""

    def plus(self, text: str) -> CallText:
        """Return the call's text with something added that is the same on all ranks."""
        return CallText(self.what + text, self.key + text)


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One collective of a group."""

    kind: str
    """Name of the collective in torch.distributed."""
    number: int
    """Number from 1, over all collectives of the group except send and receive."""
    what: str
    """As in CallText."""
    key: str

    @property
    def name(self) -> str:
        """Kind and number."""
        return f"{self.kind} {self.number}"

    def __str__(self) -> str:
        return f"{self.name}, {self.what}"


@final
class CallLog:
    """The latest calls of one rank; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: deque[LoggedCall] = deque(maxlen=LOGGED_CALLS)
        self._num_calls = 0

    @property
    def num_calls(self) -> int:
        """Calls since the group was made."""
        return self._num_calls

    def add(self, kind: str, what: str, key: str) -> LoggedCall:
        """Log a call and return it with its number."""
        with self._lock:
            self._num_calls += 1
            call = LoggedCall(kind, self._num_calls, what, key)
            self._calls.append(call)
            return call

    def latest(self) -> dict[int, LoggedCall]:
        """Return the latest calls by number."""
        with self._lock:
            return {call.number: call for call in self._calls}


def to_text(calls: Mapping[int, LoggedCall]) -> str:
    """Return calls as JSON."""
    return json.dumps([[c.kind, c.number, c.what, c.key] for c in calls.values()])


def from_text(text: str) -> dict[int, LoggedCall]:
    """Return the calls of `to_text`, by number."""
    return {
        number: LoggedCall(kind, number, what, key) for kind, number, what, key in json.loads(text)
    }


def difference(calls_by_rank: Mapping[int, Mapping[int, LoggedCall]]) -> str:
    """Return the first calls that differ between ranks, as text; empty if the known calls agree.

    A rank that has made fewer calls than others does not differ from them.
    """
    numbers = sorted({number for calls in calls_by_rank.values() for number in calls})
    for number in numbers:
        called = {rank: calls[number] for rank, calls in calls_by_rank.items() if number in calls}
        if len({(call.kind, call.key) for call in called.values()}) > 1:
            ranks_by_text: dict[str, list[int]] = {}
            for rank, call in sorted(called.items()):
                ranks_by_text.setdefault(str(call), []).append(rank)
            texts = (f"{_ranks(ranks)} {text}" for text, ranks in ranks_by_text.items())
            return "; ".join(texts)
    return ""


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks}"
