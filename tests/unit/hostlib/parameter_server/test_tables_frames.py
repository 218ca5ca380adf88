# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames, definitions and denials of sparse tables, there and back; those that are malformed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.hostlib.errors import (
    ConfigurationError,
    DiskFullError,
    ExchangeTimeoutError,
    HostlibError,
    LogOrderError,
    NonFiniteGradientError,
    PeerProtocolError,
    ServerRestartedError,
)
from switchfold.hostlib.parameter_server.rows import (
    Adagrad,
    Adam,
    Ftrl,
    GradientSum,
    Normal,
    Sgd,
    Uniform,
    Zeros,
)
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.definition import MAX_NAME_CHARACTERS
from switchfold.hostlib.parameter_server.tables.denial import describe, error_of
from switchfold.hostlib.peers.frames import (
    MAX_BATCH_BYTES,
    DeniedFrame,
    EnteredFrame,
    EnterFrame,
    Frame,
    FrameKind,
    Packable,
    ReceiptFrame,
    TableFrame,
    whole_version,
)
from switchfold.hostlib.peers.frames.header import MAX_PAYLOAD_BYTES

U32, U48, U64 = (st.integers(0, (1 << bits) - 1) for bits in (32, 48, 64))
TIMES = st.none() | st.tuples(U32, U32, U32)
TABLE_KINDS = (
    FrameKind.DEFINE,
    FrameKind.PUSH,
    FrameKind.ADVANCE,
    FrameKind.PULL,
    FrameKind.ROWS,
)


@st.composite
def table_frames(draw: st.DrawFn) -> TableFrame:
    kind = draw(st.sampled_from(TABLE_KINDS))
    size = draw(st.integers(0, MAX_PAYLOAD_BYTES[kind]))
    clock = draw(U32) if kind is FrameKind.PULL else 0
    is_measured = kind in {FrameKind.PUSH, FrameKind.PULL} and draw(st.booleans())
    is_model = kind is FrameKind.PULL and draw(st.booleans())
    return TableFrame(kind, size, draw(U64), draw(U32), draw(U32), clock, is_measured, is_model)


@settings(deadline=None, derandomize=True)
@given(
    st.one_of(
        st.builds(EnterFrame, U64, st.booleans(), U32),
        st.builds(EnteredFrame, U64, U32, U32, U32, U64),
        st.builds(ReceiptFrame, U64, st.just(0), TIMES, U48),
        st.builds(DeniedFrame, st.integers(0, 1 << 16), U64, st.booleans()),
        table_frames(),
    )
)
def test_frames_there_and_back(
    sent: EnterFrame | EnteredFrame | ReceiptFrame | DeniedFrame | TableFrame,
) -> None:
    packable: Packable = sent
    assert type(sent).unpack(Frame.unpack(packable.pack())) == sent


@settings(deadline=None, derandomize=True)
@given(U64, st.integers(0, (1 << 47) - 1), st.booleans())
def test_a_receipt_has_enough_of_a_version(version: int, distance: int, is_ahead: bool) -> None:
    known = version - distance if is_ahead else version + distance
    received = ReceiptFrame.unpack(Frame.unpack(ReceiptFrame(1, version=version).pack()))
    assert whole_version(received.version, known) == version


@pytest.mark.parametrize("kind", [*TABLE_KINDS, FrameKind.DENIED])
def test_larger_frames_are_refused(kind: FrameKind) -> None:
    limit = MAX_PAYLOAD_BYTES[kind]
    assert limit <= MAX_BATCH_BYTES
    with pytest.raises(PeerProtocolError, match=f"{kind.name} frame of {limit + 1} bytes"):
        Frame.unpack(TableFrame(kind, limit + 1, 1).pack())


OPTIMISERS = [
    GradientSum(),
    Sgd(learning_rate=0.1, momentum=0.5),
    Adagrad(learning_rate=0.1),
    Adam(learning_rate=0.1),
    Ftrl(alpha=0.1, l1=1.0),
]
INITIALISERS = [Zeros(), Uniform(low=-0.1, high=0.1), Normal(deviation=0.01)]


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda each: each.name)
@pytest.mark.parametrize("initialiser", INITIALISERS, ids=lambda each: type(each).__name__)
def test_definitions_there_and_back(optimiser: Sgd, initialiser: Normal) -> None:
    definition = TableDefinition(
        name="Gewichte é",
        width=3,
        max_rows=5,
        optimiser=optimiser,
        initialiser=initialiser,
        seed=(1 << 64) - 1,
        staleness=0,
        is_mean=True,
    )
    found = TableDefinition.unpack(definition.pack())
    assert found == definition
    assert found.number == definition.number
    assert found.differences(definition) == ""


