# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers over TLS: sums and tables, roles of both ends, and the command."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from certificates import CertificateSet
from loopback import LOOPBACK
from parameter_cluster import WAIT_S, ParameterCluster, gradients, sum_in_order
from recording_link import RecordingLink
from switchfold.hostlib.credentials import Role
from switchfold.hostlib.errors import PeerRefusedError
from switchfold.hostlib.parameter_server import ClientOptions, ParameterClient
from switchfold.hostlib.parameter_server.command import run as run_command
from switchfold.hostlib.parameter_server.tables import TableDefinition
from table_cluster import TableCluster, open_client

LONG_S = 1e6
"""A client that dials for so long never fails in the time of a test."""


@pytest.mark.parametrize("num_servers", [1, 3])
@pytest.mark.parametrize("num_values", [1, 5000, 3_000_000])
def test_sums_are_those_without_tls(
    certificates: CertificateSet, num_servers: int, num_values: int
) -> None:
    arrays = gradients(3, num_values)
    with ParameterCluster(
        3,
        num_servers,
        client={"credentials": certificates.of(Role.WORKER), "timeout_s": WAIT_S},
        credentials=certificates.of(Role.SERVER),
        timeout_s=WAIT_S,
    ) as cluster:
        for iteration in range(2):
            for found in cluster.push_pull("w", arrays, iteration):
                assert found.tobytes() == sum_in_order(arrays).tobytes()


def test_worker_that_hosts_a_shard_shows_its_own_certificate(certificates: CertificateSet) -> None:
    arrays = gradients(2, 5000)
    client = {"credentials": certificates.of(Role.WORKER), "server_role": Role.WORKER}
    with ParameterCluster(2, 0, client=client, credentials=certificates.of(Role.WORKER)) as cluster:
        for found in cluster.push_pull("w", arrays, 0):
            assert found.tobytes() == sum_in_order(arrays).tobytes()


