# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Intermediate representation: typed statements between the JSON's primitives and the C text."""
