# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The cost model gives every number of the tables on which it is based."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.hostlib.errors import SchemeError
from switchfold.hostlib.parameter_server import PAIR_BYTES
from switchfold.hostlib.schemes import (
    Cluster,
    Coordinator,
    HeaderFactors,
    InformationBook,
    Layer,
    Scheme,
    busiest_floats,
    floats,
    three_way,
    two_way,
)
from switchfold.hostlib.schemes.cost import break_even_workers, multicast_floats
from switchfold.hostlib.schemes.models import VGG19
from switchfold.hostlib.schemes.tcp import contention
from switchfold.hostlib.schemes.wire_cost import factor_time, goes_by_multicast, seconds, wire_bytes

DOCS = Path(__file__).resolve().parents[3] / "docs"
PS, SFB, INA, ADAM = Scheme.PS, Scheme.SFB, Scheme.INA, Scheme.ADAM


Choice = Callable[[Layer, Cluster], Scheme]


def fc(rows: int, columns: int) -> Layer:
    return Layer(name=f"fc-{rows}x{columns}", kind="fc", rows=rows, columns=columns)


def together(workers: int, batch: int = 1, **facts: object) -> Cluster:
    """As many shards as workers, on the same hosts."""
    return Cluster(num_workers=workers, batch=batch).replace(**facts)


def apart(workers: int, servers: int = 1, batch: int = 1) -> Cluster:
    return Cluster(num_workers=workers, num_servers=servers, is_colocated=False, batch=batch)


def test_the_worked_example_of_4096_by_4096() -> None:
    layer, both, separate = fc(4096, 4096), together(8, 32), apart(8, 8, 32)
    assert floats(PS, layer, separate).worker == floats(PS, layer, separate).server == 33_554_432
    assert floats(PS, layer, both).both == 58_720_256
    assert floats(SFB, layer, both).worker == 3_670_016
    adam = floats(ADAM, layer, apart(8, 1, 32))
    assert (adam.server, adam.worker) == (136_314_880, 17_039_360)
    assert floats(ADAM, layer, both).both == 119_275_520


def test_payload_of_64_by_48_with_one_server() -> None:
    layer = fc(64, 48)
    ps = floats(PS, layer, apart(4))
    assert (ps.worker, ps.server) == (6_144, 24_576)
    assert floats(INA, layer, apart(4)).worker == 6_144
    assert floats(INA, layer, apart(4)).server == 0
    before_ps = floats(Scheme.INA_PS, layer, apart(4))
    assert (before_ps.worker, before_ps.server) == (6_144, 6_144)
    adam = floats(ADAM, layer, apart(4, batch=4))
    assert (adam.worker, adam.server) == (3_520, 14_080)
    assert multicast_floats(ADAM, layer, apart(4, batch=4)).server == 4_864
    assert multicast_floats(PS, layer, apart(4)).server == 5 * 3_072


def test_payload_of_64_by_48_on_four_hosts() -> None:
    layer = fc(64, 48)
    assert floats(PS, layer, together(4)).both == 9_216
    assert floats(INA, layer, together(4)).both == 6_144
    assert floats(Scheme.INA_PS, layer, together(4)).both == 7_680
    assert multicast_floats(PS, layer, together(4)).both == 3_072 * 10 / 4
    for batch, plain, copied in ((4, 2_688, 1_792), (16, 10_752, 7_168)):
        assert floats(SFB, layer, together(4, batch)).worker == plain
        with_multicast = floats(SFB, layer, together(4, batch, has_multicast=True))
        assert with_multicast == multicast_floats(SFB, layer, together(4, batch))
        assert with_multicast.worker == copied
        assert with_multicast.worker_sent == batch * 112


def test_formulas_with_other_numbers_of_shards() -> None:
    matrix = 64 * 48
    for workers, servers in ((8, 2), (4, 8), (6, 3)):
        both = Cluster(num_workers=workers, num_servers=servers)
        layer = fc(64, 48)
        assert floats(PS, layer, both).both == 2 * matrix * (workers + servers - 2) / servers
        assert floats(PS, layer, apart(workers, servers)).server == 2 * workers * matrix / servers
        expected = matrix * (workers + 2 * servers - 2) / servers
        assert multicast_floats(PS, layer, both).both == pytest.approx(expected, rel=1e-15)
        expected = 2 * matrix * (servers + 1) / servers
        assert floats(Scheme.INA_PS, layer, both).both == pytest.approx(expected, rel=1e-15)


