# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime 1.4 server of the softswitch; its modules need grpcio and finsy's protobufs."""
