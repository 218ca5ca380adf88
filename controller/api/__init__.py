# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""gRPC services of the controller: sessions of workers, operators, the fabric."""