def test_break_even_numbers_of_workers() -> None:
    sizes = ((25088, 4096), (4096, 4096), (4096, 1000), (4096, 21841), (2048, 1000))
    for (rows, columns), against_ps, against_ina in zip(
        sizes, (220, 128, 50, 215, 42), (111, 65, 26, 108, 22), strict=True
    ):
        layer, cluster = fc(rows, columns), together(2, 32)
        # The table rounds some figures and cuts others.
        point = float(break_even_workers(layer, cluster, INA))
        assert against_ina in (int(point), round(point))
        copied = cluster.replace(has_multicast=True)
        assert break_even_workers(layer, copied, INA) == break_even_workers(layer, cluster)
        point = break_even_workers(layer, cluster)
        assert against_ps in (int(point), round(point))
        assert two_way(layer, together(int(point), 32)) is SFB
        assert two_way(layer, together(int(point) + 1, 32)) is PS
    head, cluster = fc(1024, 1000), together(2, 128)
    assert float(break_even_workers(head, cluster)) == pytest.approx(7.9, abs=0.01)
    assert round(break_even_workers(head, cluster, INA)) == 5
    assert break_even_workers(fc(4096, 4096), cluster.replace(batch=32)) == Fraction(128)


VECTORS = [
    (64, 48, 4, 2, 6_144, 896, 6_144, SFB, SFB),
    (64, 48, 4, 4, 9_216, 2_688, 6_144, SFB, SFB),
    (64, 48, 16, 4, 9_216, 10_752, 6_144, PS, INA),
    (64, 48, 16, 3, 8_192, 7_168, 6_144, SFB, INA),
    (32, 16, 8, 4, 1_536, 2_304, 1_024, PS, INA),
    (1024, 1000, 128, 4, 3_072_000, 1_554_432, 2_048_000, SFB, SFB),
    (1024, 1000, 128, 8, 3_584_000, 3_627_008, 2_048_000, PS, INA),
    (4096, 4096, 32, 8, 58_720_256, 3_670_016, 33_554_432, SFB, SFB),
    (4096, 1000, 32, 32, 15_872_000, 10_110_464, 8_192_000, SFB, INA),
]


@pytest.mark.parametrize("vector", VECTORS)
def test_vectors(vector: tuple[int, int, int, int, int, int, int, Scheme, Scheme]) -> None:
    rows, columns, batch, workers, ps, sfb, ina, two, three = vector
    layer, cluster = fc(rows, columns), together(workers, batch)
    assert busiest_floats(PS, layer, cluster) == ps
    assert busiest_floats(SFB, layer, cluster) == sfb
    assert busiest_floats(INA, layer, cluster) == ina
    assert two_way(layer, cluster) is two
    assert three_way(layer, cluster, busiest_floats) is three


