# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Choice of a scheme for each layer: cost model, rules, information book, prediction."""

from .best_scheme import three_way, two_way
from .book import InformationBook, LayerEntry, Place
from .cluster import Cluster
from .coordinator import Coordinator, CostModel, JobHosts
from .cost import HeaderFactors, NodeFloats, Scheme, busiest_floats, floats
from .layer import Layer

__all__ = [
    "Cluster",
    "Coordinator",
    "CostModel",
    "HeaderFactors",
    "InformationBook",
    "JobHosts",
    "Layer",
    "LayerEntry",
    "NodeFloats",
    "Place",
    "Scheme",
    "busiest_floats",
    "floats",
    "three_way",
    "two_way",
]
