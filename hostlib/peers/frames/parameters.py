# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between a worker and a parameter server; keys are numbers in the parameter layout."""

from __future__ import annotations

from typing import NamedTuple

from .header import Frame, FrameKind, pack_header

_IS_INITIAL = 1
"""Flag of ANSWER and FAILED: of an initialisation, not of an update."""
_IS_CHOSEN = 1
"""Flag of RESTORE: a worker chose an iteration, or the server has restored it."""
_ALL_KEYS = 0xFFFFFFFF
"""Key of a FAILED that concerns all keys."""


class UpdateFrame(NamedTuple):
    """UPDATE: a worker's values of one pair."""

    payload_bytes: int
    key: int
    pair: int
    num_values: int
    iteration: int
    open_from: int
    """The lowest iteration of the key whose answer the worker does not have."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        payload_bytes, key, pair, num_values, iteration, open_from = self
        behind = iteration - open_from
        return pack_header(
            FrameKind.UPDATE, payload_bytes, iteration, behind, 0, pair, num_values, tag=key
        )

    @classmethod
    def unpack(cls, frame: Frame) -> UpdateFrame:
        """Return the frame of an UPDATE header."""
        iteration, behind, _, pair, num_values, _, key = frame.fields
        return cls(frame.payload_bytes, key, pair, num_values, iteration, iteration - behind)


class InitialFrame(NamedTuple):
    """INITIAL: values for a pair that has none yet."""

    payload_bytes: int
    key: int
    pair: int
    num_values: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        payload_bytes, key, pair, num_values = self
        return pack_header(
            FrameKind.INITIAL, payload_bytes, first_lane=pair, num_lanes=num_values, tag=key
        )

    @classmethod
    def unpack(cls, frame: Frame) -> InitialFrame:
        """Return the frame of an INITIAL header."""
        _, _, _, pair, num_values, _, key = frame.fields
        return cls(frame.payload_bytes, key, pair, num_values)


class AnswerFrame(NamedTuple):
    """ANSWER to an update: the result of one iteration for a pair."""

    payload_bytes: int
    key: int
    pair: int
    iteration: int
    num_contributors: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        payload_bytes, key, pair, iteration, num_contributors = self
        return pack_header(
            FrameKind.ANSWER,
            payload_bytes,
            iteration,
            first_lane=pair,
            total=num_contributors,
            tag=key,
        )


class ParametersFrame(NamedTuple):
    """ANSWER to an initialisation: a pair's parameters."""

    payload_bytes: int
    key: int
    pair: int
    num_applied: int
    """Number of the first iteration that is not in the parameters."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        payload_bytes, key, pair, num_applied = self
        return pack_header(
            FrameKind.ANSWER,
            payload_bytes,
            num_applied,
            flags=_IS_INITIAL,
            first_lane=pair,
            tag=key,
        )


def unpack_answer(frame: Frame) -> AnswerFrame | ParametersFrame:
    """Return the frame of an ANSWER header."""
    sequence, _, flags, pair, _, num_contributors, key = frame.fields
    if flags & _IS_INITIAL:
        return ParametersFrame(frame.payload_bytes, key, pair, sequence)
    return AnswerFrame(frame.payload_bytes, key, pair, sequence, num_contributors)


class FailedFrame(NamedTuple):
    """FAILED: an exchange will not complete; the payload gives the reason as JSON."""

    payload_bytes: int
    key: int | None
    """None: all exchanges fail."""
    iteration: int | None
    """None: the key's initialisation fails."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        if self.key is None:
            return pack_header(FrameKind.FAILED, self.payload_bytes, tag=_ALL_KEYS)
        if self.iteration is None:
            return pack_header(
                FrameKind.FAILED, self.payload_bytes, flags=_IS_INITIAL, tag=self.key
            )
        return pack_header(FrameKind.FAILED, self.payload_bytes, self.iteration, tag=self.key)

    @classmethod
    def unpack(cls, frame: Frame) -> FailedFrame:
        """Return the frame of a FAILED header."""
        iteration, _, flags, *_, key = frame.fields
        return cls(
            frame.payload_bytes,
            None if key == _ALL_KEYS else key,
            None if flags & _IS_INITIAL else iteration,
        )


class RestoreFrame(NamedTuple):
    """RESTORE from a worker: it asks for the checkpoints, or has chosen one."""

    chosen: int | None
    """Iteration of the chosen checkpoint, -1 for the empty one; None: the worker asks."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        if self.chosen is None:
            return pack_header(FrameKind.RESTORE)
        return pack_header(FrameKind.RESTORE, sequence=self.chosen + 1, flags=_IS_CHOSEN)

    @classmethod
    def unpack(cls, frame: Frame) -> RestoreFrame:
        """Return the frame of a RESTORE header that a worker sent."""
        sequence, _, flags, *_ = frame.fields
        return cls(sequence - 1 if flags & _IS_CHOSEN else None)


class RestorableFrame(NamedTuple):
    """RESTORE from a server: it has restored, or lists its checkpoints as JSON."""

    payload_bytes: int
    is_restored: bool

    def pack(self) -> bytes:
        """Return the header's bytes."""
        flags = _IS_CHOSEN if self.is_restored else 0
        return pack_header(FrameKind.RESTORE, self.payload_bytes, flags=flags)

    @classmethod
    def unpack(cls, frame: Frame) -> RestorableFrame:
        """Return the frame of a RESTORE header that a server sent."""
        return cls(frame.payload_bytes, bool(frame.fields[2] & _IS_CHOSEN))
