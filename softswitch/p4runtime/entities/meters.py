# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Meter configurations (section 9.4): what is accepted, and the indirect meters."""

from collections.abc import Iterator

from finsy.proto import p4i, p4r, rpc_code

from ..p4info.schema import Meter, Schema, find, select
from ..service.dataplane import MeterRates
from ..service.status import RequestError
from ..writes.journal import Backend
from .arrays import check_modify, selected_indexes


def check_config(meter: Meter, config: p4r.MeterConfig) -> None:
    """Raise INVALID_ARGUMENT if a meter of this type cannot have the configuration."""
    rates = (config.cir, config.cburst, config.pir, config.pburst, config.eburst)
    if min(rates) < 0:
        raise _bad(meter, "rates and bursts must not be negative")
    is_single_rate = meter.kind != p4i.MeterSpec.TWO_RATE_THREE_COLOR
    if config.eburst and meter.kind != p4i.MeterSpec.SINGLE_RATE_THREE_COLOR:
        raise _bad(meter, "eburst: only single-rate three-colour meters have one")
    if is_single_rate and (config.pir != config.cir or config.pburst != config.cburst):
        raise _bad(meter, "pir and pburst must equal cir and cburst: it has a single rate")
    if config.pir < config.cir:
        raise _bad(meter, "pir must not be below cir")
    if config.eburst:
        raise RequestError(
            rpc_code.UNIMPLEMENTED, f"meter {meter.name}: eburst: excess bursts are not metered"
        )


def rates_of(config: p4r.MeterConfig | None) -> MeterRates | None:
    """Return a configuration in the data plane's form; None means green for all packets."""
    if config is None:
        return None
    return MeterRates(config.cir, config.cburst, config.pir, config.pburst)


def refuse_counters(owner: str) -> RequestError:
    """Return the refusal of per-colour counters."""
    return RequestError(
        rpc_code.UNIMPLEMENTED, f"{owner}: packets are not counted by colour; use a counter"
    )


class MeterStore:
    """The configurations of the indirect meters of one program. The caller serialises calls."""

    def __init__(self, schema: Schema, backend: Backend) -> None:
        self._meters = schema.meters
        self._backend = backend
        self._configs: dict[int, dict[int, p4r.MeterConfig]] = {
            meter.id: {} for meter in schema.meters.values()
        }

    def write(self, update_type: int, entry: p4r.MeterEntry) -> None:
        """Carry out one update."""
        check_modify(update_type, "meter_entry")
        meter = find(self._meters, entry.meter_id, "meter_id")
        if entry.HasField("counter_data"):
            raise refuse_counters(f"meter {meter.name}: counter_data")
        config: p4r.MeterConfig | None = None
        if entry.HasField("config"):
            config = p4r.MeterConfig()
            config.CopyFrom(entry.config)
            check_config(meter, config)
        for index in selected_indexes(f"meter {meter.name}", meter.size, entry):
            self._replace(meter, index, config)

    def read(self, query: p4r.MeterEntry) -> Iterator[p4r.Entity]:
        """Return the selected meters, without a config for those that have the default one."""
        for meter in select(self._meters, query.meter_id, "meter_id"):
            if query.HasField("counter_data"):
                raise refuse_counters(f"meter {meter.name}: counter_data")
            for index in selected_indexes(f"meter {meter.name}", meter.size, query):
                entry = p4r.MeterEntry(meter_id=meter.id, index=p4r.Index(index=index))
                config = self._configs[meter.id].get(index)
                if config is not None:
                    entry.config.CopyFrom(config)
                yield p4r.Entity(meter_entry=entry)

    def _replace(self, meter: Meter, index: int, config: p4r.MeterConfig | None) -> None:
        old = self._configs[meter.id].get(index)
        self._assign(meter, index, config)
        self._backend.journal.note(lambda: self._assign(meter, index, old))

    def _assign(self, meter: Meter, index: int, config: p4r.MeterConfig | None) -> None:
        self._backend.dataplane.arrays.write_meter(meter.position, index, rates_of(config))
        if config is None:
            self._configs[meter.id].pop(index, None)
        else:
            self._configs[meter.id][index] = config


def _bad(meter: Meter, reason: str) -> RequestError:
    return RequestError(rpc_code.INVALID_ARGUMENT, f"meter {meter.name}: {reason}")
