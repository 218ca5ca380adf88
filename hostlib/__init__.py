# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Host library of Switchfold: sum tensors over the workers of a job inside a P4 switch."""
