# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of the tests' own: in a temporary folder, on loopback, without root."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loopback import LOOPBACK
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.hostlib.credentials import Credentials
from time_bound import wait_until

_UNPRIVILEGED = "nobody"
_PASSWORD = "s3cret/of@tests"


def missing_part() -> str | None:
    """Return what a server needs and is not here, in words."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: the extra postgres"
    if not _server_folders():
        return "no PostgreSQL server in /usr/lib/postgresql: apt-get install postgresql"
    return None


def _server_folders() -> list[Path]:
    """Return folders with the server's binaries, the newest first."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()]


class PostgresServer:
    """A running server with one database; refuses to run as root, so it runs as nobody then.

    With credentials it takes TLS alone, and users by the name in their certificate alone.
    """

    def __init__(self, folder: Path, credentials: Credentials | None = None) -> None:
        self._binaries = _server_folders()[0]
        self._data = folder / "data"
        self._log = folder / "log"
        self.address = LOOPBACK
        self.port = free_port(address=LOOPBACK)
        # Not by Popen(user=...): it forks, and beside threads of gRPC some children crash.
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            entry = pwd.getpwnam(_UNPRIVILEGED)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
            ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
            self._as_user = ["setpriv", *ids, "--"]
        secret = folder / "password"
        secret.write_text(_PASSWORD)
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", str(self._data), "-U", "tests", "--auth=scram-sha-256",
            "--pwfile", str(secret), "--no-sync", "--no-locale", "-E", "UTF8", "--no-instructions",
        )  # fmt: skip
        self._tls: list[str] = []
        if credentials is not None:
            self._tls = self._secured_by(credentials)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _secured_by(self, credentials: Credentials) -> list[str]:
        """Return the server's options, which take files of its own user alone."""
        (self._data / "pg_hba.conf").write_text("hostssl all all 127.0.0.0/8 cert\n")
        options = ["-c", "ssl=on"]
        for option, source in (
            ("ssl_cert_file", credentials.certificate),
            ("ssl_key_file", credentials.key),
            ("ssl_ca_file", credentials.authority),
            ("ssl_crl_file", credentials.revoked),
        ):
            target = self._data / source.name
            target.write_bytes(source.read_bytes())
            target.chmod(0o600)
            if self._as_user:
                shutil.chown(target, _UNPRIVILEGED)
            options += ["-c", f"{option}={target}"]
        return options

    def url(self, proxy_port: int | None = None, name: str = "postgres") -> str:
        """Return the address of a database, through a proxy at 127.0.0.1 if one is given."""
        password = _PASSWORD.replace("/", "%2F").replace("@", "%40")
        place = f"{LOOPBACK}:{self.port}" if proxy_port is None else f"127.0.0.1:{proxy_port}"
        return f"postgresql://tests:{password}@{place}/{name}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._as_user, str(self._binaries / "postgres"), "-D", str(self._data),
                    "-c", f"port={self.port}", "-c", f"listen_addresses={LOOPBACK}",
                    "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "timezone=UTC",
                    "-c", "shared_buffers=16MB", "-c", "max_connections=60", *self._tls,
                ],
                stdout=log, stderr=log, cwd="/",
            )  # fmt: skip
        wait_until(self._answers, f"an answer of PostgreSQL; its log is {self._log}")

    def stop(self) -> None:
        """Stop at once, as a machine that loses its power."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def make_database(self, name: str) -> str:
        """Make an empty database and return its address."""
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name=name)

    def execute(self, statement: str, name: str = "postgres") -> list[tuple[object, ...]]:
        """Execute a statement as the tests' own user."""
        psycopg: Any = importlib.import_module("psycopg")
        with psycopg.connect(self.url(name=name), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _answers(self) -> bool:
        assert self._process is not None
        ended = self._process.poll()
        assert ended is None, f"PostgreSQL ended by {ended}: {self._log.read_text()}"
        ready = [str(self._binaries / "pg_isready"), "-q", "-h", LOOPBACK, "-p", str(self.port)]
        return subprocess.run(ready, check=False).returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as_user, str(self._binaries / program), *arguments],
            check=True, stdout=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip


@contextmanager
def postgres_server(credentials: Credentials | None = None) -> Generator[PostgresServer]:
    """Run a server until the context is left; skips the test where a part of it is missing."""
    if (missing := missing_part()) is not None:
        pytest.skip(missing)
    folder = Path(tempfile.mkdtemp(prefix=f"switchfold-pg-{os.getpid()}-"))
    server = PostgresServer(folder, credentials)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