def test_documented_vectors_are_those_computed() -> None:
    text = (DOCS / "hybrid.md").read_text("utf-8")
    lines = text[text.index("<!-- vectors -->") :].splitlines()[4:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows[: len(VECTORS)] == [
        [
            f"{rows}x{columns}",
            *(str(number) for number in (batch, workers, ps, sfb, ina)),
            *(two.value.upper(), three.value.upper()),
        ]
        for rows, columns, batch, workers, ps, sfb, ina, two, three in VECTORS
    ]


def test_convolutions_are_never_broadcast_and_need_slots_for_the_switch() -> None:
    layer = Layer(name="conv", kind="conv", num_values=300 * 1_000)
    for workers in (3, 4, 32):
        cluster = together(workers)
        assert two_way(layer, cluster) is PS
        for cost in (busiest_floats, seconds):
            assert three_way(layer, cluster, cost) is INA
            assert three_way(layer, cluster.replace(slots=0), cost) is PS
            assert three_way(layer, cluster.replace(has_switch=False), cost) is PS
    with pytest.raises(SchemeError, match=r"layer conv is of kind 'conv'.*sfb cannot carry it"):
        floats(SFB, layer, together(4))
    with pytest.raises(SchemeError, match="adam cannot carry it"):
        multicast_floats(ADAM, layer, together(4))


def test_boundary_with_header_factors() -> None:
    layer, cluster = fc(64, 48), together(3, 16)
    factors = HeaderFactors(ina=1.20, tcp=1.04)
    assert round(factors(INA, layer, cluster)) == 7_373
    assert round(factors(SFB, layer, cluster)) == 7_455
    assert three_way(layer, cluster, factors) is INA
    # A header larger by 2 % of the payload turns it.
    assert three_way(layer, cluster, HeaderFactors(ina=1.22, tcp=1.04)) is SFB


def vgg19_megafloats(choose: Choice, cluster: Cluster) -> float:
    """Floats of the busiest node in millions.

    The table counts matrices and convolutions; the 9,192 biases of fc6 to fc8 are not in it.
    """
    layers = [layer for layer in VGG19.layers if layer.kind != "other"]
    counts = [busiest_floats(choose(layer, cluster), layer, cluster) for layer in layers]
    return round(sum(counts) / 1e6, 1)


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (4, (431.0, 68.2, 287.3, 48.2, 45.5)),
        (8, (502.8, 89.1, 287.3, 59.1, 50.9)),
        (16, (538.7, 115.9, 287.3, 80.8, 61.8)),
        (32, (556.7, 161.9, 287.3, 122.4, 83.5)),
    ],
)
def test_whole_vgg19(workers: int, expected: tuple[float, ...]) -> None:
    def always_ps(layer: Layer, cluster: Cluster) -> Scheme:
        return PS

    def always_ina(layer: Layer, cluster: Cluster) -> Scheme:
        return INA

    def three(layer: Layer, cluster: Cluster) -> Scheme:
        return three_way(layer, cluster, busiest_floats)

    cluster = together(workers, 32)
    found = [vgg19_megafloats(each, cluster) for each in (always_ps, two_way, always_ina, three)]
    found.append(vgg19_megafloats(three, cluster.replace(has_multicast=True)))
    assert tuple(found) == expected


def test_fc8_of_vgg19_flips_at_32_workers() -> None:
    fc8 = next(layer for layer in VGG19.layers if layer.name == "fc8")
    assert three_way(fc8, together(16, 32), busiest_floats) is SFB
    assert three_way(fc8, together(32, 32), busiest_floats) is INA


def test_ties_go_to_ps_then_ina_then_sfb() -> None:
    layer, cluster = fc(64, 48), together(4)

    def same(scheme: Scheme, layer: Layer, cluster: Cluster) -> float:
        return 1.0

    def dear_ps(scheme: Scheme, layer: Layer, cluster: Cluster) -> float:
        return 2.0 if scheme is PS else 1.0

    assert three_way(layer, cluster, same) is PS
    assert three_way(layer, cluster, dear_ps) is INA


def test_wire_bytes_of_a_switch_count_frames() -> None:
    layer = fc(64, 48)
    wide = wire_bytes(INA, layer, together(4))
    assert wide.worker_sent == wide.worker_received == (9 + 1) * 1494
    narrow = wire_bytes(INA, layer, together(4, values_per_packet=32))
    assert narrow.worker_sent == (96 + 3) * 214
    large = Layer(name="large", kind="other", num_values=35_200_000)
    ratio = wire_bytes(INA, large, together(4)).worker_sent / large.num_bytes
    assert ratio == pytest.approx(1494 / 1408 * (1 + 1 / 352), rel=1e-4)


def test_wire_bytes_of_streams_count_segments_and_acknowledgements() -> None:
    layer = fc(1024, 1000)
    sfb = wire_bytes(SFB, layer, together(4, 128))
    payload = 4 * floats(SFB, layer, together(4, 128)).worker_sent
    assert sfb.worker_sent / payload == pytest.approx((1514 + 33) / 1448, rel=2e-3)
    ps = wire_bytes(PS, layer, apart(4))
    assert ps.server_received == pytest.approx(4 * ps.worker_sent)
    both = wire_bytes(PS, layer, together(4))
    assert both.worker_sent == both.worker_received


