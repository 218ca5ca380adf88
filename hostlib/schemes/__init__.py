# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which scheme carries which layer: cost model, choice, information book, prediction."""

from hostlib.schemes.best_scheme import three_way, two_way
from hostlib.schemes.book import InformationBook, LayerEntry, Place
from hostlib.schemes.cluster import Cluster
from hostlib.schemes.coordinator import Coordinator
from hostlib.schemes.cost import HeaderFactors, NodeFloats, Scheme, busiest_floats, floats
from hostlib.schemes.layer import Layer

__all__ = [
    "Cluster",
    "Coordinator",
    "HeaderFactors",
    "InformationBook",
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
