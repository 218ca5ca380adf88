# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Four workers and a P4 switch in one process: the switch sums the arrays of all workers.

The example needs a C compiler, but no privileges and no network: the workers are threads on the
switch's `mem` ports. In a real network the controller does what `install_job` does here.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from switchfold import p4src, softswitch
from switchfold.hostlib import Endpoint, JobView, MemTransport, Session

NUM_WORKERS, SLOTS, JOB, GENERATION, GROUP = 4, 64, 1, 1, 1
SWITCH = Endpoint(address="10.0.0.254", mac="02:00:00:00:00:fe")
WORKERS = [
    Endpoint(address=f"10.0.0.{n}", mac=f"02:00:00:00:00:0{n}", udp_port=40000)
    for n in range(1, NUM_WORKERS + 1)
]


def number(text: str) -> int:
    """Return an IPv4 or MAC address as an integer."""
    if ":" in text:
        return int(text.replace(":", ""), 16)
    return int.from_bytes(bytes(map(int, text.split("."))))


def install_job(switch: softswitch.Switch, program: softswitch.CompiledProgram) -> None:
    """Admit the workers to the switch, and set where it sends results."""

    def insert(table_name: str, action_name: str, key: list[int], parameters: list[int]) -> None:
        table = next(t for t in program.model.tables if t.name.endswith(f".{table_name}"))
        action = next(a for a in table.actions if a.name.endswith(f".{action_name}"))
        fields = zip(key, table.key, strict=True)
        packed = b"".join(value.to_bytes((f.width + 7) // 8) for value, f in fields)
        fields = zip(parameters, action.parameters, strict=True)
        params = b"".join(value.to_bytes((p.width + 7) // 8) for value, p in fields)
        switch.tables.insert(table.position, softswitch.Match(packed), action.position, params)

    everybody = (1 << NUM_WORKERS) - 1
    root = [GENERATION, 0, SLOTS, everybody, NUM_WORKERS, NUM_WORKERS, GROUP, 0, 0, 0]
    insert("job", "admit_root", [JOB], root)
    for i, worker in enumerate(WORKERS):
        port, address, mac = i + 1, number(worker.address), number(worker.mac)
        insert("worker", "admit_worker", [JOB, i, port, address], [1 << i, 1 << i, 1])
        insert("worker_address", "set_worker_address", [JOB, i + 1], [mac, address, 40000])
    switch.replication.set_multicast_group(GROUP, [(i + 1, i + 1) for i in range(NUM_WORKERS)])


def work(switch: softswitch.Switch, worker_id: int) -> NDArray[np.float32]:
    """Run one worker: sum an array with the others."""
    view = JobView.on_one_switch(
        job=JOB,
        generation=GENERATION,
        worker_id=worker_id,
        num_workers=NUM_WORKERS,
        slot_count=SLOTS,
        values_per_packet=352,
        switch=SWITCH,
    )
    transport = MemTransport(switch.ports.mem_port(worker_id + 1), WORKERS[worker_id])
    with Session.direct(view, transport) as session:
        gradient = np.random.default_rng(worker_id).standard_normal(100_000, dtype=np.float32)
        return session.allreduce(gradient).result()


def main() -> None:
    program = softswitch.compile_program(p4src.artefacts("wide").json)
    with softswitch.Switch(program) as switch, ThreadPoolExecutor(NUM_WORKERS) as threads:
        for port in range(1, NUM_WORKERS + 1):
            switch.ports.add(port, "mem")
        install_job(switch, program)
        switch.start()
        sums = list(threads.map(partial(work, switch), range(NUM_WORKERS)))
    exact = sum(
        np.random.default_rng(i).standard_normal(100_000, dtype=np.float32).astype(float)
        for i in range(NUM_WORKERS)
    )
    print("identical on all workers:", all((one == sums[0]).all() for one in sums))
    print(f"largest error: {np.abs(sums[0] - exact).max():.1e}")


if __name__ == "__main__":
    main()
