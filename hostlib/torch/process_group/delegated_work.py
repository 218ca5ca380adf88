# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Work of a collective that Gloo runs; waiting for it detects ranks whose calls differ."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Any, final

import torch.distributed as dist
from torch.futures import Future

from ..errors import CollectiveMismatchError
from ..profiling import ProfiledEvent, no_events
from ..torch_seam import keep_for_ever, run_as_is
from .failure_report import FailureReport, look_pauses_s
from .work import NO_TIMEOUT


@final
@run_as_is
class DelegatedWork(dist.Work):
    """A work of Gloo. Errors are Gloo's, except CollectiveMismatchError.

    Gloo itself does not notice that ranks called different collectives: its work then stays pending
    until the group's timeout. Destroying the Gloo group would wait for that, so it is never freed.
    """

    def __init__(
        self,
        work: Any,
        place: str,
        report: FailureReport,
        gloo: Any,
        event: ProfiledEvent | None = None,
    ) -> None:
        with no_events():
            super().__init__()
        self._work = work
        self._place = place
        self._report = report
        self._gloo = gloo
        self._event = None if event is None else self._end_with_future(event)

    def _end_with_future(self, event: ProfiledEvent) -> ProfiledEvent | None:
        """Let the event end with Gloo's work; return it if only `wait` can end it."""
        try:
            future: Any = self._work.get_future()
        except RuntimeError:  # Gloo's reduce_scatter has none
            return event

        def end(_: Any) -> None:
            event.end()

        future.add_done_callback(end)
        return None

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Wait as Gloo does; raise CollectiveMismatchError if the ranks' calls differ."""
        limit_s = timeout.total_seconds() if timeout > NO_TIMEOUT else math.inf
        until_s = time.monotonic() + limit_s
        for pause_s in look_pauses_s():
            left_s = until_s - time.monotonic()
            is_last = left_s <= pause_s
            try:
                # Gloo takes zero for no limit.
                is_done = self._work.wait(timedelta(seconds=max(0.001, min(pause_s, left_s))))
            except RuntimeError as error:
                if not is_last and not self._work.is_completed():
                    self._check(None)
                    continue
                self._check(error)
                raise
            event, self._event = self._event, None
            if event is not None:
                event.end()
            return is_done
        raise AssertionError("the pauses do not end")

    def _check(self, cause: RuntimeError | None) -> None:
        differs = self._report.disagreement()
        if differs:
            if not self._work.is_completed():
                keep_for_ever(self._gloo)
            here = f". Here: {cause}" if cause is not None else ""
            raise CollectiveMismatchError(f"{self._place}: {differs}{here}") from cause

    def synchronize(self) -> None:
        """Wait as `wait` does."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether it ended, well or not."""
        return self._work.is_completed()

    def is_success(self) -> bool:
        """Return whether it ended well."""
        return self._work.is_success()

    def exception(self) -> Any:
        """Return Gloo's error, if it ended with one."""
        return self._work.exception()

    def result(self) -> Any:
        """Return the tensors, once the work is done."""
        return self._work.result()

    def get_future(self) -> Future[Any]:
        """Return Gloo's future."""
        return self._work.get_future()
