# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Digests (section 9.9): lists of samples, their timeouts and acknowledgements."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from finsy.proto import p4r, rpc_code

from ..p4info.schema import Digest, Schema
from ..p4info.values import split
from ..writes.journal import Backend
from .status import RequestError

MAX_LIST_SAMPLES = 1024
"""Most samples of one list, also if the controller sets no limit or a higher one."""
MAX_UNACKNOWLEDGED = 65_536
"""Samples of one digest that are remembered until their ack; more are dropped."""


@dataclass
class _Generator:
    """One digest that a controller has switched on; times are monotonic, in nanoseconds."""

    digest: Digest
    config: p4r.DigestEntry.Config
    pending: dict[bytes, None] = field(default_factory=dict[bytes, None])
    """The next list: distinct samples in order of arrival."""
    pending_since: int = 0
    sent: dict[int, tuple[int, list[bytes]]] = field(
        default_factory=dict[int, tuple[int, list[bytes]]]
    )
    """Lists without an ack, with the time of sending."""
    unacknowledged: set[bytes] = field(default_factory=set[bytes])
    next_list_id: int = 1

    @property
    def list_size(self) -> int:
        """Samples that make a list complete."""
        wanted = self.config.max_list_size
        return min(wanted, MAX_LIST_SAMPLES) if wanted > 0 else MAX_LIST_SAMPLES

    def is_complete(self, now: int) -> bool:
        """Return whether the next list must be sent now."""
        if not self.pending:
            return False
        waited = now - self.pending_since
        return len(self.pending) >= self.list_size or waited >= self.config.max_timeout_ns

    def expire(self, now: int) -> None:
        """Forget lists whose ack has not come in time."""
        for list_id, (sent_at, _) in list(self.sent.items()):
            if now - sent_at < self.config.ack_timeout_ns:
                break  # in order of sending
            self.acknowledge(list_id)

    def acknowledge(self, list_id: int) -> None:
        """Forget a list, so that its samples may be sent again."""
        _, samples = self.sent.pop(list_id, (0, []))
        self.unacknowledged.difference_update(samples)

    def take_list(self, now: int) -> p4r.DigestList:
        """Return the next list and begin another."""
        samples = list(self.pending)
        self.pending.clear()
        made = p4r.DigestList(digest_id=self.digest.id, list_id=self.next_list_id)
        made.timestamp = time.time_ns()
        for sample in samples:
            fields = iter(split(sample, self.digest.data.widths))
            made.data.append(self.digest.data.encode(fields))
        self.next_list_id += 1
        if self.config.ack_timeout_ns > 0:
            self.sent[made.list_id] = now, samples
            self.unacknowledged.update(samples)
        return made

    @property
    def deadline(self) -> int | None:
        """When the next list is due or an ack is too late, in monotonic ns; None without either."""
        times = [self.pending_since + self.config.max_timeout_ns] if self.pending else []
        if self.sent:
            oldest = next(iter(self.sent.values()))[0]
            times.append(oldest + self.config.ack_timeout_ns)
        return min(times, default=None)


class DigestStore:
    """The digests of one loaded program. Thread-safe: samples come from the data plane."""

    def __init__(
        self, schema: Schema, backend: Backend, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._schema = schema
        self._by_list = {digest.list_id: digest for digest in schema.digests.values()}
        self._backend = backend
        self._clock = clock
        self._lock = threading.Lock()
        self._generators: dict[int, _Generator] = {}
        self.dropped = 0
        """Dropped samples: beyond `MAX_UNACKNOWLEDGED`, or of unexpected length."""

    def write(self, update_type: int, entry: p4r.DigestEntry) -> None:
        """INSERT switches a digest on, MODIFY changes its limits, DELETE switches it off."""
        digest = self._schema.digest(entry.digest_id)
        with self._lock:
            old = self._generators.get(digest.id)
            if update_type == p4r.Update.INSERT and old is not None:
                raise _refuse(rpc_code.ALREADY_EXISTS, digest, "is on already; use MODIFY")
            if update_type != p4r.Update.INSERT and old is None:
                raise _refuse(rpc_code.NOT_FOUND, digest, "is not on; use INSERT")
            new: _Generator | None = None
            if update_type != p4r.Update.DELETE:
                config = p4r.DigestEntry.Config()
                config.CopyFrom(entry.config)
                if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
                    raise _refuse(rpc_code.INVALID_ARGUMENT, digest, "config: a value is negative")
                new = _Generator(digest, config) if old is None else replace(old, config=config)
            self._assign(digest.id, new)
        self._backend.journal.note(lambda: self._restore(digest.id, old))

    def read(self, query: p4r.DigestEntry) -> Iterator[p4r.Entity]:
        """Return the digests that are on; id 0 selects all."""
        for digest in self._schema.select_digests(query.digest_id):
            generator = self._generators.get(digest.id)
            if generator is not None:
                entry = p4r.DigestEntry(digest_id=digest.id, config=generator.config)
                yield p4r.Entity(digest_entry=entry)

    def is_on(self, list_id: int) -> bool:
        """Return whether a client wants the samples of a learn list."""
        digest = self._by_list.get(list_id)
        return digest is not None and digest.id in self._generators

    def add(self, list_id: int, sample: bytes) -> None:
        """Take a sample of the data plane, unless it is waiting or unacknowledged."""
        digest = self._by_list.get(list_id)
        with self._lock:
            generator = self._generators.get(digest.id) if digest is not None else None
            if generator is None:
                return
            generator.expire(self._clock())
            if sample in generator.unacknowledged or sample in generator.pending:
                return
            size = sum((width + 7) // 8 for width in generator.digest.data.widths)
            held = len(generator.unacknowledged) + len(generator.pending)
            if len(sample) != size or held >= MAX_UNACKNOWLEDGED:
                self.dropped += 1
                return
            if not generator.pending:
                generator.pending_since = self._clock()
            generator.pending[sample] = None

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        """Take an ack; INVALID_ARGUMENT for a digest that is not in the P4Info."""
        if ack.digest_id not in self._schema.digests:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"digest_id {ack.digest_id} is not in the P4Info"
            )
        with self._lock:
            generator = self._generators.get(ack.digest_id)
            if generator is not None:
                generator.acknowledge(ack.list_id)

    def take_lists(self) -> tuple[list[p4r.DigestList], int | None]:
        """Return the lists that are due now, and when to call again (monotonic ns)."""
        now = self._clock()
        with self._lock:
            generators = list(self._generators.values())
            for generator in generators:
                generator.expire(now)
            made = [item.take_list(now) for item in generators if item.is_complete(now)]
            times = [time for item in generators if (time := item.deadline) is not None]
        return made, min(times, default=None)

    def _assign(self, digest_id: int, generator: _Generator | None) -> None:
        if generator is None:
            self._generators.pop(digest_id, None)
        else:
            self._generators[digest_id] = generator

    def _restore(self, digest_id: int, generator: _Generator | None) -> None:
        with self._lock:
            self._assign(digest_id, generator)


def _refuse(code: int, digest: Digest, reason: str) -> RequestError:
    return RequestError(code, f"digest {digest.name}: {reason}")
