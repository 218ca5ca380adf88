# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills and soak: what fails while jobs sum, and how long until the stated outcome."""
