# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Membership of jobs: seats of workers, and the changes of a job's layout."""

from controller.membership.live_job import LiveJob
from controller.membership.membership import Membership
from controller.membership.roles import Limits
from controller.membership.seat import Outbox, Seat

__all__ = ["Limits", "LiveJob", "Membership", "Outbox", "Seat"]
