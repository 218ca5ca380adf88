# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of a TableEntry's counter, meter and idle timeout (sections 9.1.5 and 9.1.6)."""

from finsy.proto import p4r, rpc_code

from ..p4info.schema import Meter, Table
from ..service.status import RequestError
from .arrays import counts_of
from .meters import check_config, refuse_counters


def check_written(table: Table, entry: p4r.TableEntry) -> None:
    """Refuse a written entry with fields that its table does not have; changes nothing."""
    if entry.is_const:
        raise _bad(table, "is_const", "only the switch sets it")
    if entry.HasField("time_since_last_hit"):
        raise _bad(table, "time_since_last_hit", "can be read only")
    if entry.idle_timeout_ns:
        if entry.is_default_action:
            raise _bad(table, "idle_timeout_ns", "the default entry never expires")
        if entry.idle_timeout_ns < 0:
            raise _bad(table, "idle_timeout_ns", "must not be negative")
        if not table.has_idle_timeout:
            raise _bad(table, "idle_timeout_ns", "the table has no idle timeouts")
    if entry.HasField("meter_counter_data"):
        raise refuse_counters(f"table {table.name}: meter_counter_data")
    if entry.HasField("counter_data"):
        check_counter(table)
        counts_of(f"table {table.name}", entry.counter_data)
    if entry.HasField("meter_config"):
        if table.meter is None:
            raise _bad(table, "meter_config", "the table has no direct meter")
        check_config(table.meter, entry.meter_config)


def check_queried(table: Table, query: p4r.TableEntry) -> None:
    """Refuse a query for fields that the table's entries do not have."""
    if query.HasField("time_since_last_hit"):
        if query.is_default_action:
            raise _bad(table, "time_since_last_hit", "the default entry has none")
        if not table.has_idle_timeout:
            raise _bad(table, "time_since_last_hit", "the table has no idle timeouts")
    if query.HasField("meter_counter_data"):
        raise refuse_counters(f"table {table.name}: meter_counter_data")


def check_counter(table: Table) -> None:
    """Raise INVALID_ARGUMENT if the table has no direct counter."""
    if not table.has_counter:
        raise RequestError(rpc_code.INVALID_ARGUMENT, f"table {table.name} has no direct counter")


def check_meter(table: Table) -> Meter:
    """Return the direct meter; raise INVALID_ARGUMENT if the table has none."""
    if table.meter is None:
        raise RequestError(rpc_code.INVALID_ARGUMENT, f"table {table.name} has no direct meter")
    return table.meter


def _bad(table: Table, field: str, reason: str) -> RequestError:
    return RequestError(rpc_code.INVALID_ARGUMENT, f"table {table.name}: {field}: {reason}")
