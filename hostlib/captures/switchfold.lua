-- SPDX-FileCopyrightText: 2026 The Switchfold Authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Dissector for Wireshark and tshark, from 3.4 on: the header and lanes of docs/wire_format.md.
-- Filters are switchfold.FIELD: switchfold.round == 5, switchfold.flags.to_server, switchfold.lane < 0.

local UDP_PORT = 21318
local WIRE_VERSION = 2
local HEADER_BYTES = 44
local VALUE_BYTES = 4
local EXPONENT_BIAS = 128
local VARIANTS = { [32] = "narrow", [352] = "wide" }

local OPERATIONS = {
  [1] = "AGGREGATE_ADD",
  [2] = "AGGREGATE_MAX",
  [3] = "FLUSH",
  [4] = "PROBE",
  [5] = "RESULT",
  [6] = "NOTICE",
  [7] = "MULTICAST",
  [8] = "READ",
  [9] = "WRITE",
}

-- By bit, the least significant one first.
local FLAGS = {
  "PARTIAL", "FLUSHED", "ECN_ECHO", "OVERFLOW", "LAST", "REPLAY", "REPORT", "TO_SERVER", "COLD",
}

local switchfold = Proto("switchfold", "Switchfold")
local fields = {
  version = ProtoField.uint8("switchfold.version", "Version"),
  operation = ProtoField.uint8("switchfold.operation", "Operation", base.DEC, OPERATIONS),
  flags = ProtoField.uint16("switchfold.flags", "Flags", base.HEX),
  job_id = ProtoField.uint16("switchfold.job_id", "Job (tree)"),
  worker_id = ProtoField.uint8("switchfold.worker_id", "Worker"),
  priority = ProtoField.uint8("switchfold.priority", "Priority"),
  generation = ProtoField.uint32("switchfold.generation", "Generation"),
  slot_index = ProtoField.uint32("switchfold.slot_index", "Slot"),
  round = ProtoField.uint32("switchfold.round", "Round"),
  tensor_id = ProtoField.uint32("switchfold.tensor_id", "Tensor", base.HEX),
  position = ProtoField.uint32("switchfold.tensor.position", "Position", base.DEC, nil, 0x000fffff),
  signature = ProtoField.uint32("switchfold.tensor.signature", "Signature", base.HEX, nil, 0xfff00000),
  chunk_index = ProtoField.uint32("switchfold.chunk_index", "Chunk"),
  range_start = ProtoField.uint32("switchfold.range_start", "Range start"),
  range_end = ProtoField.uint32("switchfold.range_end", "Range end"),
  worker_bitmap = ProtoField.uint32("switchfold.worker_bitmap", "Worker bitmap", base.HEX),
  num_contributors = ProtoField.uint16("switchfold.num_contributors", "Contributors"),
  exponent = ProtoField.uint8("switchfold.exponent", "Exponent"),
  expected = ProtoField.uint8("switchfold.expected", "Expected workers"),
  lane = ProtoField.int32("switchfold.lane", "Lane"),
  padding = ProtoField.bytes("switchfold.padding", "Lanes beyond the range"),
}
local mask = 1
for number, name in ipairs(FLAGS) do
  fields["flag" .. number] = ProtoField.bool("switchfold.flags." .. name:lower(), name, 16, nil, mask)
  mask = mask * 2
end
switchfold.fields = fields

local bad_version = ProtoExpert.new(
  "switchfold.bad_version", "another version of the wire format", expert.group.PROTOCOL, expert.severity.ERROR
)
local bad_operation = ProtoExpert.new(
  "switchfold.bad_operation", "unknown operation: a switch drops it", expert.group.PROTOCOL, expert.severity.ERROR
)
local bad_length = ProtoExpert.new(
  "switchfold.bad_length", "no variant's length: a switch drops it", expert.group.MALFORMED, expert.severity.ERROR
)
local bad_range = ProtoExpert.new(
  "switchfold.bad_range", "range and chunk do not fit the grid: a switch drops it", expert.group.PROTOCOL,
  expert.severity.ERROR
)
local saturated = ProtoExpert.new(
  "switchfold.saturated", "a lane has saturated", expert.group.RESPONSE_CODE, expert.severity.WARN
)
switchfold.experts = { bad_version, bad_operation, bad_length, bad_range, saturated }

-- Name, place in the header, bytes.
local LAYOUT = {
  { "version", 0, 1 }, { "operation", 1, 1 }, { "flags", 2, 2 }, { "job_id", 4, 2 },
  { "worker_id", 6, 1 }, { "priority", 7, 1 }, { "generation", 8, 4 }, { "slot_index", 12, 4 },
  { "round", 16, 4 }, { "tensor_id", 20, 4 }, { "chunk_index", 24, 4 }, { "range_start", 28, 4 },
  { "range_end", 32, 4 }, { "worker_bitmap", 36, 4 }, { "num_contributors", 40, 2 },
  { "exponent", 42, 1 }, { "expected", 43, 1 },
}

-- Without operators on bits: Lua 5.2, which Wireshark had until 4.2, has none.
local function has_bit(number, bit)
  return math.floor(number / 2 ^ bit) % 2 == 1