PACKED = json.loads(TableDefinition(name="w", width=1).pack())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 40_000,
        json.dumps(PACKED | {"optimiser": {"kind": "Magic"}}).encode(),
        json.dumps(PACKED | {"optimiser": {"kind": "GradientSum", "rate": 1}}).encode(),
        json.dumps(PACKED | {"initialiser": 5}).encode(),
        json.dumps(PACKED | {"surprise": 5}).encode(),
        json.dumps(PACKED | {"width": "wide"}).encode(),
        json.dumps(PACKED | {"width": 1.5}).encode(),
        json.dumps(PACKED | {"width": True}).encode(),
        json.dumps(PACKED | {"max_rows": 2.5}).encode(),
        json.dumps(PACKED | {"seed": None}).encode(),
        json.dumps(PACKED | {"seed": 0.5}).encode(),
        json.dumps(PACKED | {"staleness": 0.5}).encode(),
        json.dumps(PACKED | {"is_mean": "no"}).encode(),
        json.dumps(PACKED | {"name": 7}).encode(),
        json.dumps(PACKED | {"name": "\ud800"}).encode(),
    ],
)
def test_malformed_definitions_are_refused(text: bytes) -> None:
    with pytest.raises((PeerProtocolError, ConfigurationError)):
        TableDefinition.unpack(text)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": ""}, "printable name"),
        ({"name": "a\nb"}, "printable name"),
        ({"name": "n" * (MAX_NAME_CHARACTERS + 1)}, "up to 256 characters"),
        ({"width": 0}, "rows of 0 values"),
        ({"width": (1 << 20) + 1}, "1 to 1048576 values"),
        ({"max_rows": 0}, "at most 0 rows"),
        ({"max_rows": (1 << 31) + 1}, "1 to 2147483648 rows"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 1 << 64}, "seed 18446744073709551616"),
        ({"staleness": -1}, "staleness -1; give 0"),
        ({"is_mean": True}, "only a synchronous table"),
        ({"staleness": 1, "is_mean": True}, "only a synchronous table"),
    ],
)
def test_definitions_out_of_range_are_refused(fields: dict[str, object], text: str) -> None:
    given_fields = {"name": "w", "width": 1, **fields}
    with pytest.raises(ConfigurationError, match=text):
        TableDefinition(**given_fields)  # type: ignore[arg-type]


def test_the_longest_definition_and_denial_fit_into_a_frame() -> None:
    definition = TableDefinition(name="\U0001f600" * MAX_NAME_CHARACTERS, width=1)
    assert len(definition.pack()) <= MAX_PAYLOAD_BYTES[FrameKind.DEFINE]
    denied = json.dumps(describe(ConfigurationError(f"{definition.name!r}" * 3)))
    assert len(denied) <= MAX_PAYLOAD_BYTES[FrameKind.DENIED]


def test_a_mismatch_names_the_differences() -> None:
    first = TableDefinition(name="w", width=1, optimiser=Sgd(learning_rate=0.1), staleness=3)
    second = TableDefinition(name="w", width=2, seed=5)
    assert first.differences(second) == (
        "width 1 instead of 2, optimiser Sgd(learning_rate=0.1, momentum=0.0) instead of"
        " GradientSum(), seed 0 instead of 5, staleness 3 instead of None"
    )


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("text"),
        DiskFullError("text"),
        NonFiniteGradientError("text", 3, -(1 << 63)),
        ExchangeTimeoutError("text", [1, 2]),
        ServerRestartedError("text"),
    ],
)
def test_denials_there_and_back(error: HostlibError) -> None:
    found = error_of(json.loads(json.dumps(describe(error))), "parameter server 3")
    assert type(found) is type(error)
    assert str(found) == "parameter server 3: text"
    assert vars(found) == vars(error)


def test_a_denial_of_an_unknown_kind_keeps_its_text() -> None:
    found = error_of(describe(LogOrderError("text")), "parameter server 3")
    assert (type(found), str(found)) == (PeerProtocolError, "parameter server 3: text")
