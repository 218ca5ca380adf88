# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules in messages of the scheduler; what cannot be used is logged."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

from ..transfers_api import transfers_pb2 as api
from .station import GrantedSpan

_logger = logging.getLogger(__name__)


def granted_spans(told: Iterable[api.RateSpan], what: str) -> tuple[GrantedSpan, ...] | None:
    """Return a schedule, None if it cannot be used."""
    spans = tuple(GrantedSpan(span.start_s, span.end_s, span.rate_bits_per_s) for span in told)
    last_s, is_usable = 0.0, True
    for start_s, end_s, rate in spans:
        # Comparisons with NaN are false.
        is_usable = is_usable and last_s <= start_s < end_s < math.inf and rate > 0
        last_s = end_s
    if not is_usable:
        _logger.warning("%s has no usable spans: %s", what, spans)
        return None
    return spans
