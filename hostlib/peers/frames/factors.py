# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of sufficient factors, among workers and to a parameter server."""

from __future__ import annotations

from typing import NamedTuple

from .header import Frame, FrameKind, pack_header

_FLOAT_BYTES = 4


class FactorsFrame(NamedTuple):
    """FACTORS among workers: u and v, one behind the other, then the key's name in UTF-8."""

    payload_bytes: int
    iteration: int
    rows: int
    """Rows of u, and of v."""
    u_columns: int
    v_columns: int
    name_bytes: int
    """Length of the key's name."""

    @property
    def value_bytes(self) -> int:
        """Bytes that u and v must have."""
        return _FLOAT_BYTES * self.rows * (self.u_columns + self.v_columns)

    def pack(self) -> bytes:
        """Return the header's bytes."""
        payload_bytes, iteration, rows, u_columns, v_columns, name_bytes = self
        return pack_header(
            FrameKind.FACTORS,
            payload_bytes,
            iteration,
            first_lane=u_columns,
            num_lanes=rows,
            total=v_columns,
            tag=name_bytes,
        )

    @classmethod
    def unpack(cls, frame: Frame) -> FactorsFrame:
        """Return the frame of a FACTORS header that a worker sent to a worker."""
        iteration, _, _, u_columns, rows, v_columns, name_bytes = frame.fields
        return cls(frame.payload_bytes, iteration, rows, u_columns, v_columns, name_bytes)


class PushedFactorsFrame(NamedTuple):
    """FACTORS to a parameter server: u and v, one behind the other."""

    payload_bytes: int
    iteration: int
    open_from: int
    """The lowest iteration of the key whose answer the worker does not have."""
    rows: int
    """Rows of u, and of v."""
    u_columns: int
    v_columns: int
    key: int
    """Number of the key in the parameter layout."""

    @property
    def num_values(self) -> int:
        """Floats of u and v together."""
        return self.rows * (self.u_columns + self.v_columns)

    def pack(self) -> bytes:
        """Return the header's bytes."""
        payload_bytes, iteration, open_from, rows, u_columns, v_columns, key = self
        return pack_header(
            FrameKind.FACTORS,
            payload_bytes,
            iteration,
            step=iteration - open_from,
            first_lane=u_columns,
            num_lanes=rows,
            total=v_columns,
            tag=key,
        )

    @classmethod
    def unpack(cls, frame: Frame) -> PushedFactorsFrame:
        """Return the frame of a FACTORS header that a worker sent to a parameter server."""
        iteration, behind, _, u_columns, rows, v_columns, key = frame.fields
        open_from = iteration - behind
        return cls(frame.payload_bytes, iteration, open_from, rows, u_columns, v_columns, key)
