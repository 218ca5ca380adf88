// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Constants of this target: the port to the controller, as in simple_switch_grpc's option
// --cpu-port.
#ifndef SWITCHFOLD_TARGET_P4
#define SWITCHFOLD_TARGET_P4

const port_t CPU_PORT = 255;

#endif
