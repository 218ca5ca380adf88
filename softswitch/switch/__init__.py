# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded switch: ports, packets and control operations over the C runtime."""
