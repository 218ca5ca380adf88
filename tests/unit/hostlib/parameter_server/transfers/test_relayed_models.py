# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that workers send on to each other, and what happens when they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from fake_transfers import granted, say_nothing, server, worker
from loopback import LOOPBACK
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import ConfigurationError, PeerClosedError
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.tables.pulls.open_pull import OpenPull
from switchfold.hostlib.parameter_server.transfers import FabricWorker
from switchfold.hostlib.parameter_server.transfers.models.outgoing_model import OutgoingModel
from switchfold.hostlib.parameter_server.transfers.models.relay_receiver import IncomingModel
from switchfold.hostlib.parameter_server.transfers.models.worker_relay import WorkerRelay
from switchfold.hostlib.peers.frames import FrameKind, TableFrame
from time_bound import wait_until
from transfer_scene import WAIT_S, TransferScene

MODEL = TensorDefinition(name="model", num_values=1 << 18)
FAST = (0.0, 1.0, 10_000_000_000)
SLOW = (0.0, 3600.0, 80_000)
"""Of a model of 1 MB: a hundred seconds."""
HOUR_S = 3600.0
NUM_WORKERS = 3


class Chain:
    """Workers that ask for the model, and a scheduler that has them send it on."""

    def __init__(self, scene: TransferScene) -> None:
        self.scene = scene
        self.workers = [scene.worker(number) for number in range(NUM_WORKERS)]
        self.values = np.random.default_rng(5).standard_normal(MODEL.num_values).astype(np.float32)
        tensor = self.workers[0]._tensor
        tensor.push(self.values).result(WAIT_S)
        self.values = tensor.pull(0, MODEL.num_values).result(WAIT_S)
        self.asked: list[Any] = []

    def place(self, number: int) -> tuple[str, int]:
        relay = self.scene.fake.wait_for(worker(number), "register")[0].relay
        return relay.address, relay.port

    def ask(self) -> list[Future[Values]]:
        """Have each worker ask for its model, one after the other."""
        futures: list[Future[Values]] = []
        for each in self.workers:
            futures.append(each.get())
            count = len(self.asked) + 1
            self.asked = self.scene.fake.wait_for(server(), "model_requested", count)
        return futures

    def grant(
        self, span: tuple[float, float, int] = FAST, wait_s: float = HOUR_S, **places: Any
    ) -> None:
        """Grant the last model of each worker; the second comes from the first, and so on.

        `places`: where workers listen, by "w" and number, if not where they do.
        """
        last = self.asked[-NUM_WORKERS:]
        messages = [granted(asked.transfer_id, 0, span) for asked in last]
        for number in range(1, NUM_WORKERS):
            address, port = places.get(f"w{number}") or self.place(number)
            hop = api.ModelHop(
                sender_transfer_id=last[number - 1].transfer_id,
                address=address,
                port=port,
                wait_s=wait_s,
            )
            messages[number].granted.model_hop.CopyFrom(hop)
        self.scene.fake.tell(server(), *reversed(messages))

    def check(self, futures: list[Future[Values]]) -> None:
        for future in futures:
            assert np.array_equal(future.result(WAIT_S), self.values)

    def relay(self, number: int) -> WorkerRelay:
        found = self.workers[number]._relay
        assert found is not None
        return found

    def await_part(self, number: int) -> None:
        """Wait until a worker has got a part of its model from the one before it."""
        relay = self.relay(number)

        def has_some() -> bool:
            incoming = [each.incoming for each in [*relay._coming.values()]]
            return any(each is not None and each.filled_bytes > 0 for each in incoming)

        wait_until(has_some, "a part of the model", WAIT_S)

    def await_nothing_left(self, numbers: Sequence[int] = range(NUM_WORKERS)) -> None:
        """Wait until relays have forgotten all models, and their memory is free."""

        def left() -> list[Any]:
            relays = [self.relay(number) for number in numbers]
            kept: list[Any] = [
                each for relay in relays for each in (relay._coming, relay._going, relay._early)
            ]
            kept += [link._open for relay in relays for link in [*relay._links.values()]]
            kept += [relay._receiver._memory.held_bytes for relay in relays]
            return [each for each in kept if each]

        wait_until(lambda: not left(), lambda: f"these are left: {left()}", WAIT_S)

    def sent_bytes(self, number: int) -> int:
        """Return what the server has handed to the kernel for a worker's tables."""
        return self.scene.cluster.servers[0].tables._clients[number].connection.sent_bytes


