# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`testbed rate` in the kernel: what waits in queues stays, and cut links are mended at it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.bmv2_topos.network.links import Shaper, add_shaper, interface_index
from switchfold.bmv2_topos.network.namespaces import call_with_route
from switchfold.bmv2_topos.topology.topology import Link

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
RATE = 100_000_000


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    records = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: records)
        topology = single_switch(2, rate_bits_per_s=RATE)
        with Testbed(topology, name=f"test-rates-{os.getpid()}", has_bridge=True) as made:
            yield made


def kernel_rates(testbed: Testbed, link: Link) -> list[int | None]:
    """Return what the kernel limits both ends of a link to, in bits/s; None: nothing."""
    return [kernel_rate(end.namespace, end.interface) for end in testbed.link_rates.ends(link)]


def kernel_rate(namespace: str, interface: str) -> int | None:
    def find(route: Any) -> int | None:
        index = interface_index(route, interface)
        for queue in route.get_qdiscs(index):
            if queue.get("kind") == "tbf":
                parms = queue.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")
                return 8 * int(parms["rate"])
        for each in route.get_classes(index):
            if each.get("kind") == "htb":
                parms = each.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_PARMS")
                return 8 * int(parms["rate"])
        return None

    return call_with_route(namespace, find)


def test_the_kernel_gets_each_rate(testbed: Testbed) -> None:
    link, other = testbed.topology.links
    rates = testbed.link_rates
    rates.set(link, 50_000_000)
    assert kernel_rates(testbed, link) == [50_000_000] * 2
    rates.set(link, 20_000_000, sender="h1")
    assert kernel_rates(testbed, link) == [20_000_000, 50_000_000]
    rates.set(link, None, sender="s1")
    assert kernel_rates(testbed, link) == [20_000_000, None]
    rates.set(link, 10_000_000, sender="s1")
    assert kernel_rates(testbed, link) == [20_000_000, 10_000_000]
    assert kernel_rates(testbed, other) == [RATE, RATE]
    assert testbed.status().changed_rates == (("h1", "s1", 20_000_000), ("s1", "h1", 10_000_000))
    rates.restore()
    assert kernel_rates(testbed, link) == [RATE, RATE]
    assert testbed.status().changed_rates == ()


def test_a_link_that_is_cut_is_mended_at_its_new_rate(testbed: Testbed) -> None:
    link = testbed.topology.links[0]
    testbed.link_rates.set(link, 40_000_000)
    testbed.cut_link("h1", "s1")
    testbed.link_rates.set(link, 30_000_000)
    assert kernel_rates(testbed, link) == [None, None]
    testbed.mend_link("h1", "s1")
    assert kernel_rates(testbed, link) == [30_000_000] * 2
    testbed.link_rates.restore(link)
    assert kernel_rates(testbed, link) == [RATE, RATE]


@pytest.mark.parametrize("shaper", ["tbf", "htb"])
def test_both_shapers_change(testbed: Testbed, shaper: Shaper) -> None:
    link = testbed.topology.links[1]
    (end, _) = testbed.link_rates.ends(link)
    testbed.link_rates.set(link, None)
    add_shaper(shaper, end.interface, RATE, namespace=end.namespace)
    testbed.link_rates.set(link, 25_000_000)
    assert kernel_rates(testbed, link) == [25_000_000] * 2
    testbed.link_rates.set(link, None)
    assert kernel_rates(testbed, link) == [None, None]
    testbed.link_rates.restore()
    assert kernel_rates(testbed, link) == [RATE, RATE]
