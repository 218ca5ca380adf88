# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The I/O thread of a session: tensors in order, deadlines, view changes."""