def test_tables_push_and_pull(certificates: CertificateSet, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with TableCluster(2, 2, tmp_path, certificates.of(Role.SERVER)) as cluster:
        tables = [
            cluster.client(w, credentials=certificates.of(Role.WORKER)).define(
                TableDefinition(name="w", width=8)
            )
            for w in range(2)
        ]
        keys = rng.permutation(100_000).astype(np.int64)
        values = rng.integers(-100, 100, (100_000, 8)).astype(np.float32)
        for future in [table.push(keys, values) for table in tables for _ in range(2)]:
            future.result(WAIT_S)
        found = tables[0].pull(keys).result(WAIT_S)
        np.testing.assert_array_equal(found.values, 4 * values)
        cluster.restart(0)
        np.testing.assert_array_equal(tables[1].pull(keys).result(WAIT_S).values, 4 * values)


@pytest.mark.parametrize(
    ("server", "worker", "text"),
    [
        (Role.SERVER, Role.OPERATOR, r"is for operator; this server takes a worker"),
        (Role.SERVER, Role.SERVER, r"is for server; this server takes a worker"),
        (Role.WORKER, Role.WORKER, r"is not that of a server"),
        (Role.OPERATOR, Role.WORKER, r"is not that of a server"),
        (None, Role.WORKER, r"speaks no TLS"),
        (Role.SERVER, None, r"this server speaks TLS"),
    ],
)
def test_wrong_ends_are_refused_and_nobody_dials_again(
    certificates: CertificateSet,
    monkeypatch: pytest.MonkeyPatch,
    server: Role | None,
    worker: Role | None,
    text: str,
) -> None:
    monkeypatch.setattr("switchfold.hostlib.peers.inbound.SILENT_S", 0.1)
    options = {
        "credentials": certificates.of(worker) if worker else None,
        "timeout_s": LONG_S,
        "reconnect_s": LONG_S,
    }
    with ParameterCluster(
        1,
        client=options,
        credentials=certificates.of(server) if server else None,
        timeout_s=LONG_S / 2,
    ) as cluster:
        with pytest.raises(PeerRefusedError, match=text):
            cluster.push_pull("w", gradients(1, 10), 0)
        assert cluster.server_counts("updates") == [0]


BAD = {
    "other authority": (
        CertificateSet.mixed,
        "does not know the authority",
        "is of another authority",
    ),
    "expired": (
        CertificateSet.expired,
        "this end's certificate has expired",
        "other end's certificate has expired",
    ),
    "revoked": (
        CertificateSet.revoked,
        "this end's certificate is revoked",
        "other end's certificate is revoked",
    ),
}
"""How to make the certificate; what a worker that has it is told; what it says of such a server."""


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("is_worker", [True, False], ids=["worker", "server"])
def test_bad_certificate_is_refused(tmp_path: Path, kind: str, is_worker: bool) -> None:
    made = CertificateSet.create(tmp_path)
    make, of_worker, of_server = BAD[kind]
    worker, server = made.of(Role.WORKER), made.of(Role.SERVER)
    if is_worker:
        worker, text = make(made, Role.WORKER), of_worker
    else:
        server, text = make(made, Role.SERVER), of_server
    options = {"credentials": worker, "timeout_s": LONG_S, "reconnect_s": LONG_S}
    with ParameterCluster(1, client=options, credentials=server, timeout_s=LONG_S / 2) as cluster:
        with pytest.raises(PeerRefusedError, match=text):
            cluster.push_pull("w", gradients(1, 10), 0)
        with pytest.raises(PeerRefusedError, match=text):
            open_client(cluster.addresses, 0, **options)
        assert cluster.server_counts("updates") == [0]


def test_updates_do_not_cross_in_clear(certificates: CertificateSet) -> None:
    (array,) = gradients(1, 100_000)
    secrets = [array[n : n + 4].tobytes() for n in range(0, array.size, 1000)]
    seen: list[bytes] = []
    for is_protected in (False, True):
        worker = certificates.of(Role.WORKER) if is_protected else None
        credentials = certificates.of(Role.SERVER) if is_protected else None
        with ExitStack() as stack:
            cluster = stack.enter_context(ParameterCluster(1, credentials=credentials))
            tap = stack.enter_context(RecordingLink(cluster.servers[0].port))
            options = ClientOptions(worker_id=0, credentials=worker)
            own = stack.enter_context(ParameterClient([(LOOPBACK, tap.port)], options))
            assert own.push_pull("w", array, 0).result(WAIT_S).tobytes() == array.tobytes()
            seen.append(bytes(tap.upwards) + bytes(tap.downwards))
    plain, protected = seen
    assert all(secret in plain for secret in secrets)
    assert len(protected) > 2 * array.nbytes
    assert not any(secret in protected for secret in secrets)


@pytest.mark.parametrize("is_by_option", [True, False])
def test_command_takes_credentials(
    certificates: CertificateSet, monkeypatch: pytest.MonkeyPatch, is_by_option: bool
) -> None:
    command = [
        *(sys.executable, "-m", "switchfold.hostlib.parameter_server"),
        *("--address", LOOPBACK, "--num-workers", "1", "--rule", "mean"),
    ]
    folder = str(certificates.of(Role.SERVER).folder)
    if is_by_option:
        command += ["--credentials", folder]
    else:
        monkeypatch.setenv("SWITCHFOLD_CREDENTIALS", folder)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = re.fullmatch(r"listening on (.*):(\d+)\n", process.stdout.readline())
        assert said is not None
        options = ClientOptions(worker_id=0, credentials=certificates.of(Role.WORKER))
        with ParameterClient([(said[1], int(said[2]))], options) as client:
            array = np.arange(10, dtype=np.float32)
            assert (client.push_pull("w", array, 0).result(WAIT_S) == array).all()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
        assert process.returncode == 0


def test_command_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--address", LOOPBACK, "--num-workers", "1", "--credentials", str(tmp_path)]
    assert run_command(arguments) == 1
    assert f"credentials in {tmp_path}: ca.pem cannot be read" in capsys.readouterr().err
