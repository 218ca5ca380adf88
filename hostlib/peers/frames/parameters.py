# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between a worker and a parameter server; keys are numbers in the parameter layout."""

from __future__ import annotations

from typing import NamedTuple

from .header import Frame, FrameKind, pack_header

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


class AnswerFrame(NamedTuple):
    """ANSWER: the result of one iteration for a pair."""

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

    @classmethod
    def unpack(cls, frame: Frame) -> AnswerFrame:
        """Return the frame of an ANSWER header."""
        iteration, _, _, pair, _, num_contributors, key = frame.fields
        return cls(frame.payload_bytes, key, pair, iteration, num_contributors)


class FailedFrame(NamedTuple):
    """FAILED: an exchange will not complete; the payload gives the reason as JSON."""

    payload_bytes: int
    key: int | None
    """None: all exchanges fail."""
    iteration: int
    """0 if all fail."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        key = _ALL_KEYS if self.key is None else self.key
        return pack_header(FrameKind.FAILED, self.payload_bytes, self.iteration, tag=key)

    @classmethod
    def unpack(cls, frame: Frame) -> FailedFrame:
        """Return the frame of a FAILED header."""
        iteration, *_, key = frame.fields
        return cls(frame.payload_bytes, None if key == _ALL_KEYS else key, iteration)
