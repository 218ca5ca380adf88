# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Slots of switches: which of them jobs hold, and how jobs share them."""
