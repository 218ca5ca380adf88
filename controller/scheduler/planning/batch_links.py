# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which links several messages of one batch may use.

A search through plans reserves on these alone: in one plan, nobody looks twice at another link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..network import TransferNetwork
from ..transfers import TransferRequest
from .alike_hosts import AlikeHosts


def shared_links(
    network: TransferNetwork,
    ordered: Sequence[TransferRequest],
    alike: AlikeHosts,
    switches: Sequence[str],
) -> frozenset[str]:
    """Return the links on routes of a batch that are neither one host's own nor one update's.

    `alike` knows the idle hosts. Cost: O(updates x (hosts + switches)) look-ups of routes.
    """
    server = ordered[0].server
    pushes = Counter(request.worker for request in ordered)
    users: dict[str, str | None] = {}
    """The only worker whose routes use a link, None if others do."""
    for sender in (*alike.hosts, *switches):
        users |= dict.fromkeys(network.route(sender, server))
    for place, worker in enumerate(alike.workers, 1):
        routes = [found[place] for found in alike.routes.values()]
        routes.append(network.route(worker, server))
        routes += [network.route(worker, s) for s in switches if network.has_routes([worker], s)]
        for link in {link for route in routes for link in route}:
            users[link] = worker if users.setdefault(link, worker) == worker else None
    own = {link for host in alike.hosts for link in alike.own_links(host)}
    return frozenset(
        link
        for link, user in users.items()
        if link not in own and (user is None or pushes[user] > 1)
    )