@contextmanager
def made(**options: Any) -> Iterator[Chain]:
    with TransferScene(
        say_nothing,
        NUM_WORKERS,
        definition=MODEL,
        model_wait_s=WAIT_S,
        relay_models=True,
        relay_address=LOOPBACK,
        **options,
    ) as scene:
        yield Chain(scene)


def test_the_server_sends_one_model_and_all_workers_have_it() -> None:
    with made() as chain:
        before = [chain.sent_bytes(number) for number in range(NUM_WORKERS)]
        futures = chain.ask()
        chain.grant()
        chain.check(futures)
        chain.scene.fake.wait_for(server(), "model_delivered", NUM_WORKERS)
        assert chain.scene.counter("relayed_models") == NUM_WORKERS - 1
        assert not chain.scene.counter("failed_relays")
        sent = [chain.sent_bytes(number) - before[number] for number in range(NUM_WORKERS)]
        assert sent[0] >= 4 * MODEL.num_values
        assert max(sent[1:]) < MODEL.num_values
        counters = [each.counters for each in chain.workers]
        assert [each["taken_models"] for each in counters] == [0, 1, 1]
        assert [each["sent_on_models"] for each in counters] == [1, 1, 0]
        # Each worker's next update is of the version that it has got.
        assert [each.commits.tolist() for each in chain.workers] == [[0]] * NUM_WORKERS


def test_bytes_go_on_as_they_come() -> None:
    """The last worker has a part of the model while the server still sends it."""
    with made() as chain:
        chain.ask()
        session = chain.workers[-1]._tensor.client.sessions[0]
        session._heard_s = -1.0
        chain.grant(SLOW)
        chain.await_part(NUM_WORKERS - 1)
        assert not chain.scene.fake.said(server(), "model_delivered")
        assert session._heard_s > 0, "it does not look as if the server were silent"


def test_models_come_one_after_the_other_over_the_same_connections() -> None:
    with made() as chain:
        for _ in range(3):
            futures = chain.ask()
            chain.grant()
            chain.check(futures)
        chain.scene.await_counter("relayed_models", 3 * (NUM_WORKERS - 1))
        assert all(len(chain.relay(number)._links) <= 1 for number in range(NUM_WORKERS))
        chain.await_nothing_left()


def test_the_server_sends_what_its_sender_cannot_send_on() -> None:
    """Nobody listens where the second worker should: it and those after it get it directly."""
    with made() as chain:
        futures = chain.ask()
        chain.relay(1)._receiver.close()
        chain.grant()
        chain.check(futures)
        assert chain.workers[0].counters["failed_relays"] == 1
        assert chain.scene.counter("failed_relays") == NUM_WORKERS - 1
        withdrawn = chain.scene.fake.wait_for(server(), "withdrawn", NUM_WORKERS - 1)
        ids = {each.transfer_id for each in chain.asked[1:]}
        assert {each.transfer_id for each in withdrawn} == ids
        assert all(each.is_sent_ungranted for each in withdrawn)
        chain.await_nothing_left()


def test_the_server_sends_what_does_not_come_in_time() -> None:
    with made() as chain:
        futures = chain.ask()
        relay = chain.relay(0)
        relay._pass_on = lambda *_: None  # pyright: ignore[reportAttributeAccessIssue]
        chain.grant(wait_s=0.05)
        chain.check(futures)
        assert chain.scene.counter("failed_relays") == NUM_WORKERS - 1


def test_a_model_is_not_given_up_while_its_sender_waits_for_its_own() -> None:
    with made() as chain:
        chain.ask()
        models: Any = chain.scene.cluster.servers[0].tables.models
        chains = models._chains
        looks: list[OutgoingModel] = []
        look = chains._look

        def note_look(model: OutgoingModel) -> None:
            look(model)
            looks.append(model)

        chains._look = note_look  # pyright: ignore[reportAttributeAccessIssue]
        chain.grant(SLOW, wait_s=0.01)
        wait_until(lambda: len(looks) >= 2 * NUM_WORKERS, "looks at late models", WAIT_S)
        assert not chain.scene.counter("failed_relays")
        assert len(set(looks)) == NUM_WORKERS - 1


def test_other_bytes_than_the_model_are_of_no_use(caplog: pytest.LogCaptureFixture) -> None:
    with made() as chain:
        futures = chain.ask()
        relay = chain.relay(0)
        pass_on = relay._pass_on

        def pass_on_wrong(session: Any, number: int, piece: memoryview) -> None:
            pass_on(session, number, memoryview(bytes(len(piece))))

        relay._pass_on = pass_on_wrong  # pyright: ignore[reportAttributeAccessIssue]
        chain.grant()
        chain.check(futures)
        chain.await_nothing_left()
        assert chain.workers[1].counters["failed_relays"] == 1
        assert "other bytes than the model's" in caplog.text


