# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Testbed: topologies, hosts in namespaces or plain processes, switches, workers."""

from bmv2_topos.network.link_counters import LinkBytes, SwitchLinkBytes
from bmv2_topos.processes.worker_runs import WorkerEndpoint, WorkerResult
from bmv2_topos.status import TestbedStatus
from bmv2_topos.testbed import Testbed
from bmv2_topos.topology.fabrics import fat_tree, leaf_spine
from bmv2_topos.topology.topology import Host, Link, Switch, SwitchLink, Topology, single_switch

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
