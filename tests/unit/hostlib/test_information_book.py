# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The coordinator's book: one place per parameter, the same on all hosts, checked when read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from switchfold.hostlib.errors import InformationBookError, SchemeError
from switchfold.hostlib.schemes import (
    Cluster,
    Coordinator,
    InformationBook,
    JobHosts,
    Layer,
    Scheme,
)
from switchfold.hostlib.schemes.models import VGG19

LAYERS = (
    Layer(name="conv", kind="conv", num_values=3_000_000),
    Layer(name="fc1", kind="fc", rows=4096, columns=4096),
    Layer(name="fc1.bias", kind="other", num_values=4096),
)
HOSTS = [(f"10.0.0.{number}", 0) for number in range(1, 5)]


def coordinator(**options: Any) -> Coordinator:
    cluster = options.pop("cluster", Cluster(num_workers=4, batch=32))
    return Coordinator(LAYERS, cluster, hosts=JobHosts(job="train", workers=HOSTS), **options)


def test_all_hosts_print_the_same_hash() -> None:
    book = Coordinator(VGG19.layers, Cluster(num_workers=8, batch=32), scheme="two-way").book
    code = (
        "import sys\n"
        "from switchfold.hostlib.schemes import *\n"
        "from switchfold.hostlib.schemes.models import VGG19\n"
        "made = Coordinator(VGG19.layers, Cluster(num_workers=8, batch=32), scheme='two-way')\n"
        "print(made.book.hash, InformationBook.from_json(sys.stdin.read()).hash)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=book.to_json(),
        env={**os.environ, "PYTHONHASHSEED": "1"},  # here it is another one
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [book.hash, book.hash]


def test_each_parameter_is_in_one_place_and_shards_are_even() -> None:
    cluster = Cluster(num_workers=8, num_servers=8, batch=32)
    book = Coordinator(VGG19.layers, cluster, scheme="ps").book
    values = book.shard_values()
    assert sum(values) == VGG19.num_values
    assert 4 * (max(values) - min(values)) <= book.pair_bytes
    pairs = sum(len(entry.pairs) for entry in book.entries)
    # Each layer's last pair may be smaller.
    assert 0 <= pairs - VGG19.num_values * 4 / book.pair_bytes <= len(VGG19.layers)
    mixed = Coordinator(VGG19.layers, cluster).book
    stored = {entry.layer.name for entry in mixed.entries if entry.pairs}
    ps, sfb, ina = (mixed.layers_of(scheme) for scheme in (Scheme.PS, Scheme.SFB, Scheme.INA))
    assert stored == {layer.name for layer in ps}
    assert {layer.name for layer in sfb} == {"fc6", "fc7", "fc8"}
    assert len(ps) + len(sfb) + len(ina) == len(VGG19.layers)
    assert sum(mixed.shard_values()) == sum(layer.num_values for layer in ps)


def test_ports_are_distinct_and_shards_live_with_workers() -> None:
    book = coordinator().book
    ports = [place.port for place in (*book.servers, *book.workers)]
    assert len(set(ports)) == 8
    assert [place.address for place in book.servers] == [host for host, _ in HOSTS]
    given = [(host, 21400 + number) for number, (host, _) in enumerate(HOSTS)]
    mixed = Coordinator(LAYERS, Cluster(num_workers=4), hosts=JobHosts(workers=given)).book
    assert [tuple(place) for place in mixed.workers] == given
    assert len({place.port for place in (*mixed.servers, *mixed.workers)}) == 8


def test_query_and_best_scheme() -> None:
    made = coordinator()
    assert made.best_scheme("fc1") is Scheme.SFB
    assert made.best_scheme("conv") is Scheme.INA
    assert made.query("fc1").pairs == ()
    assert made.book.worker_bit(3) == 8
    with pytest.raises(SchemeError, match="no layer 'fc2'; did you mean 'fc1'"):
        made.query("fc2")


def test_schemes_can_be_asked_for() -> None:
    assert coordinator(scheme="two-way").best_scheme("conv") is Scheme.PS
    adam = coordinator(scheme="adam")
    assert [adam.best_scheme(layer.name).value for layer in LAYERS] == ["ps", "adam", "ps"]
    assert len(adam.query("fc1").shards) == 1
    mapped = coordinator(scheme={"fc1": "ina", "conv": Scheme.PS})
    assert [mapped.best_scheme(layer.name).value for layer in LAYERS][:2] == ["ps", "ina"]
    for scheme, message in (
        ("fast", "no scheme 'fast'; choose auto"),
        (Scheme.INA_PS, "no scheme"),
        ({"fc9": "ps"}, "for 'fc9', but no layer is called that"),
        ({"conv": "sfb"}, "sfb cannot carry it"),
    ):
        with pytest.raises(SchemeError, match=message):
            coordinator(scheme=scheme)
    with pytest.raises(SchemeError, match=r"too few free slots \(0\)"):
        coordinator(scheme="ina", cluster=Cluster(num_workers=4, slots=0))


def test_changes_of_the_cluster_start_a_new_epoch() -> None:
    made = coordinator()
    first = made.book
    assert made.change() is first
    assert made.change(slots=first.cluster.slots) is first
    without = made.change(slots=0)
    assert (without.epoch, without.best_scheme("conv")) == (2, Scheme.PS)
    assert without.hash != first.hash
    more = made.change(workers=[*HOSTS, ("10.0.0.5", 0)], slots=512)
    assert (more.epoch, len(more.workers), len(more.servers)) == (3, 5, 5)
    assert made.change(batch=4096).best_scheme("fc1") is Scheme.INA
    fewer = made.change(num_servers=2)
    assert (fewer.epoch, len(fewer.servers)) == (5, 2)
    with pytest.raises(SchemeError, match="places of 1 workers for a cluster of 5"):
        made.change(workers=[HOSTS[0]], num_workers=5)
    assert made.book is fewer
    assert made.change(num_servers=2) is fewer


def test_book_survives_a_round_trip() -> None:
    for scheme in ("auto", "ps", "adam"):
        book = coordinator(scheme=scheme).book
        read = InformationBook.from_json(book.to_json())
        assert read == book
        assert read.hash == book.hash
        read.check_same(book.hash, "worker 1")
    with pytest.raises(InformationBookError, match="worker 1 has an information book with hash"):
        book.check_same("0" * 16, "worker 1")
    of_model = Coordinator(VGG19.layers, Cluster(num_workers=2)).book
    assert InformationBook.from_json(of_model.to_json()).hash == of_model.hash


CONV = ("layers", 0)


def damage(path: tuple[str | int, ...], change: Any) -> str:
    """A book with another value at a place: REMOVE takes it away, a list of one is appended."""
    content: Any = json.loads(coordinator(scheme="ps", pair_bytes=4_000_000).book.to_json())
    holder = content
    for step in path[:-1]:
        holder = holder[step]
    if change is REMOVE:
        del holder[path[-1]]
    elif isinstance(change, Append):
        holder[path[-1]].append(change.value or holder[path[-1]][0])
    else:
        holder[path[-1]] = change
    return json.dumps(content)


REMOVE = object()


class Append(NamedTuple):
    value: object = None
    """None: the first one again."""


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (("epoch",), 7, "changed in transit"),
        (("hash",), "x", "changed in transit"),
        (("version",), 1, "of version 1"),
        (("epoch",), 0, "epoch 0"),
        (("job",), REMOVE, "malformed information book: KeyError"),
        (("layers",), [3], "malformed"),
        (("pair_bytes",), "2", "'2' is no whole number"),
        (("cluster", "num_workers"), 0, "num_workers is 0"),
        (("servers", 3), REMOVE, "places of 3 shards for a cluster of 4"),
        (("workers",), Append(["h", 1]), "places of 5 workers"),
        (("workers", 0), ["h", 70000], "port 70000"),
        (("workers", 0), ["10.0.0.2", 21405], "is the place of 2"),
        (("layers",), Append(), "layer conv is in the book 2 times"),
        ((*CONV, "pairs", 2), REMOVE, "conv: 2000000 of 3000000 values"),
        ((*CONV, "pairs", 0), REMOVE, "expected pair 0 from 0 on"),
        ((*CONV, "pairs", 0, 1), 9, "on shard 9; there are 4"),
        ((*CONV, "pairs", 1, 1), 0, "differ by more than one pair"),
        ((*CONV, "scheme"), "sfb", "no factors for sfb"),
        ((*CONV, "scheme"), "ina", "is on shards"),
        ((*CONV, "scheme"), "fast", "malformed"),
        ((*CONV, "is_copied"), True, "no switch multicasts what ps sends"),
        (("layers", 1, "scheme"), "adam", "adam, but is on several"),
        (("cluster", "slots"), -1, "slots is -1; write 0 or more"),
    ],
)
def test_bad_books_are_refused(path: tuple[str | int, ...], change: Any, message: str) -> None:
    with pytest.raises(InformationBookError, match=message):
        InformationBook.from_json(damage(path, change))


def test_book_of_a_switch_that_has_no_slots_is_refused() -> None:
    content = json.loads(coordinator(scheme="ina").book.to_json())
    content["cluster"]["slots"] = 1
    with pytest.raises(InformationBookError, match="needs a switch with free slots"):
        InformationBook.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "[]", "7", '{"version": 1}', "[" * 100_000])
def test_what_is_no_book_is_refused(text: str) -> None:
    with pytest.raises(InformationBookError):
        InformationBook.from_json(text)
