# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Links that lose frames in one direction or both, by chance, without an error at the sender.

A program of the kernel's packet filter at the sender's end draws a random number for each frame.
It needs `tc` of iproute2, but not netem.
"""

from __future__ import annotations

import subprocess
from typing import Final

from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.network.namespaces import namespace_path
from switchfold.bmv2_topos.topology.topology import SwitchLink

_LOAD_RANDOM: Final = f"32 0 0 {0xFFFFF000 + 56}"  # linux/filter.h: SKF_AD_OFF + SKF_AD_RANDOM
_PASS, _CONSUME = "6 0 0 0", "6 0 0 4"  # linux/pkt_cls.h: TC_ACT_OK, TC_ACT_STOLEN


def lose_frames(testbed: Testbed, sender: str, receiver: str, share: float) -> None:
    """Let the link lose this share of the frames that `sender` sends to `receiver`."""
    namespace, interface = _end(testbed, sender, receiver)
    least = min(round(share * 2**32), 2**32 - 1)
    program = ",".join(["4", _LOAD_RANDOM, f"53 0 1 {least}", _PASS, _CONSUME])
    _tc(namespace, "qdisc", "replace", "dev", interface, "clsact")
    _tc(
        namespace,
        *("filter", "add", "dev", interface, "egress", "protocol", "all"),
        *("bpf", "da", "bytecode", program),
    )


def carry_all(testbed: Testbed, sender: str, receiver: str) -> None:
    """Undo `lose_frames`."""
    namespace, interface = _end(testbed, sender, receiver)
    _tc(namespace, "qdisc", "del", "dev", interface, "clsact")


def _end(testbed: Testbed, node: str, other: str) -> tuple[str, str]:
    """Return namespace and interface of a node's end of its link to another node."""
    topology = testbed.topology
    link = topology.link_between(node, other)
    nodes = {each.name: each for each in (*topology.hosts, *topology.switches)}
    namespace = testbed.namespace_of(nodes[node])
    assert namespace is not None, "mode veth"
    if isinstance(link, SwitchLink):
        return namespace, link.a_interface if link.a == node else link.b_interface
    return namespace, link.host_interface if link.host == node else link.switch_interface


def _tc(namespace: str, *words: str) -> None:
    inside = ["nsenter", f"--net={namespace_path(namespace)}"]
    done = subprocess.run(
        [*inside, "tc", *words], capture_output=True, text=True, check=False, timeout=30
    )
    if done.returncode:
        raise RuntimeError(f"tc {' '.join(words)} in {namespace}: {done.stderr.strip()}")
