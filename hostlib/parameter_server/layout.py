# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Places of the values of each key: in pairs of a fixed size, spread evenly over the shards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from ..errors import ConfigurationError, PeerMismatchError, PeerProtocolError
from ..peers.frames import MAX_PAIR_BYTES

PAIR_BYTES = 2 << 20
"""Default size of a pair; the last pair of a key may be smaller."""
VALUE_BYTES = 4
MAX_SERVERS = 1 << 12
MAX_KEYS = 1 << 20
_MAX_NAME_CHARACTERS = 4096


class Pair(NamedTuple):
    """Consecutive values of a key that travel, count and are summed as one."""

    number: int
    """Position in the key, from 0."""
    shard: int
    """Server that holds the pair."""
    first: int
    """Position of its first value in the key."""
    num_values: int


class Key(NamedTuple):
    """A named row of float32 values: a layer's parameters or gradients."""

    name: str
    num_values: int
    is_whole: bool
    """Whether all pairs are on one server, which can multiply factors."""
    pairs: tuple[Pair, ...]
    number: int
    """Position in the parameter layout."""


@final
class PairLayout:
    """Keys in the order in which they were added, the same on all workers and servers.

    Each pair goes to the shard with the fewest values so far, the lowest one of several. So two
    shards never differ by more than one pair. A whole key goes to one shard by the same rule.
    """

    def __init__(self, num_servers: int = 1, *, pair_bytes: int = PAIR_BYTES) -> None:
        if not 1 <= num_servers <= MAX_SERVERS:
            raise ConfigurationError(f"{num_servers} parameter servers; give 1 to {MAX_SERVERS}")
        if not VALUE_BYTES <= pair_bytes <= MAX_PAIR_BYTES or pair_bytes % VALUE_BYTES:
            raise ConfigurationError(
                f"pairs of {pair_bytes} bytes; give a multiple of {VALUE_BYTES} up to"
                f" {MAX_PAIR_BYTES}"
            )
        self.pair_bytes = pair_bytes
        self.keys: list[Key] = []
        self.shard_values = [0] * num_servers
        """Values per shard."""
        self._numbers: dict[str, int] = {}

    @property
    def num_servers(self) -> int:
        """Number of shards."""
        return len(self.shard_values)

    def add(self, name: str, num_values: int, *, is_whole: bool = False) -> int:
        """Add a key unless it is there; return its position. Raises ConfigurationError."""
        number = self._numbers.get(name)
        if number is not None:
            key = self.keys[number]
            if (key.num_values, key.is_whole) != (num_values, is_whole):
                raise ConfigurationError(
                    f"key {name!r} has {key.num_values} values"
                    f"{' on one server' * key.is_whole}, not {num_values}"
                    f"{' on one server' * is_whole}"
                )
            return number
        if num_values < 1 or len(self.keys) >= MAX_KEYS or len(name) > _MAX_NAME_CHARACTERS:
            raise ConfigurationError(
                f"key {name[:80]!r} of {num_values} values as key {len(self.keys)}: give at least"
                f" one value, at most {MAX_KEYS} keys, names up to {_MAX_NAME_CHARACTERS}"
            )
        number = self._numbers[name] = len(self.keys)
        pairs = self._place(num_values, is_whole)
        self.keys.append(Key(name, num_values, is_whole, pairs, number))
        return number

    def _place(self, num_values: int, is_whole: bool) -> tuple[Pair, ...]:
        values = self.pair_bytes // VALUE_BYTES
        pairs: list[Pair] = []
        shard = self._emptiest()
        for first in range(0, num_values, values):
            count = min(values, num_values - first)
            if not is_whole:
                shard = self._emptiest()
            self.shard_values[shard] += count
            pairs.append(Pair(len(pairs), shard, first, count))
        return tuple(pairs)

    def _emptiest(self) -> int:
        return self.shard_values.index(min(self.shard_values))

    def add_all(self, sizes: Mapping[str, int]) -> None:
        """Add several keys."""
        for name, num_values in sizes.items():
            self.add(name, num_values)

    def description(self, first: int, end: int) -> bytes:
        """Return the keys from `first` to before `end`, as JSON."""
        return json.dumps(
            {
                "num_servers": self.num_servers,
                "pair_bytes": self.pair_bytes,
                "first": first,
                "keys": [list(key[:3]) for key in self.keys[first:end]],
            }
        ).encode()

    @classmethod
    def of_description(cls, description: bytes) -> PairLayout:
        """Return a layout with a description's servers and pair size, and no keys.

        Raises PeerProtocolError.
        """
        try:
            fields: dict[str, Any] = json.loads(description)
            return cls(int(fields["num_servers"]), pair_bytes=int(fields["pair_bytes"]))
        except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
            raise PeerProtocolError(f"malformed declaration of keys: {error!r}") from error

    def merge(self, description: bytes, worker_id: int) -> None:
        """Add the keys that a worker declares.

        Raises PeerMismatchError, which names worker and key, if another worker declared something
        else, and PeerProtocolError if the description is malformed.
        """
        try:
            fields: dict[str, Any] = json.loads(description)
            settings = (int(fields["num_servers"]), int(fields["pair_bytes"]))
            first = int(fields["first"])
            keys = [(str(name), int(size), bool(whole)) for name, size, whole in fields["keys"]]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise PeerProtocolError(f"malformed declaration of keys: {error!r}") from error
        if settings != (self.num_servers, self.pair_bytes):
            raise PeerMismatchError(
                f"worker {worker_id} has {settings[0]} servers and pairs of {settings[1]} bytes;"
                f" here it is {self.num_servers} servers and {self.pair_bytes} bytes"
            )
        if not 0 <= first <= len(self.keys):
            raise PeerProtocolError(
                f"declaration of keys from {first} on, but only {len(self.keys)} are known"
            )
        for position, (name, num_values, is_whole) in enumerate(keys, first):
            if position < len(self.keys):
                known = self.keys[position]
                if known[:3] != (name, num_values, is_whole):
                    raise PeerMismatchError(
                        f"worker {worker_id} declares {name!r} of {num_values} values as key"
                        f" {position}; other workers declared {known.name!r} of"
                        f" {known.num_values}: all must use the same keys in the same order"
                    )
                continue
            try:
                if self.add(name, num_values, is_whole=is_whole) != position:
                    raise PeerMismatchError(f"worker {worker_id} declares {name!r} twice")
            except ConfigurationError as error:
                raise PeerMismatchError(f"worker {worker_id}: {error}") from error
