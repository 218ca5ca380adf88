# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Running softswitches of a tree in this process, the links between them, and their sessions."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

import numpy as np

from loopback import LOOPBACK
from softswitch_job import OPTIONS, VALUES, pack
from switchfold import p4src
from switchfold.hostlib.control.view import Endpoint, JobView, Member, TreeView
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from switchfold.hostlib.transports.mem import MAX_FRAME_BYTES, MemTransport
from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.switch.impairments import Impairments
from switchfold.softswitch.switch.mem_port import MemPort
from switchfold.softswitch.switch.switch import Switch
from switchfold.softswitch.switch.table_entries import Match
from tree_fabric import (
    PARENT_PORT,
    Address,
    Shape,
    Tree,
    TreeEntry,
    TreeJob,
    switch_address,
    worker_address,
)

POLL_S = 0.02
BATCH = 64
GENERATION = 1000
FIRST_OF_SEVERAL_ROOTS = 20
"""Behind the numbers of all switches that the trees share."""


class _Link:
    """Carries frames between two switches, one thread for each direction."""

    def __init__(self, one: MemPort, other: MemPort) -> None:
        self._is_closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._carry, args=ends, name=f"link {ends[0].number}")
            for ends in ((one, other), (other, one))
        ]
        for thread in self._threads:
            thread.start()

    def _carry(self, source: MemPort, to: MemPort) -> None:
        frames = np.zeros((BATCH, MAX_FRAME_BYTES), np.uint8)
        lengths = np.zeros(BATCH, np.int32)
        while not self._is_closing.is_set():
            count = source.receive(frames, lengths, POLL_S)
            if count:
                # A full queue loses the rest, as a link does.
                to.send(frames[:count], lengths[:count])

    def close(self) -> None:
        self._is_closing.set()
        for thread in self._threads:
            thread.join()


class TreeOfSwitches:
    """One job on running softswitches with mem ports: a tree, or one for each of several roots."""

    def __init__(
        self,
        shape: Shape,
        variant: p4src.Variant,
        *,
        slot_counts: tuple[int, ...] = (64,),
        straggler: StragglerPolicy = WAIT_FOR_ALL,
        names_children: bool = False,
        impairments: Callable[[int], Impairments] | None = None,
    ) -> None:
        parents = len(slot_counts)
        first_root = 0 if parents == 1 else FIRST_OF_SEVERAL_ROOTS
        trees = [
            Tree(shape, root=first_root + index, parent_port=PARENT_PORT + index)
            for index in range(parents)
        ]
        self.tree = trees[0]
        self.values_per_packet = VALUES[variant]
        self.straggler = straggler
        num_workers = len(self.tree.workers)
        self.jobs = [
            TreeJob(
                tree=tree,
                job_id=7 + index,
                generation=GENERATION,
                slot_base=11 + sum(slot_counts[:index]),
                slot_count=slot_counts[index],
                quorum=straggler.quorum or num_workers,
                allow_partial=straggler.allow_partial,
                names_children=names_children,
            )
            for index, tree in enumerate(trees)
        ]
        self.peers = {worker: PeerServer(LOOPBACK) for worker in self.tree.workers}
        """Where workers fetch results that they missed; the sessions close them."""
        self._program = compile_program(p4src.artefacts(variant).json)
        self._seeds = iter(range(1, 1000))
        self._impairments = impairments
        numbers = sorted({node.number for tree in trees for node in tree.nodes})
        with ExitStack() as stack:
            self.switches = {
                number: stack.enter_context(self._switch(number)) for number in numbers
            }
            for tree in trees:
                for node in tree.nodes:
                    if node.parent is not None and node.own is not None:
                        if tree is not self.tree and node.parent != tree.root:
                            continue  # the first tree's link
                        above = self.switches[node.parent].ports.mem_port(node.own.port)
                        below = self.switches[node.number].ports.mem_port(tree.parent_port)
                        stack.callback(_Link(above, below).close)
            self._resources = stack.pop_all()

    def _switch(self, number: int) -> Switch:
        switch = Switch(self._program)
        places = [
            (job, node) for job in self.jobs for node in job.tree.nodes if node.number == number
        ]
        ports = {child.port: child.node is None for _, node in places for child in node.children}
        ports |= {job.tree.parent_port: False for job, node in places if node.own is not None}
        for port, is_host in ports.items():
            # A link between switches is impaired where its frames enter, a host's link here.
            switch.ports.add(
                port,
                "mem",
                impairments_in=self._next_impairments(),
                impairments_out=self._next_impairments() if is_host else None,
            )
        for job, node in places:
            for entry in job.entries(node):
                self._insert(switch, entry)
            switch.replication.set_multicast_group(job.job_id, job.replicas(node))
        switch.start()
        return switch

    def _next_impairments(self) -> Impairments | None:
        return None if self._impairments is None else self._impairments(next(self._seeds))

    def _insert(self, switch: Switch, entry: TreeEntry) -> None:
        (table,) = [
            table
            for table in self._program.model.tables
            if table.name.rsplit(".", 1)[-1] == entry.table
        ]
        (action,) = [a for a in table.actions if a.name.rsplit(".", 1)[-1] == entry.action]
        key = pack(list(entry.match.values()), [one.width for one in table.key])
        params = pack(list(entry.params.values()), [one.width for one in action.parameters])
        switch.tables.insert(table.position, Match(key), action.position, params)

    def view(self, worker: int) -> JobView:
        """Return a worker's view of the job."""
        node, child = self.tree.attachment(worker)
        return JobView(
            job=1,
            generation=GENERATION,
            worker_id=worker,
            members=tuple(
                Member(worker_id=one, peer_address=LOOPBACK, peer_port=self.peers[one].port)
                for one in sorted(self.tree.workers)
            ),
            trees=tuple(
                TreeView(tree_id=job.job_id, slot_count=job.slot_count) for job in self.jobs
            ),
            child_id=child.child_id,
            worker_bitmap=self.jobs[0].worker_bitmap(worker),
            values_per_packet=self.values_per_packet,
            switch=_endpoint(switch_address(node.number)),
            straggler=self.straggler,
            neighbours=tuple(child.workers[0] for child in node.children if child.node is None),
        )

    @contextmanager
    def sessions(self, options: SessionOptions = OPTIONS) -> Generator[list[Session]]:
        """Open all workers' sessions, in the order of worker ids."""
        with ExitStack() as stack:
            opened: list[Session] = []
            for worker in sorted(self.tree.workers):
                node, child = self.tree.attachment(worker)
                port = self.switches[node.number].ports.mem_port(child.port)
                transport = MemTransport(port, _endpoint(worker_address(worker)))
                peers = self.peers[worker]
                session = Session.direct(self.view(worker), transport, options, peers)
                opened.append(stack.enter_context(session))
            yield opened

    def outcomes(self, node: int) -> dict[Outcome, int]:
        """Return a switch's packets by outcome; those that are not zero."""
        (counter,) = [
            counter
            for counter in self._program.model.counters
            if counter.name.rsplit(".", 1)[-1] == "outcomes"
        ]
        switch = self.switches[node]
        counts = {o: switch.arrays.read_counter(counter.position, o)[0] for o in Outcome}
        return {outcome: count for outcome, count in counts.items() if count}

    def __enter__(self) -> TreeOfSwitches:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()


def _endpoint(address: Address) -> Endpoint:
    return Endpoint(
        address=str(ipaddress.IPv4Address(address.ipv4)),
        mac=":".join(f"{byte:02x}" for byte in address.mac.to_bytes(6, "big")),
        udp_port=address.udp_port,
    )
