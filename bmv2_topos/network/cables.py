# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Cuts and mends the links of a running testbed, as a pulled cable would."""

from __future__ import annotations

from ..state import Record
from ..topology.topology import Link, SwitchLink
from . import links
from .link_rates import LinkRates
from .network import cable_ends


def cut_cable(record: Record, one: str, other: str) -> None:
    """Let the link between two named nodes carry nothing, in both directions.

    Interfaces stay up, and no program is notified. ValueError in mode udp.
    """
    link = _cable(record, one, other)
    if link.name not in record.cut_links:
        record.cut_links.append(link.name)
        record.save()
    for namespace, interface, _ in cable_ends(record, link):
        links.cut_end(interface, namespace=namespace)


def mend_cable(record: Record, one: str, other: str) -> None:
    """Mend a link that was cut; nothing happens to one that is whole. ValueError in mode udp."""
    link = _cable(record, one, other)
    if link.name not in record.cut_links:
        return
    for end in LinkRates(record=record).ends(link):
        links.mend_end(end.interface, end.rate_bits_per_s, namespace=end.namespace)
    record.cut_links.remove(link.name)
    record.save()


def _cable(record: Record, one: str, other: str) -> Link | SwitchLink:
    link = record.topology.link_between(one, other)
    if record.mode == "udp":
        raise ValueError("mode udp has no cables to cut; choose mode veth")
    return link