def test_wire_bytes_of_multicast_factors_are_sent_once() -> None:
    layer, cluster = fc(64, 48), together(4, 16, has_multicast=True)
    node = wire_bytes(SFB, layer, cluster)
    frames = math.ceil((16 * 112 + 4) / 352) + 1  # and a report
    assert (node.worker_sent, node.worker_received) == (frames * 1494, 3 * frames * 1494)
    plain = wire_bytes(SFB, layer, cluster.replace(has_multicast=False))
    assert node.worker_sent < plain.worker_sent / 2
    # The next block of the only other worker says what has come.
    assert wire_bytes(SFB, layer, cluster.replace(num_workers=2)).worker_sent == 6 * 1494
    # Blocks of several windows: reports open them.
    large = wire_bytes(SFB, fc(1024, 1000), together(4, 128, has_multicast=True))
    chunks = math.ceil((128 * 2024 + 4) / 352)
    assert large.worker_sent == (chunks + 1 + 1.5 * (chunks // (256 // 3))) * 1494


def test_few_slots_and_long_rtts_slow_the_switch() -> None:
    layer, cluster = fc(1024, 1000), together(4, slots=18, round_trip_s=0.01)
    chunks = math.ceil(1_024_000 / 352)
    assert seconds(INA, layer, cluster) == pytest.approx(chunks / 16 * 0.01 + 2 * 0.01)
    assert three_way(layer, cluster.replace(batch=1024)) is PS
    many = cluster.replace(batch=1024, slots=1024, round_trip_s=1e-4)
    assert three_way(layer, many) is INA


def test_rebuilding_costs_time_where_it_is_slow() -> None:
    layer, cluster = fc(1024, 1000), together(4, 32, link_bits_per_s=1e9)
    assert three_way(layer, cluster) is SFB
    slow = cluster.replace(flops_per_s=1e9)
    extra = seconds(SFB, layer, slow) - seconds(SFB, layer, cluster)
    assert extra == pytest.approx(2 * 32 * 1_024_000 * 3 / 1e9)
    assert three_way(layer, slow) is INA


def test_factors_are_multicast_layer_by_layer_where_that_is_faster() -> None:
    cluster = together(4, 128, link_bits_per_s=20e6, has_multicast=True)
    large, small = fc(1024, 1000), fc(16, 12)
    # Long streams that share a link make less of it than frames in a window.
    assert goes_by_multicast(large, cluster)
    assert not goes_by_multicast(large, cluster.replace(has_multicast=False))
    # Blocks of a frame or two do not fill it, and a report of it is as large as they are.
    assert not goes_by_multicast(small, cluster)
    assert not goes_by_multicast(large, cluster.replace(values_per_packet=32))
    # On fast links windows of 85 chunks wait for reports, a millisecond each.
    fast = cluster.replace(link_bits_per_s=10e9, round_trip_s=200e-6)
    assert not goes_by_multicast(large, fast)
    windows = math.ceil((128 * 2024 + 4) / 352) // 85
    waiting = factor_time(large, fast, is_copied=True).transfer_s
    assert waiting == pytest.approx(windows * 1.2e-3)
    for layer in (large, small):
        times = [factor_time(layer, cluster, is_copied=each).seconds for each in (True, False)]
        assert seconds(SFB, layer, cluster) == min(times)
    book = Coordinator([large, small], cluster, scheme="sfb").book
    assert [entry.is_copied for entry in book.entries] == [True, False]
    assert InformationBook.from_json(book.to_json()) == book


def test_long_streams_that_share_a_card_take_longer_than_their_bytes() -> None:
    assert contention(1 << 20, 1) == 1  # nobody to share with
    assert contention(10 * 1448, 7) == 1  # leaves at once
    assert contention(20 * 1448, 7) == pytest.approx(1 + (1 / 0.92 - 1) / 2)
    layer, cluster = fc(1024, 1000), together(4, link_bits_per_s=20e6, round_trip_s=0.0)
    node = wire_bytes(PS, layer, cluster)
    alone = 8 * node.busiest / 20e6
    assert seconds(PS, layer, cluster) / alone == pytest.approx(contention(1_024_000, 3))


def test_one_worker_exchanges_nothing() -> None:
    for scheme in (PS, SFB, INA):
        assert busiest_floats(scheme, fc(8, 8), together(1)) == 0
        assert seconds(scheme, fc(8, 8), together(1)) == 0


def num_pairs(layer: Layer, cluster: Cluster) -> int:
    """KV pairs of a layer on each server."""
    return math.ceil(layer.num_bytes / cluster.num_servers / PAIR_BYTES)


def test_two_pairs_may_be_faster_than_one() -> None:
    """A dedicated server answers the first pair while the second one is on its way."""
    cluster = apart(2, 2)
    one, two = fc(568, 1843), fc(569, 1843)
    assert (num_pairs(one, cluster), num_pairs(two, cluster)) == (1, 2)
    assert busiest_floats(PS, two, cluster) > busiest_floats(PS, one, cluster)
    assert seconds(PS, two, cluster) < 0.8 * seconds(PS, one, cluster)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3_000), st.integers(1, 3_000)),
    batch=st.integers(1, 300),
    workers=st.integers(2, 32),
    slots=st.sampled_from([0, 2, 64, 512]),
    placement=st.tuples(st.booleans(), st.booleans()),
)
def test_choice_is_the_least_and_costs_grow(
    shape: tuple[int, int], batch: int, workers: int, *, slots: int, placement: tuple[bool, bool]
) -> None:
    layer, wider = fc(*shape), fc(shape[0] + 1, shape[1])
    cluster = Cluster(
        num_workers=workers,
        is_colocated=placement[0],
        has_multicast=placement[1],
        batch=batch,
        slots=slots,
    )
    more_workers = cluster.replace(num_workers=workers + 1, num_servers=workers)
    possible = [PS, SFB] + [INA] * (slots > 0)
    for cost in (busiest_floats, seconds):
        chosen = three_way(layer, cluster, cost)
        assert chosen in possible
        assert cost(chosen, layer, cluster) == min(cost(s, layer, cluster) for s in possible)
        assert cost(chosen, layer, cluster) <= cost(two_way(layer, cluster), layer, cluster)
        for scheme in possible:
            own = cost(scheme, layer, cluster)
            assert own > 0
            if num_pairs(wider, cluster) == num_pairs(layer, cluster):  # more pairs overlap more
                assert cost(scheme, wider, cluster) >= own
            assert cost(scheme, layer, cluster.replace(batch=batch + 1)) >= own
            assert cost(scheme, layer, more_workers) >= own
            slower = cluster.replace(link_bits_per_s=cluster.link_bits_per_s / 10)
            assert cost(scheme, layer, slower) >= own


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a", "kind": "linear"}, "kind 'linear'; choose fc, conv, other"),
        ({"name": "a", "kind": "fc", "rows": 3, "columns": 4, "num_values": 16}, "its bias as"),
        ({"name": "a", "kind": "conv"}, "has no values"),
        ({"name": "a", "kind": "fc", "rows": -3, "columns": 4}, "negative"),
        ({"name": "a", "kind": "fc", "rows": "3"}, "rows is '3', which is no number"),
        ({"name": "a", "kind": "fc", "size": 3}, "unknown field 'size'"),
        ({"kind": "fc"}, "it has no name"),
        ({"name": "a", "rows": 3}, "layer a: it has no kind"),
        (7, "described by 7"),
    ],
)
def test_bad_layers_are_refused(fields: object, message: str) -> None:
    with pytest.raises(SchemeError, match=message):
        Layer.from_dict(fields)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "does not say num_workers"),
        ({"num_workers": 0}, "num_workers is 0; it must be at least 1"),
        ({"num_workers": 2.5}, "num_workers of the cluster is 2.5, which is no int"),
        ({"num_workers": 2, "wokers": 3}, "unknown fact 'wokers'"),
        ({"num_workers": 2, "slots": -1}, "slots is -1; write 0 or more"),
        ({"num_workers": 2, "link_bits_per_s": math.nan}, "must be above 0"),
        ({"num_workers": 2, "round_trip_s": -1.0}, "write 0 or more seconds"),
        ({"num_workers": 2, "has_switch": 1}, "has_switch of the cluster is 1, which is no bool"),
    ],
)
def test_bad_clusters_are_refused(facts: object, message: str) -> None:
    with pytest.raises(SchemeError, match=message):
        Cluster.from_dict(facts)


def test_descriptions_survive_a_round_trip() -> None:
    layer, cluster = fc(5, 7), together(3, 16, slots=7)
    assert Layer.from_dict(layer.as_dict()) == layer
    assert Cluster.from_dict(cluster.as_dict()) == cluster
