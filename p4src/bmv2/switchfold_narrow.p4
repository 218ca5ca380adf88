// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include <core.p4>
#include <v1model.p4>

#include "../include/constants.p4"
#include "../include/sizes.p4"
#include "../include/lanes_narrow.p4"
#include "../include/headers.p4"
#include "../include/metadata.p4"

#include "target.p4"
#include "parser.p4"
#include "checksums.p4"
#include "packet_io.p4"
#include "ipv4_forward.p4"
#include "packet_validation.p4"
#include "worker_admission.p4"
#include "hot_row.p4"
#include "slot_epoch.p4"
#include "worker_bitmap.p4"
#include "lanes_narrow.p4"
#include "round_flags.p4"
#include "result_header.p4"
#include "outcome.p4"
#include "result_delivery.p4"
#include "congestion_mark.p4"
#include "pipeline.p4"

@pkginfo(name="switchfold", version="2.32")
V1Switch(SwitchfoldParser(),
         SwitchfoldVerifyChecksum(),
         SwitchfoldIngress(),
         SwitchfoldEgress(),
         SwitchfoldComputeChecksum(),
         SwitchfoldDeparser()) main;
