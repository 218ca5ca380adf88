# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The information book (Poseidon, ATC'17): the scheme and storage of each layer, for all hosts."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, cast

from ..errors import InformationBookError, SchemeError
from ..parameter_server.layout import Pair
from .cluster import Cluster
from .cost import Scheme
from .layer import Layer

BOOK_VERSION: Final = 2
STORED: Final = (Scheme.PS, Scheme.ADAM, Scheme.INA_PS)
"""Schemes whose parameters are stored on shards."""


class Place(NamedTuple):
    """TCP address of a shard, or of a worker's factor exchange."""

    address: str
    port: int


@dataclass(frozen=True, kw_only=True)
class LayerEntry:
    """The book's entry of a layer."""

    layer: Layer
    scheme: Scheme
    pairs: tuple[Pair, ...] = ()
    """KV pairs, each with its shard; none for SFB and INA."""
    is_copied: bool = False
    """For SFB: the switch multicasts the factors; otherwise a TCP stream leads to each worker."""

    @property
    def shards(self) -> tuple[int, ...]:
        """Shards that store a part of the layer."""
        return tuple(sorted({pair.shard for pair in self.pairs}))


@dataclass(frozen=True, kw_only=True)
class InformationBook:
    """The schemes of one epoch. A `Coordinator` makes it, or `from_json` reads it."""

    epoch: int
    """Number from 1, which rises with every change."""
    job: str
    cluster: Cluster
    pair_bytes: int
    """Largest size of a KV pair in bytes; the loads of shards differ by at most one pair."""
    servers: tuple[Place, ...]
    """Place of each shard."""
    workers: tuple[Place, ...]
    """Place of each worker, by worker id."""
    entries: tuple[LayerEntry, ...]
    """Entries of the layers from input to output."""

    def __post_init__(self) -> None:
        _check(self)
        by_name = {entry.layer.name: entry for entry in self.entries}
        object.__setattr__(self, "_by_name", by_name)

    def query(self, name: str) -> LayerEntry:
        """Return the entry of a layer; SchemeError, with the nearest name, if it is unknown."""
        by_name: dict[str, LayerEntry] = self.__dict__["_by_name"]
        entry = by_name.get(name)
        if entry is None:
            close = difflib.get_close_matches(name, by_name, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise SchemeError(f"the information book has no layer {name!r}{hint}")
        return entry

    def best_scheme(self, name: str) -> Scheme:
        """Return the scheme of a layer; SchemeError if it is unknown."""
        return self.query(name).scheme

    def layers_of(self, scheme: Scheme) -> tuple[Layer, ...]:
        """Return the layers that a scheme carries."""
        return tuple(entry.layer for entry in self.entries if entry.scheme is scheme)

    def shard_values(self) -> list[int]:
        """Return the number of values that each shard stores."""
        counts = Counter[int]()
        for entry in self.entries:
            for pair in entry.pairs:
                counts[pair.shard] += pair.num_values
        return [counts[shard] for shard in range(len(self.servers))]

    @staticmethod
    def worker_bit(worker_id: int) -> int:
        """Return the worker's bit in worker bitmaps."""
        return 1 << worker_id

    @property
    def hash(self) -> str:
        """Hash of the whole book, as 16 hexadecimal digits."""
        text = json.dumps(self._content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the book with its hash, as JSON."""
        return json.dumps({**self._content(), "hash": self.hash})

    def _content(self) -> dict[str, Any]:
        return {
            "version": BOOK_VERSION,
            "epoch": self.epoch,
            "job": self.job,
            "cluster": self.cluster.as_dict(),
            "pair_bytes": self.pair_bytes,
            "servers": [list(place) for place in self.servers],
            "workers": [list(place) for place in self.workers],
            "layers": [
                {
                    "layer": _plain(entry.layer).as_dict(),
                    "scheme": entry.scheme.value,
                    "pairs": [list(pair) for pair in entry.pairs],
                    "is_copied": entry.is_copied,
                }
                for entry in self.entries
            ],
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a book; InformationBookError if it is damaged or contradicts itself."""
        try:
            read: dict[str, Any] = json.loads(text)
            if read["version"] != BOOK_VERSION:
                raise InformationBookError(
                    f"information book of version {read['version']}; this library reads version"
                    f" {BOOK_VERSION}; install one release on all hosts"
                )
            book = cls(
                epoch=_number(read["epoch"]),
                job=str(read["job"]),
                cluster=Cluster.from_dict(read["cluster"]),
                pair_bytes=_number(read["pair_bytes"]),
                servers=_places(read["servers"]),
                workers=_places(read["workers"]),
                entries=tuple(
                    LayerEntry(
                        layer=Layer.from_dict(entry["layer"]),
                        scheme=Scheme(entry["scheme"]),
                        pairs=tuple(Pair(*map(_number, pair)) for pair in entry["pairs"]),
                        is_copied=entry["is_copied"] is True,
                    )
                    for entry in read["layers"]
                ),
            )
            written = read["hash"]
        except InformationBookError:
            raise
        except SchemeError as error:
            raise InformationBookError(f"information book: {error}") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InformationBookError(f"malformed information book: {error!r}") from error
        if book.hash != written:
            raise InformationBookError(
                f"information book of epoch {book.epoch} has hash {book.hash}, but states"
                f" {written}: it was changed in transit; fetch it again"
            )
        return book

    def check_same(self, other_hash: str, who: str) -> None:
        """Raise InformationBookError if the book of `who` has another hash."""
        if other_hash != self.hash:
            raise InformationBookError(
                f"{who} has an information book with hash {other_hash}, here it is {self.hash}"
                f" (epoch {self.epoch}); all hosts must use the coordinator's newest"
            )


def _plain(layer: Layer) -> Layer:
    """Return the layer without the additional fields of a model's layer."""
    known = {field.name for field in dataclasses.fields(Layer)}
    return Layer(**{name: value for name, value in layer.as_dict().items() if name in known})


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InformationBookError(f"malformed information book: {value!r} is no whole number")
    return value


def _places(values: object) -> tuple[Place, ...]:
    places = cast("list[list[Any]]", values)
    return tuple(Place(str(address), _number(port)) for address, port in places)


def _check(book: InformationBook) -> None:
    """Raise InformationBookError unless each value is stored once and all places are distinct."""
    if book.epoch < 1:
        raise InformationBookError(f"epoch {book.epoch}; epochs count from 1")
    for what, found, wanted in (
        ("shards", len(book.servers), book.cluster.num_servers),
        ("workers", len(book.workers), book.cluster.num_workers),
    ):
        if found != wanted:
            raise InformationBookError(f"places of {found} {what} for a cluster of {wanted}")
    places = Counter([*book.servers, *book.workers])
    for place, count in places.items():
        if not 0 < place.port < 1 << 16:
            raise InformationBookError(
                f"port {place.port} of {place.address or 'a host'} is not between 1 and 65535"
            )
        if count > 1:
            raise InformationBookError(
                f"{place.address}:{place.port} is the place of {count} shards or workers"
            )
    names = Counter(entry.layer.name for entry in book.entries)
    for name, count in names.items():
        if count > 1:
            raise InformationBookError(f"layer {name} is in the book {count} times")
    for entry in book.entries:
        _check_entry(entry, book)
    _check_evenness(book)


def _check_entry(entry: LayerEntry, book: InformationBook) -> None:
    layer, scheme = entry.layer, entry.scheme
    if scheme in (Scheme.SFB, Scheme.ADAM) and not layer.has_factors:
        raise InformationBookError(f"layer {layer.name} has no factors for {scheme.value}")
    if entry.is_copied and not (scheme is Scheme.SFB and book.cluster.has_multicast):
        raise InformationBookError(
            f"layer {layer.name}: no switch multicasts what {scheme.value} sends"
        )
    if scheme in (Scheme.INA, Scheme.INA_PS) and not book.cluster.can_aggregate:
        raise InformationBookError(f"layer {layer.name} needs a switch with free slots")
    if scheme not in STORED:
        if entry.pairs:
            raise InformationBookError(
                f"layer {layer.name} goes by {scheme.value}, but is on shards {entry.shards}, too"
            )
        return
    if scheme is Scheme.ADAM and len(entry.shards) > 1:
        raise InformationBookError(f"layer {layer.name} goes by adam, but is on several shards")
    end = 0
    for number, pair in enumerate(entry.pairs):
        if pair.number != number or pair.first != end or pair.num_values < 1:
            raise InformationBookError(
                f"layer {layer.name}: pair {pair.number} has {pair.num_values} values from"
                f" {pair.first} on; expected pair {number} from {end} on"
            )
        if not 0 <= pair.shard < len(book.servers) or 4 * pair.num_values > book.pair_bytes:
            raise InformationBookError(
                f"layer {layer.name}: pair {number} of {4 * pair.num_values} bytes on shard"
                f" {pair.shard}; there are {len(book.servers)} shards, and a pair has at most"
                f" {book.pair_bytes} bytes"
            )
        end += pair.num_values
    if end != layer.num_values:
        raise InformationBookError(
            f"layer {layer.name}: {end} of {layer.num_values} values are on a shard"
        )


def _check_evenness(book: InformationBook) -> None:
    if any(entry.scheme is Scheme.ADAM for entry in book.entries):
        return  # whole layers cannot be spread evenly over shards
    values = book.shard_values()
    if 4 * (max(values) - min(values)) > book.pair_bytes:
        raise InformationBookError(
            f"shards of {min(values)} to {max(values)} values differ by more than one pair of"
            f" {book.pair_bytes // 4} values"
        )
