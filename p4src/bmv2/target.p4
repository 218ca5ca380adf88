// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// What this target fixes: the port that simple_switch_grpc is told to use for the controller
// (--cpu-port).
#ifndef SWITCHFOLD_TARGET_P4
#define SWITCHFOLD_TARGET_P4

const port_t CPU_PORT = 255;

#endif