end

local function has_flag(header, wanted)
  for number, name in ipairs(FLAGS) do
    if name == wanted then
      return has_bit(header.flags, number - 1)
    end
  end
  error("no flag " .. wanted)
end

local function names_of(flags)
  local found = {}
  for number, name in ipairs(FLAGS) do
    if has_bit(flags, number - 1) then
      found[#found + 1] = name
    end
  end
  return table.concat(found, "|")
end

local function workers_of(bitmap)
  local found = {}
  for worker = 0, 31 do
    if has_bit(bitmap, worker) then
      found[#found + 1] = tostring(worker)
    end
  end
  return table.concat(found, ",")
end

-- One line: what a reader wants to know of the packet first.
local function summary(header)
  local operation = OPERATIONS[header.operation] or ("operation " .. header.operation)
  local parts = { string.format("%s job=%d worker=%d", operation, header.job_id, header.worker_id) }
  if operation == "MULTICAST" then
    parts[#parts + 1] = has_flag(header, "REPORT") and "report" or string.format("number=%d", header.round)
  elseif has_flag(header, "TO_SERVER") or operation == "READ" or operation == "WRITE" then
    parts[#parts + 1] =
      string.format("row=%d epoch=%d round=%d", header.slot_index, header.tensor_id, header.round)
  else
    parts[#parts + 1] = string.format(
      "slot=%d round=%d tensor=%d", header.slot_index, header.round, header.tensor_id % 0x100000
    )
  end
  parts[#parts + 1] = string.format("[%d,%d)", header.range_start, header.range_end)
  if operation == "RESULT" or operation == "NOTICE" then
    parts[#parts + 1] = string.format("of %d", header.num_contributors)
  end
  local flags = names_of(header.flags)
  if flags ~= "" then
    parts[#parts + 1] = flags
  end
  return table.concat(parts, " ")
end

local function add_details(items, header, buffer)
  for number = 1, #FLAGS do
    items.flags:add(fields["flag" .. number], buffer(2, 2))
  end
  items.flags:append_text(" (" .. names_of(header.flags) .. ")")
  items.tensor_id:add(fields.position, buffer(20, 4))
  items.tensor_id:add(fields.signature, buffer(20, 4))
  items.worker_bitmap:append_text(" (" .. workers_of(header.worker_bitmap) .. ")")
  if header.exponent ~= 0 and OPERATIONS[header.operation] ~= "MULTICAST" then
    items.exponent:append_text(string.format(" (2^%d)", header.exponent - EXPONENT_BIAS))
  end
end

local function add_lanes(tree, header, buffer, num_lanes)
  local used = math.max(0, math.min(num_lanes, header.range_end - header.range_start))
  local all = buffer(HEADER_BYTES, num_lanes * VALUE_BYTES)
  local lanes = tree:add(switchfold, all, string.format("Lanes: %d of %d", used, num_lanes))
  for lane = 0, used - 1 do
    local item = lanes:add(fields.lane, buffer(HEADER_BYTES + lane * VALUE_BYTES, VALUE_BYTES))
    item:prepend_text(string.format("[%d] ", header.range_start + lane))
  end
  if used < num_lanes then
    local first = HEADER_BYTES + used * VALUE_BYTES
    lanes:add(fields.padding, buffer(first, (num_lanes - used) * VALUE_BYTES))
  end
end

local function check(tree, items, header, num_lanes)
  if header.version ~= WIRE_VERSION then
    items.version:add_proto_expert_info(bad_version)
  end
  if not OPERATIONS[header.operation] then
    items.operation:add_proto_expert_info(bad_operation)
  end
  if not VARIANTS[num_lanes] then
    tree:add_proto_expert_info(bad_length)
  else
    local size = header.range_end - header.range_start
    if size < 1 or size > num_lanes or header.range_start ~= header.chunk_index * num_lanes then
      items.range_start:add_proto_expert_info(bad_range)
    end
  end
  if has_flag(header, "OVERFLOW") then
    items.flags:add_proto_expert_info(saturated)
  end
end

function switchfold.dissector(buffer, packet, root)
  if buffer:len() < HEADER_BYTES then
    return 0 -- not ours, or cut off: UDP shows the bytes
  end
  local tree = root:add(switchfold, buffer())
  local header, items = {}, {}
  for _, place in ipairs(LAYOUT) do
    local name, at, size = table.unpack(place)
    local bytes = buffer(at, size)
    header[name] = bytes:uint()
    items[name] = tree:add(fields[name], bytes)
  end
  local num_lanes = math.floor((buffer:len() - HEADER_BYTES) / VALUE_BYTES)
  add_details(items, header, buffer)
  if num_lanes > 0 then
    add_lanes(tree, header, buffer, num_lanes)
  end
  check(tree, items, header, num_lanes)
  local line = summary(header)
  tree:append_text(" " .. line)
  packet.cols.protocol = "Switchfold"
  packet.cols.info = line
  return buffer:len()
end

DissectorTable.get("udp.port"):add(UDP_PORT, switchfold)
