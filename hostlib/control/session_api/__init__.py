# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Session API between workers and the controller: session.proto and the code generated from it."""
