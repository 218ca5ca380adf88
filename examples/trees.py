# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Four workers under two leaves and two spines: trees of switches sum the workers' arrays.

The example needs a C compiler, but no privileges: switches, controller and workers are processes,
and links are loopback ports. This file makes the testbed; with the argument `worker` it runs one of
the workers.
"""

import sys

import numpy as np
from numpy.typing import NDArray

from switchfold.bmv2_topos import Testbed, leaf_spine
from switchfold.hostlib.config import join_from_environment


def array_of(worker_id: int) -> NDArray[np.int32]:
    return np.random.default_rng(worker_id).integers(-1000, 1000, 200_000, np.int32)


def work() -> None:
    """Run one worker: sum an array with the others."""
    with join_from_environment() as session:
        view = session.view
        total = session.allreduce(array_of(view.worker_id)).result()
        exact = sum(array_of(i) for i in range(view.num_workers))
        print(f"worker {view.worker_id}: {len(view.trees)} trees, exact: {(total == exact).all()}")


def main() -> None:
    # An uplink has half the rate of a host's link, so a tree over each spine fills both uplinks.
    fabric = leaf_spine(2, 2, 2, uplink_rate_bits_per_s=50_000_000)
    with Testbed(fabric, mode="udp") as testbed:
        for done in testbed.run_workers([sys.executable, __file__, "worker"], timeout_s=60):
            print(done.output, end="")
        print(f"an array has {array_of(0).nbytes} bytes; bytes on the links between switches:")
        for link in testbed.switch_link_bytes():
            print(f"{link.a} - {link.b}: {link.from_a_bytes} up, {link.from_b_bytes} down")


if __name__ == "__main__":
    work() if "worker" in sys.argv else main()
