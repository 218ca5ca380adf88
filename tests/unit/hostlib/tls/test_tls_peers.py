# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
"""Workers that sum, fetch and exchange over TLS: right values, and nothing in clear."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import pytest

from certificates import CertificateSet
from loopback import LOOPBACK
from peer_group import DOUBLING, HALVING, JOB, RING, Always, PeerGroup
from recording_link import RecordingLink
from switchfold.hostlib import SessionOptions, session
from switchfold.hostlib.config import complete_from_environment
from switchfold.hostlib.credentials import CredentialsError, Role
from switchfold.hostlib.errors import PeerProtocolError
from switchfold.hostlib.factors import ExchangeOptions, FactorExchange
from switchfold.hostlib.peers import PeerServer, RetainedResult
from switchfold.hostlib.slots.wire import Operation
from switchfold.hostlib.transports.udp import UdpTransport

ADD, MAX = Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX
WAIT_S = 120.0
TOKEN = "a-token-that-no-tap-must-see"


@dataclass(frozen=True)
class Address:
    worker_id: int
    peer_address: str
    peer_port: int


def result(num_values: int) -> RetainedResult:
    return RetainedResult(
        tensor=7,
        generation=3,
        members=(0, 1),
        dtype="float32",
        shape=(num_values,),
        operation="mean",
        values=np.arange(num_values, dtype=np.int32) * 77_777 + 123_456_789,
        exponents=np.full(1, -7, np.int32),
        contributors=np.full(1, 2, np.uint16),
        num_contributors=2,
    )


@contextlib.contextmanager
def two_servers(
    certificates: CertificateSet, token: str = ""
) -> Generator[tuple[PeerServer, PeerServer]]:
    with (
        PeerServer(LOOPBACK, token=token, credentials=certificates.of(Role.WORKER)) as one,
        PeerServer(LOOPBACK, token=token, credentials=certificates.of(Role.WORKER)) as other,
    ):
        one.enter_job(JOB, 0)
        other.enter_job(JOB, 1)
        yield one, other


@pytest.mark.parametrize("num_values", [0, 1, 5_000_000])
def test_fetched_results_are_the_same(certificates: CertificateSet, num_values: int) -> None:
    original = result(num_values)
    with two_servers(certificates) as (one, other):
        other.results.put(original)
        fetched = one.fetch_result(Address(1, LOOPBACK, other.port), 7, WAIT_S)
        assert fetched.description() == original.description()
        for ours, theirs in zip(fetched.arrays(), original.arrays(), strict=True):
            assert ours.tobytes() == theirs.tobytes()
        assert other.counters == {"accepted": 1, "served_results": 1}


@pytest.mark.parametrize("costs", [RING, HALVING, DOUBLING])
@pytest.mark.parametrize("num_members", [2, 3, 5])
def test_host_allreduce_sums(certificates: CertificateSet, num_members: int, costs: Always) -> None:
    rng = np.random.default_rng(num_members)
    with PeerGroup(num_members, costs, credentials=certificates.of(Role.WORKER)) as group:
        for size in (1, 1000, 300_001):
            inputs = rng.integers(-(10**6), 10**6, (num_members, size)).astype(np.int32)
            for reduction in group.reduce(ADD, list(inputs), WAIT_S):
                np.testing.assert_array_equal(reduction.values, inputs.sum(0, dtype=np.int32))
            for reduction in group.reduce(MAX, list(inputs), WAIT_S):
                np.testing.assert_array_equal(reduction.values, inputs.max(0))
        assert group.failures == [None] * num_members


def test_large_sums_in_both_directions_at_once(certificates: CertificateSet) -> None:
    """Bytes that TLS has decrypted wake no selector: a forgotten one would be a hang here."""
    rng = np.random.default_rng(1)
    inputs = rng.integers(-(10**6), 10**6, (2, 10_000_000)).astype(np.int32)
    expected = inputs.sum(0, dtype=np.int32)
    with PeerGroup(2, RING, credentials=certificates.of(Role.WORKER)) as group:
        submitted = [
            group.submit(i, ADD, own, tag) for tag in (1, 2) for i, own in enumerate(inputs)
        ]
        for reduction in group.wait(submitted, WAIT_S):
            np.testing.assert_array_equal(reduction.values, expected)


def test_factor_exchange(certificates: CertificateSet) -> None:
    rng = np.random.default_rng(2)
    own = [[rng.standard_normal((4, n), np.float32) for n in (600, 500)] for _ in range(3)]
    credentials = certificates.of(Role.WORKER)
    servers = [PeerServer(LOOPBACK, credentials=credentials) for _ in own]
    peers = [(server.address, server.port) for server in servers]
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(FactorExchange(worker_id, peers, ExchangeOptions(), server=server))
            for worker_id, server in enumerate(servers)
        ]
        futures = [
            worker.exchange("fc", u, v, 0) for worker, (u, v) in zip(workers, own, strict=True)
        ]
        for future in futures:
            for pair, (u, v) in zip(future.result(WAIT_S), own, strict=True):
                np.testing.assert_array_equal(pair.u, u)
                np.testing.assert_array_equal(pair.v, v)


@pytest.mark.parametrize("is_protected", [True, False])
def test_nothing_crosses_in_clear(certificates: CertificateSet, is_protected: bool) -> None:
    """The tap of the unprotected run finds what that of the protected one must not."""
    original = result(100_000)
    secrets = [original.values[n : n + 4].tobytes() for n in range(0, 100_000, 1000)]
    with contextlib.ExitStack() as stack:
        if is_protected:
            one, other = stack.enter_context(two_servers(certificates, TOKEN))
        else:
            one, other = (stack.enter_context(PeerServer(LOOPBACK, token=TOKEN)) for _ in "12")
            one.enter_job(JOB, 0)
            other.enter_job(JOB, 1)
        other.results.put(original)
        tap = stack.enter_context(RecordingLink(other.port))
        fetched = one.fetch_result(Address(1, LOOPBACK, tap.port), 7, WAIT_S)
        assert fetched.values.tobytes() == original.values.tobytes()
        seen = bytes(tap.upwards + tap.downwards)
    assert len(seen) > original.values.nbytes
    assert TOKEN.encode() not in seen, "only a proof of it crosses, with TLS or without"
    assert [secret in seen for secret in secrets] == [not is_protected] * len(secrets)
    assert (original.description() in seen) is not is_protected


def test_changed_bytes_are_noticed_by_tls_alone(certificates: CertificateSet) -> None:
    original = result(100_000)
    middle = original.values.nbytes // 2
    with (
        two_servers(certificates) as (one, other),
        RecordingLink(other.port, flip_at=middle) as link,
    ):
        other.results.put(original)
        with pytest.raises(PeerProtocolError, match=r"(?i)TLS with .* failed: .*mac"):
            one.fetch_result(Address(1, LOOPBACK, link.port), 7, WAIT_S)
    with PeerServer(LOOPBACK) as one, PeerServer(LOOPBACK) as other:
        one.enter_job(JOB, 0)
        other.enter_job(JOB, 1)
        other.results.put(original)
        with RecordingLink(other.port, flip_at=middle) as link:
            fetched = one.fetch_result(Address(1, LOOPBACK, link.port), 7, WAIT_S)
        assert fetched.values.tobytes() != original.values.tobytes()


def test_session_gives_its_credentials_to_its_peer_server(certificates: CertificateSet) -> None:
    folder = str(certificates.of(Role.WORKER).folder)
    variables = {"SWITCHFOLD_CREDENTIALS": folder}
    options = complete_from_environment(SessionOptions(), variables)
    assert options.credentials == folder
    with contextlib.closing(UdpTransport(LOOPBACK)) as transport:
        server = session._open_peers(transport, options)
        assert server is not None
        with server:
            assert server.credentials == certificates.of(Role.WORKER)
        plain = session._open_peers(transport, complete_from_environment(SessionOptions(), {}))
        assert plain is not None
        with plain:
            assert plain.credentials is None
        wrong = SessionOptions(credentials=f"{folder}/missing")
        with pytest.raises(CredentialsError, match=r"missing: ca\.pem cannot be read"):
            session._open_peers(transport, wrong)
