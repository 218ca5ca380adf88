# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Desired state in SQLite, and how it survives full disks and new releases."""
