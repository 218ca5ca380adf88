# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Testbed: topologies, hosts in namespaces or plain processes, switches, workers."""

from .network.link_counters import LinkBytes, SwitchLinkBytes
from .processes.worker_runs import WorkerEndpoint, WorkerResult
from .status import TestbedStatus
from .testbed import Testbed
from .topology.fabrics import fat_tree, leaf_spine
from .topology.topology import Host, Link, Switch, SwitchLink, Topology, single_switch

__all__ = [
    "Host",
    "Link",
    "LinkBytes",
    "Switch",
    "SwitchLink",
    "SwitchLinkBytes",
    "Testbed",
    "TestbedStatus",
    "Topology",
    "WorkerEndpoint",
    "WorkerResult",
    "fat_tree",
    "leaf_spine",
    "single_switch",
]
