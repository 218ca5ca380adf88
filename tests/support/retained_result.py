# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A result that peers fetch, where a test cares for who may fetch it alone."""

from __future__ import annotations

import numpy as np

from switchfold.hostlib.peers.results import RetainedResult

RESULT = RetainedResult(
    tensor=0,
    generation=1,
    members=(0, 1),
    dtype="int32",
    shape=(1,),
    operation="sum",
    values=np.full(1, 3, np.int32),
    exponents=np.empty(0, np.int32),
    contributors=np.full(1, 2, np.uint16),
    num_contributors=2,
)
