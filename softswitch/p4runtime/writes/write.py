# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The Write RPC: the updates of a batch in order, with its atomicity (P4Runtime 1.4 section 12)."""

from finsy.proto import p4r, rpc_code

from ...errors import SoftswitchError
from ..service.pipeline_config import Pipeline
from ..service.status import RequestError, request_error


def write_updates(pipeline: Pipeline, request: p4r.WriteRequest) -> list[RequestError | None]:
    """Carry out the updates; returns one result per update, None for success.

    CONTINUE_ON_ERROR tries every update. The other modes stop at the first failure and undo the
    updates before it; all other updates get ABORTED. With DATAPLANE_ATOMIC, no packet sees only a
    part of the batch.
    """
    mode = request.atomicity
    if mode == p4r.WriteRequest.CONTINUE_ON_ERROR:
        return _try_each(pipeline, request)
    if mode == p4r.WriteRequest.ROLLBACK_ON_ERROR:
        return _write_batch(pipeline, request)
    if mode == p4r.WriteRequest.DATAPLANE_ATOMIC:
        with pipeline.backend.dataplane.atomically():
            return _write_batch(pipeline, request)
    raise RequestError(rpc_code.INVALID_ARGUMENT, f"atomicity {mode}: is not a mode")


def _try_each(pipeline: Pipeline, request: p4r.WriteRequest) -> list[RequestError | None]:
    run = pipeline.stores.start_run()
    results: list[RequestError | None] = []
    for update in request.updates:
        if run.take(update):
            continue
        ended = run.flush()
        results += ended
        if not (ended and run.take(update)):
            results.append(_try_update(pipeline, update))
    return results + run.flush()


def _try_update(pipeline: Pipeline, update: p4r.Update) -> RequestError | None:
    journal = pipeline.backend.journal
    try:
        pipeline.stores.write(update)
    except SoftswitchError as exc:
        journal.rollback()
        return request_error(exc)
    journal.forget()
    return None


def _write_batch(pipeline: Pipeline, request: p4r.WriteRequest) -> list[RequestError | None]:
    journal = pipeline.backend.journal
    journal.is_batch = True
    try:
        results = _until_failure(pipeline, request)
        if results and results[-1] is not None:
            journal.rollback()
            return _aborted(len(request.updates), len(results) - 1, results[-1])
        journal.forget()
    finally:
        journal.is_batch = False
    return results


def _until_failure(pipeline: Pipeline, request: p4r.WriteRequest) -> list[RequestError | None]:
    """Carry out the updates up to the first that fails; return a result for each tried."""
    run = pipeline.stores.start_run()
    results: list[RequestError | None] = []
    for update in request.updates:
        if run.take(update):
            continue
        ended = run.flush(stop_at_failure=True)
        results += ended
        if ended and ended[-1] is not None:
            return results
        if ended and run.take(update):
            continue
        try:
            pipeline.stores.write(update)
        except SoftswitchError as exc:
            return [*results, request_error(exc)]
        results.append(None)
    return results + run.flush(stop_at_failure=True)


def _aborted(count: int, failed: int, error: RequestError) -> list[RequestError | None]:
    reason = RequestError(rpc_code.ABORTED, f"not carried out: update {failed} failed")
    results: list[RequestError | None] = [reason] * count
    results[failed] = error
    return results
