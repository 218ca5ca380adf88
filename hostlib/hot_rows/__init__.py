# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which keys of a sparse model are hot, and where they lie in the hot rows of a switch.

Workers count the keys of sampled mini-batches (`FrequencySketch`). Nothing here uses the network.
"""

from .sketch import BatchSampler, FrequencySketch

__all__ = ["BatchSampler", "FrequencySketch"]
