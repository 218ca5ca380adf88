# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which keys of a sparse model are hot, and where they lie in the hot rows of a switch.

Workers count the keys of sampled mini-batches (`FrequencySketch`), and keep some whole
(`KeyBatches`). One process adds the counts up, chooses the hot set (`HotSetTracker`), and gives its
keys places in rows (`plan_layout`, `refresh_layout`). Workers look the places up in the
`LaneLayout`. Nothing here uses the network.
"""

from .hot_set import Coverage, HotSet, HotSetChange, HotSetOptions, HotSetTracker
from .key_batches import KeyBatches
from .key_places import HotDefinition, KeyPlaces, PlannedTable
from .lane_layout import EMPTY, LaneLayout, RowFill, RowPlaces, RowShape
from .row_planning import PlannedLayout, RefreshedLayout, plan_layout, refresh_layout
from .sketch import BatchSampler, FrequencySketch

__all__ = [
    "EMPTY",
    "BatchSampler",
    "Coverage",
    "FrequencySketch",
    "HotDefinition",
    "HotSet",
    "HotSetChange",
    "HotSetOptions",
    "HotSetTracker",
    "KeyBatches",
    "KeyPlaces",
    "LaneLayout",
    "PlannedLayout",
    "PlannedTable",
    "RefreshedLayout",
    "RowFill",
    "RowPlaces",
    "RowShape",
    "plan_layout",
    "refresh_layout",
]
