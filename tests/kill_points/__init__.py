# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A world of jobs whose controller is killed at every commit, every P4Runtime write, any time."""
