# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transfer scheduler after MLfabric: a pure library that decides when each update travels.

Nothing runs it live yet. docs/scheduler.md says what is MLfabric's and what is ours.
"""
