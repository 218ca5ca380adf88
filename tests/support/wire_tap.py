# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A tap in a worker's cable, in testbeds of mode udp: it records frames and injects others."""

from __future__ import annotations

import selectors
import socket
import threading

from switchfold.bmv2_topos.processes.worker_runs import WorkerEndpoint

LONGEST_FRAME = 9216
CLOSING_S = 0.1


class WireTap:
    """Carries the frames of one cable in both directions and records them."""

    def __init__(self, endpoint: WorkerEndpoint) -> None:
        self.endpoint = endpoint
        self.to_switch: list[bytes] = []
        self.to_worker: list[bytes] = []
        self._switch = ("127.0.0.1", endpoint.switch_udp_port)
        self._worker: tuple[str, int] | None = None
        self._far = self._open(endpoint.host_udp_port)
        self._near = self._open(0)
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"tap of {endpoint.host.name}")
        self._thread.start()

    @staticmethod
    def _open(port: int) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        opened.bind(("127.0.0.1", port))
        return opened

    def variables(self, job: str) -> dict[str, str]:
        """Return the environment of a worker at the end of this cable."""
        host, port = self._near.getsockname()
        return {
            **self.endpoint.environment(job),
            "SWITCHFOLD_TUNNEL_SWITCH": f"{host}:{port}",
            "SWITCHFOLD_TUNNEL_LOCAL": "127.0.0.1:0",
        }

    def inject(self, frame: bytes) -> None:
        """Send a frame into the switch's port."""
        self._far.sendto(frame, self._switch)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._far, selectors.EVENT_READ)
            selector.register(self._near, selectors.EVENT_READ)
            while not self._is_closing.is_set():
                for key, _ in selector.select(CLOSING_S):
                    if key.fileobj is self._far:
                        self._carry_down()
                    else:
                        self._carry_up()

    def _carry_down(self) -> None:
        frame = self._far.recv(LONGEST_FRAME)
        self.to_worker.append(frame)
        if self._worker is not None:
            self._near.sendto(frame, self._worker)

    def _carry_up(self) -> None:
        frame, self._worker = self._near.recvfrom(LONGEST_FRAME)
        self.to_switch.append(frame)
        self._far.sendto(frame, self._switch)

    def close(self) -> None:
        """Cut the cable."""
        self._is_closing.set()
        self._thread.join()
        self._far.close()
        self._near.close()