def test_a_worker_that_leaves_within_a_chain_holds_nobody_up() -> None:
    with made() as chain:
        futures = chain.ask()
        chain.grant(SLOW)
        second = chain.relay(1)
        wait_until(lambda: bool(second._coming), "the server's word", WAIT_S)
        chain.workers[1]._tensor.client.close()
        chain.workers[1].close()
        chain.check(futures[2:])
        with pytest.raises(PeerClosedError):
            futures[1].result(WAIT_S)
        assert not futures[0].done()


def test_a_worker_that_ends_within_its_model_holds_nobody_up() -> None:
    """Those behind it have a part of the model by then, and get all of it from the server."""
    with made() as chain:
        futures = chain.ask()
        chain.grant(SLOW)
        chain.await_part(NUM_WORKERS - 1)
        chain.workers[0]._tensor.client.close()
        chain.workers[0].close()
        chain.check(futures[1:])
        chain.await_nothing_left(range(1, NUM_WORKERS))


def test_a_worker_that_relays_no_more_says_so() -> None:
    """Its table client stays, and what it waits for comes from the server."""
    with made() as chain:
        futures = chain.ask()
        places = {"w1": chain.place(1)}
        chain.workers[1].close()
        chain.grant(**places)
        chain.check(futures)
        assert chain.scene.counter("failed_relays") == NUM_WORKERS - 1
        assert not chain.scene.counter("failed_models"), "no connection has ended"


def test_a_chain_whose_first_model_has_begun_is_none() -> None:
    """The server sends the other model as it is granted."""
    with made() as chain:
        futures = chain.ask()
        first = chain.asked[0]
        chain.scene.fake.tell(server(), granted(first.transfer_id, 0, SLOW))
        session = chain.workers[0]._tensor.client.sessions[0]
        wait_until(
            lambda: any(pull.filled_bytes for pull in [*session._pulls.values()]), "a byte", WAIT_S
        )
        chain.scene.fake.tell(
            server(), *(_after(asked, first, chain.place(1)) for asked in chain.asked[1:])
        )
        chain.check(futures[1:])
        assert not chain.scene.counter("relayed_models")
        assert not chain.scene.counter("failed_relays")


def _after(asked: Any, first: Any, place: tuple[str, int]) -> api.SchedulerMessage:
    message = granted(asked.transfer_id, 0, FAST)
    address, port = place
    hop = api.ModelHop(
        sender_transfer_id=first.transfer_id, address=address, port=port, wait_s=HOUR_S
    )
    message.granted.model_hop.CopyFrom(hop)
    return message


def test_a_frame_in_flight_changes_nothing_of_an_answer_that_came_from_a_worker() -> None:
    """The server has begun to send the same answer, of a newer model, as the relay was late."""
    pull = OpenPull(TableFrame(FrameKind.PULL, 8, 1, num_keys=1), memoryview(b""), 3, print)
    in_flight = pull.room(pull.size_bytes, is_last=True)
    answer = np.arange(pull.size_bytes // 4, dtype=np.uint32)
    pull.fill(answer.data.cast("B"))
    rows = pull.rows()
    in_flight[:] = bytes(in_flight.nbytes)
    assert np.array_equal(rows.values.view(np.uint32).reshape(-1), [0, 1, 2])
    assert rows.updates.tolist() == [3]


def test_models_of_one_id_hold_memory_once() -> None:
    """Before the server's word, nobody knows which of them is the right one."""
    with made() as chain:
        relay, loop = chain.relay(0), chain.workers[0]._loop
        receiver = relay._receiver
        models = [IncomingModel(bytes(16), 1) for _ in range(2)]
        for model in models:
            receiver._peers.loop.run(lambda model=model: receiver._memory.begin(model))
            loop.run(lambda model=model: relay._on_progress(model))
        assert [model.is_over for model in models] == [False, True]
        chain.await_nothing_left()


def test_a_worker_without_a_relay_says_nothing_of_one() -> None:
    with TransferScene(say_nothing, definition=MODEL, model_wait_s=WAIT_S) as scene:
        scene.worker(0)
        assert not scene.fake.wait_for(worker(0), "register")[0].HasField("relay")


def test_others_need_an_address() -> None:
    with TransferScene(say_nothing, definition=MODEL, model_wait_s=WAIT_S) as scene:
        tensor = scene.tensor(0)
        with pytest.raises(ConfigurationError, match=r"relay_address or ClientOptions\.source"):
            FabricWorker(tensor, scene.options("h0", relay_models=True))
