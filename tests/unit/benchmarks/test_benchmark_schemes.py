# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of schemes: its books, and what its table says."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.schemes.schemes import VECTORS, Vector, write_book
from benchmarks.schemes.schemes_report import describe_row, summary
from switchfold.bmv2_topos import single_switch
from switchfold.hostlib.schemes import Coordinator


def row(ratio: float, difference: float) -> dict[str, Any]:
    scheme = {
        "seconds": 0.02,
        "predicted_s": 0.021,
        "largest_difference": difference,
        "busy_cores": 1.5,
    }
    return {
        "vector": "64x48 K=4 P=2",
        "rate": "6M",
        "schemes": {"ps": scheme, "ina": scheme},
        "two_way": "ps",
        "chosen": "ina",
        "best": "ps",
        "ratio": ratio,
        "with_copies": {"chosen": "sfb-copied", "best": "ps", "ratio": 1.02},
    }


def test_table_and_summary() -> None:
    line = describe_row(row(1.04, -0.013))
    assert line == (
        "| 64x48 K=4 P=2 | 6M | 20 (21) | - | - | 20 (21) | PS | INA | PS | 1.04 |"
        " SFB multicast, PS, 1.02 | -1.3 %, -1.3 % | 1.5, 1.5 |"
    )
    failed = {"vector": "64x48 K=4 P=2", "rate": "6M", "error": "worker 3 ended"}
    assert "not measured: worker 3 ended" in describe_row(failed)
    found = summary([row(1.04, -0.013), row(1.0, 0.019), failed])
    assert found.startswith("chosen / best at most 1.04 (aim 1.1); bytes within 1.9 %")
    assert summary([failed]) == "nothing was measured"


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_shards_hold_equal_parts_of_the_layer(vector: Vector) -> None:
    topology = single_switch(vector.workers)
    book = write_book(vector, topology, 1e11)
    forced = Coordinator(
        [book.entries[0].layer], book.cluster, scheme="ps", pair_bytes=book.pair_bytes
    ).book
    values = forced.shard_values()
    assert max(values) - min(values) <= vector.workers
    ports = [place.port for place in (*book.servers, *book.workers)]
    assert len(set(ports)) == 2 * vector.workers
