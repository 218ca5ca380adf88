# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TORCH_DISTRIBUTED_DEBUG=DETAIL: all ranks compare their calls before a collective runs."""

from __future__ import annotations

from typing import Final

import torch

from ..errors import CollectiveMismatchError, CollectiveTimeoutError
from ..torch_seam import Gloo

CALL_BYTES: Final = 512
"""Length of the compared description; longer ones are truncated."""


class CallCheck:
    """Compares the calls of all ranks over a separate Gloo group, which slows each collective."""

    def __init__(self, gloo: Gloo, num_ranks: int) -> None:
        self._gloo = gloo
        self._num_ranks = num_ranks

    def compare(self, place: str, called: str) -> None:
        """Return when all ranks have called the same collective.

        Raises CollectiveMismatchError if the calls differ, and CollectiveTimeoutError if some rank
        calls none within the group's timeout.
        """
        octets = bytearray(called.encode()[:CALL_BYTES].ljust(CALL_BYTES, b"\0"))
        mine = torch.frombuffer(octets, dtype=torch.uint8)
        said = [
            torch.zeros(CALL_BYTES, dtype=torch.uint8, device="cpu") for _ in range(self._num_ranks)
        ]
        try:
            self._gloo.allgather([said], [mine]).wait()
        except RuntimeError as error:
            raise CollectiveTimeoutError(
                f"{place}: not all ranks have called a collective of the switch; check that all"
                f" run and call the same ({error})"
            ) from error
        calls = [bytes(text.numpy()).rstrip(b"\0").decode(errors="replace") for text in said]
        others = [f"rank {rank} {call}" for rank, call in enumerate(calls) if call != called]
        if len(set(calls)) > 1:
            raise CollectiveMismatchError(
                f"{place}: the ranks called different collectives: {'; '.join(others)}; call the"
                " same ones, with the same shapes, dtypes and operations, on all ranks"
            )
