-- Wireshark dissector of uplink, version 4 of the wire (docs/spec). For Wireshark 3.6 and later.
--
-- It reads datagrams that are not encrypted (suite none), and the copies that uplink decrypt writes; of encrypted ones
-- it shows the header. README.md describes the installation, docs/wireshark.md the use.

local uplink = Proto("uplink", "uplink RPCs")

local VERSION = 4

uplink.prefs.port = Pref.uint("UDP port", 7777, "The server's UDP port")
uplink.prefs.encryption = Pref.enum("Encryption", 0,
	"Whether datagrams are encrypted; by default detected from the lengths of heartbeats",
	{ { 0, "detect", 0 }, { 1, "encrypted", 1 }, { 2, "not encrypted (suite none)", 2 } }, false)

-- Fields -----------------------------------------------------------------------------------------------------------

local FORMS = { [0] = "short", [1] = "long", [2] = "handshake", [3] = "data" }
local LONG, HANDSHAKE, DATA_FORM = 1, 2, 3
local KINDS = {
	[0] = "Data", [1] = "Reliable", [2] = "Heartbeat", [3] = "Close",
	[4] = "Challenge", [5] = "Response", [6] = "Probe", [7] = "Part",
}
local DATA, RELIABLE, HEARTBEAT, CLOSE, CHALLENGE, RESPONSE, PROBE, PART = 0, 1, 2, 3, 4, 5, 6, 7
local DIRECTIONS = { [0] = "to the server", [1] = "to the client" }
local UP, DOWN = 0, 1
local SUITES = {
	[0] = "none", [1] = "aes128gcm", [2] = "aes128ctr-hmac8", [3] = "chacha20-poly1305", [4] = "chacha20-siphash8",
}
local TYPES = { [0] = "Hello", [1] = "Retry", [2] = "Welcome", [3] = "Refuse", [4] = "Unknown" }
local REFUSALS = { [1] = "version", [2] = "busy", [3] = "other server key" }
local CLOSES = { [0] = "quit or kicked", [1] = "server shutdown", [2] = "new session of the same client id",
	[3] = "protocol violation", [4] = "limit exceeded", [5] = "server busy" }
local MESSAGES = {
	[0xc0] = "Handover",
	[0xc1] = "Acks", [0xc2] = "Bind", [0xc3] = "Bind answer", [0xc4] = "Game message", [0xc5] = "Shutdown",
	[0xc6] = "Offer", [0xc7] = "Answer to an offer", [0xc8] = "Part of an initial state", [0xc9] = "World stopped",
	[0xca] = "Ack of a replication stream", [0xcb] = "Slack and acks",
	[0xcc] = "Acks and a message", [0xcd] = "Slack, acks and a message",
	[0xce] = "Game message for a tick", [0xcf] = "Request",
}
for n = 0, 15 do
	MESSAGES[0xd0 + n] = "Fragment of a message of world " .. n
	MESSAGES[0xf0 + n] = "Message of world " .. n
end
local REQUESTS = { [0] = "request", [1] = "cancel", [2] = "answer", [3] = "refusal", [4] = "unhandled" }
local STREAMS = { [0] = "open", [1] = "data", [2] = "end", [3] = "abort", [4] = "credit", [5] = "done" }
local COMMANDS = { [81] = "push", [82] = "ack", [83] = "window probe", [84] = "window size" }
local RESET_REASONS = { [0] = "none", [1] = "baseline missing", [2] = "desync", [3] = "unknown" }
local REASONS = {
	[0] = "bound", [1] = "unknown RPC", [2] = "incompatible schema", [3] = "unknown codec",
	[4] = "number in use, or RPC bound already", [5] = "invalid ring, frames or factors",
	[6] = "rate out of range", [7] = "rate other than that of the RPC", [8] = "jitter buffer for reliable frames",
	[9] = "fields to describe",
}
local HEADERS = { [0] = "short", [1] = "long" }

local f = {
	form = ProtoField.uint8("uplink.form", "Form", base.DEC, FORMS, 0xc0),
	kind = ProtoField.uint8("uplink.kind", "Kind", base.DEC, KINDS, 0x38),
	conn = ProtoField.uint64("uplink.conn", "Connection id", base.HEX),
	number_high = ProtoField.uint8("uplink.number_high", "Packet number, bits 16-18", base.DEC, nil, 0x07),
	number_low = ProtoField.uint16("uplink.number_low", "Packet number, bits 0-15"),
	number_data = ProtoField.uint16("uplink.number_data", "Packet number, bits 0-13", base.DEC, nil, 0x3fff),
	number = ProtoField.uint64("uplink.number", "Packet number"),
	direction = ProtoField.uint8("uplink.direction", "Direction", base.DEC, DIRECTIONS),
	suite = ProtoField.uint8("uplink.suite", "Suite", base.DEC, SUITES),
	sealed = ProtoField.bytes("uplink.encrypted", "Encrypted body and AEAD tag"),
	opened = ProtoField.bytes("uplink.decrypted", "Decrypted by uplink decrypt"),

	hs_type = ProtoField.uint8("uplink.handshake.type", "Type", base.DEC, TYPES, 0x3f),
	hs_version = ProtoField.uint16("uplink.handshake.version", "Version"),
	hs_nonce = ProtoField.uint64("uplink.handshake.nonce", "Nonce", base.HEX),
	hs_cookie = ProtoField.bytes("uplink.handshake.cookie", "Cookie"),
	hs_key = ProtoField.bytes("uplink.handshake.key", "Key id"),
	hs_route_size = ProtoField.uint8("uplink.handshake.route_length", "Length of the route id"),
	hs_route = ProtoField.bytes("uplink.handshake.route", "Route id"),
	hs_length = ProtoField.uint16("uplink.handshake.length", "Length of the Noise message"),
	hs_noise = ProtoField.bytes("uplink.handshake.noise", "Noise message"),
	hs_reason = ProtoField.uint8("uplink.handshake.reason", "Reason", base.DEC, REFUSALS),
	hs_echo = ProtoField.bytes("uplink.handshake.echo", "Header of the unknown datagram"),

	hb_ask = ProtoField.uint32("uplink.heartbeat.ask", "Ask", base.HEX),
	hb_echo = ProtoField.uint32("uplink.heartbeat.echo", "Echo of an ask", base.HEX),
	hb_hold = ProtoField.uint24("uplink.heartbeat.hold", "Hold (us)"),
	hb_answer = ProtoField.bool("uplink.heartbeat.answer", "Requests an answer", 8, nil, 0x01),
	hb_largest = ProtoField.uint8("uplink.heartbeat.largest", "Largest datagram since the last heartbeat, above 548 bytes, in 8 bytes", base.DEC, nil, 0xfe),
	close_code = ProtoField.uint8("uplink.close.code", "Code", base.DEC, CLOSES),
	close_text = ProtoField.string("uplink.close.text", "Text"),
	challenge = ProtoField.bytes("uplink.challenge", "Challenge"),
	generation = ProtoField.uint8("uplink.response.generation", "Address generation"),
	probe_size = ProtoField.uint16("uplink.probe.size", "Size of the datagram"),
	report_newest = ProtoField.uint16("uplink.report.newest", "Newest packet number that arrived, low bits"),
	report_arrived = ProtoField.uint16("uplink.report.arrived", "When it arrived, in 0.1 ms"),
	report_count = ProtoField.uint16("uplink.report.count", "Number of datagrams that arrived, low bits"),
	part_kind = ProtoField.uint16("uplink.part.kind", "Kind of the body", base.DEC, { [0] = "Data", [1] = "Reliable" }, 0x8000),
	part_count = ProtoField.uint16("uplink.part.last", "Index of the last part", base.DEC, nil, 0x6000),
	part_index = ProtoField.uint16("uplink.part.index", "Index", base.DEC, nil, 0x1800),
	part_offset = ProtoField.uint16("uplink.part.offset", "Offset", base.DEC, nil, 0x07ff),
	part_data = ProtoField.bytes("uplink.part.data", "Data"),

	handover_stream = ProtoField.uint8("uplink.handover.stream", "Replication stream (255: none)"),
	handover_tick = ProtoField.uint64("uplink.handover.tick", "Tick"),
	handover_size = ProtoField.uint32("uplink.handover.size", "Size of the game's data"),
	handover_hash = ProtoField.bytes("uplink.handover.hash", "SHA-256 of the game's data"),
	handover_secret = ProtoField.bytes("uplink.handover.secret", "Secret that releases the player"),
	handover_servers = ProtoField.uint8("uplink.handover.servers", "Addresses"),
	request = ProtoField.uint8("uplink.request", "Request", base.DEC, REQUESTS),
	request_id = ProtoField.uint32("uplink.request.id", "Request id"),
	stream = ProtoField.uint8("uplink.stream", "Byte stream", base.DEC, STREAMS, 0xf8),
	stream_number = ProtoField.uint8("uplink.stream.number", "Number", base.DEC, nil, 0x07),
	kcp = ProtoField.none("uplink.kcp", "KCP segment"),
	kcp_conv = ProtoField.uint32("uplink.kcp.conv", "Conversation", base.HEX),
	kcp_cmd = ProtoField.uint8("uplink.kcp.cmd", "Command", base.DEC, COMMANDS),
	kcp_wnd = ProtoField.uint16("uplink.kcp.wnd", "Window"),
	kcp_ts = ProtoField.uint32("uplink.kcp.ts", "Timestamp"),
	kcp_sn = ProtoField.uint32("uplink.kcp.sn", "Segment"),
	kcp_una = ProtoField.uint32("uplink.kcp.una", "Next expected"),
	kcp_len = ProtoField.uint32("uplink.kcp.len", "Length"),
	kcp_data = ProtoField.bytes("uplink.kcp.data", "Part of the stream of messages"),

	message = ProtoField.uint8("uplink.message.type", "Message", base.HEX, MESSAGES),
	data = ProtoField.bytes("uplink.message.data", "Data"),
	bundle = ProtoField.uint8("uplink.bundle.frames", "Frames in the bundle"),
	bundle_size = ProtoField.uint32("uplink.bundle.size", "Size of the next payload"),

	frame = ProtoField.none("uplink.frame", "Payload"),
	fr_header = ProtoField.uint8("uplink.frame.header", "Header", base.DEC, HEADERS, 0x80),
	fr_rpc = ProtoField.uint8("uplink.frame.rpc", "RPC"),
	fr_name = ProtoField.string("uplink.frame.name", "RPC's name"),
	fr_has_baseline = ProtoField.bool("uplink.frame.has_baseline", "Has a baseline"),
	fr_distance = ProtoField.uint8("uplink.frame.distance", "Distance to the baseline"),
	fr_epoch = ProtoField.uint8("uplink.frame.epoch", "Epoch"),
	fr_low = ProtoField.uint16("uplink.frame.seq_low", "Sequence on the wire"),
	fr_seq = ProtoField.uint64("uplink.frame.seq", "Sequence"),
	fr_hash = ProtoField.uint16("uplink.frame.hash", "Hash of the baseline", base.HEX),
	fr_baseline = ProtoField.uint64("uplink.frame.baseline", "Baseline"),
	fr_baseline_in = ProtoField.framenum("uplink.frame.baseline_in", "Baseline in packet", base.NONE, frametype.REQUEST),
	fr_baseline_ack = ProtoField.framenum("uplink.frame.baseline_acked_in", "Baseline acked in packet", base.NONE, frametype.ACK),
	fr_acked_in = ProtoField.framenum("uplink.frame.acked_in", "Acked in packet", base.NONE, frametype.ACK),
	fr_again = ProtoField.framenum("uplink.frame.first_in", "First sent in packet", base.NONE, frametype.RETRANS_PREV),
	fr_size = ProtoField.uint16("uplink.frame.size", "Size (bytes)"),
	fr_header_bits = ProtoField.uint8("uplink.frame.header_bits", "Header (bits)"),
	fr_coded_bits = ProtoField.uint16("uplink.frame.coded_bits", "Coded part (bits)"),
	fr_coded = ProtoField.bytes("uplink.frame.coded", "Coded part"),

	ack = ProtoField.none("uplink.ack", "Ack"),
	slack = ProtoField.none("uplink.slack", "Jitter buffer"),
	slack_rpc = ProtoField.uint8("uplink.slack.rpc", "RPC"),
	slack_now = ProtoField.int16("uplink.slack.slack", "Slack, in 0.1 ms"),
	slack_target = ProtoField.uint16("uplink.slack.target", "Target, in 0.1 ms"),
	slack_rate = ProtoField.uint16("uplink.slack.rate", "Rate of the ticks, in 1/10,000"),
	slack_missing = ProtoField.uint16("uplink.slack.missing", "Missing ticks"),
	slack_late = ProtoField.uint16("uplink.slack.late", "Late frames"),
	ack_rpc = ProtoField.uint8("uplink.ack.rpc", "RPC"),
	ack_name = ProtoField.string("uplink.ack.name", "RPC's name"),
	ack_long = ProtoField.bool("uplink.ack.long", "Long form"),
	ack_epoch = ProtoField.uint8("uplink.ack.epoch", "Epoch"),
	ack_reset_reason = ProtoField.uint8("uplink.ack.reset_reason", "Reset reason", base.DEC, RESET_REASONS),
	ack_none = ProtoField.bool("uplink.ack.none", "Nothing processed yet"),
	ack_whole = ProtoField.bool("uplink.ack.whole", "Nothing older was processed in this epoch"),
	ack_raw = ProtoField.bool("uplink.ack.raw", "Payloads of the window are missing"),
	ack_len = ProtoField.uint8("uplink.ack.len", "Length of the window"),
	ack_low = ProtoField.uint16("uplink.ack.seq_low", "Sequence on the wire"),
	ack_seq = ProtoField.uint64("uplink.ack.seq", "Newest processed"),
	ack_window = ProtoField.bytes("uplink.ack.window", "Window"),
	ack_bits = ProtoField.string("uplink.ack.bits", "Processed before it, newest first"),
	ack_processed = ProtoField.uint64("uplink.ack.processed", "Processed"),
	ack_new = ProtoField.framenum("uplink.ack.releases", "Acks payload in packet", base.NONE, frametype.ACK),

	bind_rpc = ProtoField.uint8("uplink.bind.rpc", "RPC"),
	bind_name = ProtoField.string("uplink.bind.name", "Name"),
	bind_fingerprint = ProtoField.string("uplink.bind.fingerprint", "Fingerprint"),
	bind_fields = ProtoField.uint16("uplink.bind.fields", "Fields"),
	bind_rate = ProtoField.double("uplink.bind.rate", "Rate (Hz)"),
	bind_ring = ProtoField.uint16("uplink.bind.ring", "Ring (frames)"),
	bind_codec = ProtoField.string("uplink.bind.codec", "Codec"),
	bind_reliable = ProtoField.bool("uplink.bind.reliable", "Reliable"),
	bind_frames = ProtoField.uint8("uplink.bind.frames", "New frames per datagram"),
	bind_prior = ProtoField.string("uplink.bind.prior", "Prior"),
	bind_per_tick = ProtoField.string("uplink.bind.per_tick", "Velocity factor"),
	bind_reason = ProtoField.uint8("uplink.bind.reason", "Answer", base.DEC, REASONS),
	bind_field = ProtoField.uint16("uplink.bind.field", "Field"),
	bind_described = ProtoField.string("uplink.bind.described", "Described field"),
	bind_theirs = ProtoField.string("uplink.bind.theirs", "Explanation"),
	bind_known = ProtoField.string("uplink.bind.known", "Known to the server"),
	bind_asking = ProtoField.string("uplink.bind.asking", "Only the asking end has"),
	bind_answering = ProtoField.string("uplink.bind.answering", "Only the answering end has"),
	bind_limit = ProtoField.double("uplink.bind.limit", "Limit (Hz)"),
}
for _, field in pairs(f) do
	table.insert(uplink.fields, field)
end

local malformed = ProtoExpert.new("uplink.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local reset_request = ProtoExpert.new("uplink.reset_request", "The server requests a reset", expert.group.SEQUENCE, expert.severity.WARN)
local no_body = ProtoExpert.new("uplink.is_encrypted", "Encrypted: run uplink decrypt", expert.group.DECRYPTION, expert.severity.CHAT)
uplink.experts = { malformed, reset_request, no_body }

-- State of the capture ---------------------------------------------------------------------------------------------

local sessions -- by connection id
local flows    -- "from>to": the session and direction that go there
local results  -- by packet: what the first look at it found, in order

function uplink.init()
	sessions, flows, results = {}, {}, {}
end

local function new_session(id)
	local s = { id = id, [UP] = { starts = {}, parts = {}, rpcs = {} }, [DOWN] = { starts = {}, parts = {}, rpcs = {} } }
	if id then
		sessions[id] = s
	end
	return s
end

-- rpc_of returns an RPC by number: of the sender of the packet, or of the receiver, whose calls the
-- sender acks.
local function rpc_of(ctx, number, of_receiver)
	local owner = of_receiver and 1 - ctx.direction or ctx.direction
	local rpcs = ctx.session[owner].rpcs
	local r = rpcs[number]
	if not r then
		r = { packets = {}, acks = {} }
		rpcs[number] = r
	end
	return r
end

local function flow_keys(pinfo)
	local from = tostring(pinfo.src) .. "|" .. pinfo.src_port
	local to = tostring(pinfo.dst) .. "|" .. pinfo.dst_port
	return from .. ">" .. to, to .. ">" .. from
end

-- learn notes that the sender of a packet is the client, or the server, of a session.
local function learn(pinfo, session, direction)
	local there, back = flow_keys(pinfo)
	flows[there] = { session = session, direction = direction }
	flows[back] = { session = session, direction = 1 - direction }
end

-- look returns the session and the direction of an encrypted datagram.
local function look(pinfo, id, direction)
	local known = flows[(flow_keys(pinfo))]
	if id then
		local s = sessions[id]
		if not s and known and not known.session.id then
			s = known.session -- of which only the addresses were known
			s.id, sessions[id] = id, s
		end
		s = s or new_session(id)
		if not known or known.session ~= s then
			learn(pinfo, s, direction)
		end
		return s, direction
	end
	if known then
		return known.session, known.direction
	end
	local up = pinfo.dst_port == uplink.prefs.port or (pinfo.src_port ~= uplink.prefs.port and pinfo.dst_port < pinfo.src_port)
	direction = up and UP or DOWN
	local s = new_session(nil)
	learn(pinfo, s, direction)
	return s, direction
end

-- once gives what find says, and the same at each later look at the packet.
local function once(ctx, find)
	ctx.step = ctx.step + 1
	local all = results[ctx.packet]
	if not all then
		all = {}
		results[ctx.packet] = all
	end
	if not ctx.visited or all[ctx.step] == nil then
		all[ctx.step] = find() or false
	end
	return all[ctx.step]
end

-- nearest is the number with these low bits, of which there are turn, that is at most late behind the newest one.
local function nearest(newest, low, turn, late)
	local behind = (newest - low) % turn
	if behind > late or behind > newest then
		return newest + turn - behind
	end
	return newest - behind
end

-- Reading ----------------------------------------------------------------------------------------------------------

local function bad(ctx, tree, text)
	tree:add_proto_expert_info(malformed, text)
	ctx.info[#ctx.info + 1] = "[malformed]"
end

-- generated adds what is not in the packet.
local function generated(tree, field, value)
	local item = tree:add(field, value)
	item:set_generated()
	return item
end

-- generated64 is generated for a field of 64 bits.
local function generated64(tree, field, value)
	return generated(tree, field, UInt64.new(value))
end

-- varint reads a number of 7 bits a byte, low first; nil if there is none.
local function varint(tvb, at)
	local value, scale = 0, 1
	for i = 0, 7 do
		if at + i >= tvb:len() then
			return nil
		end
		local b = tvb(at + i, 1):uint()
		value = value + (b % 128) * scale
		if b < 128 then
			return value, i + 1
		end
		scale = scale * 128
	end
	return nil
end

-- msgpack reads one value at an offset, and gives it, the offset behind it and true; or false. Arrays are tables.
local msgpack
local function msgpack_array(tvb, at, n, depth)
	if depth > 2 or n > 4096 then
		return nil, at, false
	end
	local out = {}
	for i = 1, n do
		local v, ok
		v, at, ok = msgpack(tvb, at, depth + 1)
		if not ok then
			return nil, at, false
		end
		if v == nil then -- or the table would end here
			v = false
		end
		out[i] = v
	end
	return out, at, true
end

function msgpack(tvb, at, depth)
	local function has(n) return at + n <= tvb:len() end
	if not has(1) then
		return nil, at, false
	end
	local b = tvb(at, 1):uint()
	at = at + 1
	local function text(n)
		if not has(n) then
			return nil, at, false
		end
		return n == 0 and "" or tvb(at, n):string(), at + n, true
	end
	local function number(n, read)
		if not has(n) then
			return nil, at, false
		end
		return read(tvb(at, n)), at + n, true
	end
	local function count(n) -- the size of what follows
		if not has(n) then
			return nil
		end
		local v = tvb(at, n):uint()
		at = at + n
		return v
	end
	if b < 0x80 then
		return b, at, true
	elseif b >= 0xe0 then
		return b - 256, at, true
	elseif b >= 0xa0 and b < 0xc0 then
		return text(b - 0xa0)
	elseif b >= 0x90 and b < 0xa0 then
		return msgpack_array(tvb, at, b - 0x90, depth)
	elseif b == 0xc0 then
		return nil, at, true
	elseif b == 0xc2 or b == 0xc3 then
		return b == 0xc3, at, true
	elseif b == 0xcc or b == 0xcd or b == 0xce then
		return number(({ [0xcc] = 1, [0xcd] = 2, [0xce] = 4 })[b], function(r) return r:uint() end)
	elseif b == 0xcf then
		return number(8, function(r) return r:uint64() end)
	elseif b == 0xd0 or b == 0xd1 or b == 0xd2 then
		return number(({ [0xd0] = 1, [0xd1] = 2, [0xd2] = 4 })[b], function(r) return r:int() end)
	elseif b == 0xd3 then
		return number(8, function(r) return r:int64() end)
	elseif b == 0xca or b == 0xcb then
		return number(b == 0xca and 4 or 8, function(r) return r:float() end)
	elseif b == 0xd9 or b == 0xda then
		local n = count(b == 0xd9 and 1 or 2)
		if n then
			return text(n)
		end
	elseif b == 0xdc then
		local n = count(2)
		if n then
			return msgpack_array(tvb, at, n, depth)
		end
	end
	return nil, at, false
end

-- Payloads ---------------------------------------------------------------------------------------------------------

-- short_header reads a header whose bits go from the high one down; nil if there is none.
local function short_header(tvb)
	local bits, at = 8 * tvb:len(), 1
	local function take(n)
		if at + n > bits then
			at = bits + 1
			return 0
		end
		local v = tvb(0, tvb:len()):bitfield(at, n)
		at = at + n
		return v
	end
	local h = { form = 0, rpc = 0, has_baseline = true }
	if bits >= 8 and tvb(0, 1):bitfield(1, 6) == 39 then -- binary 100111
		h.checked, at = true, 7
	end
	if take(1) == 1 then
		h.rpc = take(2)
		if h.rpc == 0 then
			h.rpc = 4 + take(3)
		end
	end
	if take(1) == 0 then
		h.distance = take(4) + 1
	elseif take(1) == 0 then
		h.distance = take(4) + 17
	else
		h.distance = take(5) + 33
	end
	h.low = take(7)
	if h.checked then
		h.hash = take(16)
	end
	h.bits = at
	if at > bits or h.rpc > 10 or (h.checked and h.rpc > 3) then
		return nil
	end
	return h
end

local function long_header(tvb)
	if tvb:len() < 5 then
		return nil
	end
	local flags = tvb(0, 1):uint()
	local h = {
		form = 1, rpc = tvb(1, 1):uint(), low = tvb(2, 2):le_uint(), bits = 40,
		has_baseline = tvb(0, 1):bitfield(2, 1) == 1, checked = tvb(0, 1):bitfield(3, 1) == 1,
	}
	if flags % 16 ~= 0 then
		return nil
	end
	local last = tvb(4, 1):uint()
	if h.checked then
		if not h.has_baseline or tvb:len() < 7 then
			return nil
		end
		h.hash, h.bits = tvb(5, 2):le_uint(), 56
	end
	if h.has_baseline then
		h.distance = last
		return last > 0 and h or nil
	end
	h.epoch = last
	return last <= 7 and h or nil
end

-- anchor moves the sequences of an RPC, of which only 7 bits were known since the capture began, to where one of 16
-- bits is.
local function anchor(r, low)
	if r.anchored then
		return
	end
	r.anchored = true
	if not r.newest then
		r.newest = low
		return
	end
	r.shift = nearest(low, r.newest % 128, 128, 63) - r.newest
	r.newest = r.newest + r.shift
	local packets = {}
	for seq, packet in pairs(r.packets) do
		packets[seq + r.shift] = packet
	end
	r.packets = packets
end

-- place unwraps a payload's sequence and finds its baseline.
local function place(ctx, h)
	local r = rpc_of(ctx, h.rpc)
	local seq = h.low
	if h.form == 1 then
		anchor(r, h.low)
		seq = nearest(r.newest, h.low, 65536, 1023)
	elseif r.newest then
		seq = nearest(r.newest, h.low, 128, 63)
	end
	r.newest = math.max(r.newest or 0, seq)
	local found = { seq = seq, first = r.packets[seq], early = not r.anchored }
	if not found.first then
		r.packets[seq] = ctx.packet
	end
	if h.has_baseline then
		found.baseline = seq - h.distance
		found.baseline_in = r.packets[found.baseline]
		found.baseline_ack = r.acks[found.baseline]
	end
	return found
end

local function rpc_name(ctx, number, of_receiver)
	return rpc_of(ctx, number, of_receiver).name or string.format("RPC %d", number)
end

local function dissect_frame(tvb, tree, ctx)
	local item = tree:add(f.frame, tvb())
	local long = tvb:len() > 0 and tvb(0, 1):uint() >= 128
	local h
	if long then
		h = long_header(tvb)
	else
		h = short_header(tvb)
	end
	if not h then
		return bad(ctx, item, "no header of a payload")
	end
	local found = once(ctx, function() return place(ctx, h) end)
	local r = rpc_of(ctx, h.rpc)
	local shift = found.early and r.shift or 0 -- which a later look knows
	local seq, baseline = found.seq + shift, found.baseline and found.baseline + shift
	local header = tvb(0, math.floor((h.bits + 7) / 8))
	item:add(f.fr_header, tvb(0, 1))
	item:add(f.fr_rpc, header, h.rpc)
	if r.name then
		generated(item, f.fr_name, r.name)
	end
	item:add(f.fr_low, header, h.low)
	generated64(item, f.fr_seq, seq)
	item:add(f.fr_has_baseline, header, h.has_baseline)
	local from = ""
	if h.has_baseline then
		item:add(f.fr_distance, header, h.distance)
		if baseline >= 0 then
			generated64(item, f.fr_baseline, baseline)
		end
		if found.baseline_in then
			generated(item, f.fr_baseline_in, found.baseline_in)
		end
		if found.baseline_ack then
			generated(item, f.fr_baseline_ack, found.baseline_ack)
		end
		from = string.format(" from #%d", baseline)
	else
		item:add(f.fr_epoch, header, h.epoch)
		from = string.format(" full, epoch %d", h.epoch)
	end
	if h.checked then
		item:add(f.fr_hash, header, h.hash)
	end
	if r.acks[seq] then
		generated(item, f.fr_acked_in, r.acks[seq])
	end
	if found.first then
		generated(item, f.fr_again, found.first)
	end
	generated(item, f.fr_size, tvb:len())
	generated(item, f.fr_header_bits, h.bits)
	generated(item, f.fr_coded_bits, 8 * tvb:len() - h.bits)
	local start = math.floor(h.bits / 8)
	if start < tvb:len() then
		item:add(f.fr_coded, tvb(start))
	end
	local text = string.format("%s #%d%s, %d bytes", rpc_name(ctx, h.rpc), seq, from, tvb:len())
	item:append_text(": " .. text)
	ctx.info[#ctx.info + 1] = text
end

local function dissect_bundle(tvb, tree, ctx)
	local n = tvb(0, 1):uint() % 16 + 2
	tree:add(f.bundle, tvb(0, 1), n)
	local at = 1
	for i = 1, n do
		local size, width = tvb:len() - at, 0
		if i < n then
			size, width = varint(tvb, at)
			if not size or at + width + size > tvb:len() then
				return bad(ctx, tree, "a bundle ends in a payload")
			end
			tree:add(f.bundle_size, tvb(at, width), size)
		end
		at = at + width
		if size < 1 or tvb(at, 1):uint() >= 0xc0 then
			return bad(ctx, tree, "what is in a bundle is no payload")
		end
		dissect_frame(tvb(at, size):tvb(), tree, ctx)
		at = at + size
	end
end

-- Acks -------------------------------------------------------------------------------------------------------------

-- settle notes what an ack says of a packet's payloads.
local function settle(ctx, a)
	local r = rpc_of(ctx, a.rpc, true)
	if a.long or not r.newest then
		anchor(r, a.low)
	end
	local seq = nearest(r.newest, a.low, a.width, a.width - a.width / 64) -- hardly ahead of what was sent
	local found = { seq = seq, processed = { seq }, new = {} }
	for i = 1, #a.bits do
		if a.bits:sub(i, i) == "1" and seq - i >= 0 then
			found.processed[#found.processed + 1] = seq - i
		end
	end
	for _, s in ipairs(found.processed) do
		if not r.acks[s] then
			r.acks[s] = ctx.packet
			found.new[#found.new + 1] = r.packets[s]
		end
	end
	return found
end

local function bits(v, at, n)
	return math.floor(v / 2 ^ at) % 2 ^ n
end

-- read_ack reads the ack at an offset, and gives it with its size; nil if there is none.
local function read_ack(tvb, at)
	local left = tvb:len() - at
	if left < 1 then
		return nil
	end
	local a, missing
	local flags = tvb(at, 1):uint()
	if flags % 2 == 1 and flags >= 128 then
		if left < 2 then
			return nil
		end
		a = { long = false, rpc = 0, epoch = 0, len = bits(flags, 1, 4), low = bits(flags, 5, 2) * 256 + tvb(at + 1, 1):uint(),
			width = 1024, whole = false, none = false, reset_reason = 0, size = 2 }
		missing = false
	elseif flags % 2 == 0 then
		if left < 3 then
			return nil
		end
		local v = tvb(at, 3):le_uint()
		missing = bits(v, 7, 1) == 1
		a = { long = false, rpc = bits(v, 1, 3), epoch = bits(v, 4, 3), len = bits(v, 8, 6), low = bits(v, 14, 10),
			width = 1024, whole = false, none = false, reset_reason = 0, size = 3 }
	else
		a = { long = true, rpc = 0, epoch = 0, len = 0, low = 0, width = 65536, whole = bits(flags, 4, 1) == 1,
			none = bits(flags, 3, 1) == 1, reset_reason = bits(flags, 1, 2), size = 1 }
		missing = bits(flags, 5, 1) == 1
		local numbers = bits(flags, 6, 1) == 1
		if left < 1 + (numbers and 2 or 0) + (a.none and 0 or 3) or a.reset_reason > 2 then
			return nil
		end
		if numbers then
			a.rpc, a.epoch, a.size = tvb(at + 1, 1):uint(), tvb(at + 2, 1):uint(), 3
		end
		if not a.none then
			a.low, a.len, a.size = tvb(at + a.size, 2):le_uint(), tvb(at + a.size + 2, 1):uint(), a.size + 3
		end
		if a.len > 63 or (a.none and missing) then
			return nil
		end
	end
	a.raw, a.window, a.bits = missing, 0, string.rep("1", a.len)
	if missing then
		if left < a.size + 1 then
			return nil
		end
		local first = tvb(at + a.size, 1):uint()
		local gap, index = math.floor(first / 32) + 1, first % 32
		a.window = 1
		if gap <= 7 then
			if index + gap > a.len then
				return nil
			end
			a.bits = string.rep("1", index) .. string.rep("0", gap) .. string.rep("1", a.len - index - gap)
		else
			a.window = 1 + math.floor((math.max(a.len, 5) + 2) / 8)
			if left < a.size + a.window then
				return nil
			end
			local all = {}
			for i = 0, a.len - 1 do
				local k = i + 3
				local bit = i < 5 and bits(index, i, 1) or tvb(at + a.size + math.floor(k / 8), 1):bitfield(7 - k % 8, 1)
				all[#all + 1] = bit == 1 and "1" or "0"
			end
			a.bits = table.concat(all)
		end
		a.size = a.size + a.window
	end
	return a
end

local function dissect_acks(tvb, tree, ctx, at)
	if at == tvb:len() then
		return bad(ctx, tree, "no ack")
	end
	while at < tvb:len() do
		local a = read_ack(tvb, at)
		if not a then
			return bad(ctx, tree, "no ack")
		end
		local range = tvb(at, a.size)
		local item = tree:add(f.ack, range)
		item:add(f.ack_long, tvb(at, 1), a.long)
		item:add(f.ack_rpc, range, a.rpc)
		local r = rpc_of(ctx, a.rpc, true)
		if r.name then
			generated(item, f.ack_name, r.name)
		end
		item:add(f.ack_epoch, range, a.epoch)
		item:add(f.ack_reset_reason, tvb(at, 1), a.reset_reason)
		item:add(f.ack_none, tvb(at, 1), a.none)
		item:add(f.ack_whole, tvb(at, 1), a.whole)
		item:add(f.ack_raw, range, a.raw)
		item:add(f.ack_len, range, a.len)
		item:add(f.ack_low, range, a.low)
		local text = rpc_name(ctx, a.rpc, true)
		if a.none then
			text = text .. " nothing"
		else
			local found = once(ctx, function() return settle(ctx, a) end)
			generated64(item, f.ack_seq, found.seq)
			if a.window > 0 then
				item:add(f.ack_window, tvb(at + a.size - a.window, a.window))
			end
			generated(item, f.ack_bits, a.bits)
			for _, s in ipairs(found.processed) do
				generated64(item, f.ack_processed, s)
			end
			for _, packet in ipairs(found.new) do
				generated(item, f.ack_new, packet)
			end
			text = string.format("%s #%d", text, found.seq)
		end
		if a.reset_reason ~= 0 then
			item:add_proto_expert_info(reset_request)
			text = text .. " (" .. RESET_REASONS[a.reset_reason] .. ")"
		end
		item:append_text(": " .. text)
		ctx.info[#ctx.info + 1] = "ack " .. text
		at = at + a.size
	end
end

-- Binding ----------------------------------------------------------------------------------------------------------

local function hex64(v)
	if type(v) == "number" then
		return string.format("%016x", v)
	end
	return v and type(v) ~= "boolean" and v:tohex(16) or "?"
end

local function dissect_bind(tvb, tree, ctx, answer)
	local from = answer == "offer" and 3 or 1
	local v, _, ok = msgpack(tvb, from, 0)
	if not ok or type(v) ~= "table" or type(v[1]) ~= "number" or #v < (answer and 8 or 12) then
		return bad(ctx, tree, "no " .. (answer and "answer" or "bind"))
	end
	local body = tvb(from)
	local function put(field, value, want)
		if type(value) == want then
			tree:add(field, body, value)
		end
	end
	put(f.bind_rpc, v[1] % 256, "number")
	if answer then
		put(f.bind_ring, v[2], "number")
		put(f.bind_reason, v[3], "number")
		if v[3] == 2 then
			put(f.bind_field, v[4], "number")
		end
		if v[5] ~= "" then
			put(f.bind_theirs, v[5], "string")
		end
		for _, name in ipairs(type(v[6]) == "table" and v[6] or {}) do
			put(f.bind_known, name, "string")
		end
		put(f.bind_prior, hex64(v[7]), "string")
		if v[3] == 6 or v[3] == 7 then
			put(f.bind_limit, v[8], "number")
		end
		for _, field in ipairs(type(v[9]) == "table" and v[9] or {}) do
			put(f.bind_field, field, "number")
		end
		for _, name in ipairs(type(v[10]) == "table" and v[10] or {}) do
			put(f.bind_asking, name, "string")
		end
		for _, name in ipairs(type(v[11]) == "table" and v[11] or {}) do
			put(f.bind_answering, name, "string")
		end
		local what = answer == "offer" and "world " .. v[1] or rpc_name(ctx, v[1], true)
		ctx.info[#ctx.info + 1] = what .. ": " .. (REASONS[v[3]] or "?")
		return
	end
	put(f.bind_name, v[2], "string")
	put(f.bind_fingerprint, hex64(v[3]), "string")
	put(f.bind_fields, type(v[4]) == "table" and #v[4] or 0, "number")
	put(f.bind_rate, v[5], "number")
	put(f.bind_ring, v[6], "number")
	put(f.bind_codec, v[7], "string")
	put(f.bind_reliable, v[8], "boolean")
	put(f.bind_frames, v[9], "number")
	put(f.bind_prior, hex64(v[10]), "string")
	for _, factor in ipairs(type(v[13]) == "table" and v[13] or {}) do
		put(f.bind_per_tick, tostring(factor), "string")
	end
	for _, field in ipairs(type(v[14]) == "table" and v[14] or {}) do
		put(f.bind_described, type(field) == "table" and field[2] or nil, "string")
	end
	if type(v[2]) == "string" then
		once(ctx, function() rpc_of(ctx, v[1]).name = v[2] end)
		ctx.info[#ctx.info + 1] = string.format("%s as RPC %d", v[2], v[1])
	end
end

-- Jitter buffers ---------------------------------------------------------------------------------------------------

local function dissect_slack(tvb, tree, ctx)
	local n = tvb:len() > 1 and tvb(1, 1):uint() or 0
	if n == 0 or n > 32 or 2 + 11 * n > tvb:len() then
		return bad(ctx, tree, "no jitter buffers")
	end
	for i = 0, n - 1 do
		local at = 2 + 11 * i
		local item = tree:add(f.slack, tvb(at, 11))
		item:add(f.slack_rpc, tvb(at, 1))
		item:add_le(f.slack_now, tvb(at + 1, 2))
		item:add_le(f.slack_target, tvb(at + 3, 2))
		item:add_le(f.slack_rate, tvb(at + 5, 2))
		item:add_le(f.slack_missing, tvb(at + 7, 2))
		item:add_le(f.slack_late, tvb(at + 9, 2))
		item:append_text(": " .. rpc_name(ctx, tvb(at, 1):uint(), true))
	end
	if 2 + 11 * n < tvb:len() then
		dissect_acks(tvb, tree, ctx, 2 + 11 * n)
	end
end

-- Messages ---------------------------------------------------------------------------------------------------------

-- dissect_handover shows a handover up to the number of addresses, or the messages that end one.
local function dissect_handover(tvb, tree, ctx)
	if tvb:len() == 1 then
		return
	end
	if tvb:len() == 33 then
		tree:add(f.handover_secret, tvb(1, 32))
		return
	end
	local tick, n = varint(tvb, 2)
	local at = 2 + (n or 0)
	if not tick or at + 4 > tvb:len() then
		return bad(ctx, tree, "no handover")
	end
	local size = tvb(at, 4):le_uint()
	local hash = size > 0 and 32 or 0
	if at + 4 + hash >= tvb:len() then
		return bad(ctx, tree, "no handover")
	end
	tree:add(f.handover_stream, tvb(1, 1))
	tree:add(f.handover_tick, tvb(2, n), UInt64.new(tick))
	tree:add_le(f.handover_size, tvb(at, 4))
	if hash > 0 then
		tree:add(f.handover_hash, tvb(at + 4, hash))
	end
	tree:add(f.handover_servers, tvb(at + 4 + hash, 1))
	if at + 5 + hash < tvb:len() then
		tree:add(f.data, tvb(at + 5 + hash))
	end
end

local function dissect_message(tvb, tree, ctx)
	if tvb:len() == 0 then
		return bad(ctx, tree, "no message")
	end
	local first = tvb(0, 1):uint()
	if first < 0xc0 then
		return dissect_frame(tvb, tree, ctx)
	end
	if first >= 0xe0 and first <= 0xef then
		return dissect_bundle(tvb, tree, ctx)
	end
	tree:add(f.message, tvb(0, 1))
	if not MESSAGES[first] then
		return bad(ctx, tree, "no such message")
	end
	ctx.info[#ctx.info + 1] = MESSAGES[first]
	if first == 0xc1 then
		dissect_acks(tvb, tree, ctx, 1)
	elseif first == 0xcb then
		dissect_slack(tvb, tree, ctx)
	elseif first == 0xca then
		local a = tvb:len() > 1 and read_ack(tvb, 2)
		if not a then
			return bad(ctx, tree, "no ack")
		end
		local size = 2 + a.size
		tree:add(f.data, tvb(1, size - 1))
		if tvb:len() > size then
			return dissect_message(tvb(size):tvb(), tree, ctx)
		end
	elseif first == 0xcc or first == 0xcd then
		local n = tvb:len() > 1 and tvb(1, 1):uint() or 0
		if n + 2 >= tvb:len() then
			return bad(ctx, tree, "acks without a message")
		end
		if first == 0xcc then
			dissect_acks(tvb(0, 2 + n):tvb(), tree, ctx, 2)
		else
			dissect_slack(tvb(1, 1 + n):tvb(), tree, ctx)
		end
		tree:add(f.message, tvb(2 + n, 1))
		if tvb:len() > 3 + n then
			tree:add(f.data, tvb(3 + n))
		end
	elseif first == 0xc0 then
		dissect_handover(tvb, tree, ctx)
	elseif first == 0xcf then
		if tvb:len() < 6 or not REQUESTS[tvb(1, 1):uint()] then
			return bad(ctx, tree, "no request")
		end
		tree:add(f.request, tvb(1, 1))
		tree:add_le(f.request_id, tvb(2, 4))
		if tvb:len() > 6 then
			tree:add(f.data, tvb(6))
		end
	elseif first == 0xc2 or first == 0xc3 then
		dissect_bind(tvb, tree, ctx, first == 0xc3 and "bind")
	elseif first == 0xc7 then
		if tvb:len() < 3 then
			return bad(ctx, tree, "no answer to an offer")
		end
		tree:add(f.data, tvb(1, 2))
		if tvb:len() > 3 then
			dissect_bind(tvb, tree, ctx, "offer")
		end
	elseif tvb:len() > 1 then
		tree:add(f.data, tvb(1))
	end
end

-- A message of the bulk channel.
local function dissect_stream(tvb, tree, ctx)
	local kind = STREAMS[math.floor(tvb(0, 1):uint() / 8)]
	tree:add(f.stream, tvb(0, 1))
	tree:add(f.stream_number, tvb(0, 1))
	if not kind then
		return bad(ctx, tree, "no such message of a byte stream")
	end
	ctx.info[#ctx.info + 1] = string.format("stream %d %s", tvb(0, 1):uint() % 8, kind)
	if tvb:len() > 1 then
		tree:add(f.data, tvb(1))
	end
end

-- is_bulk reports whether a conversation is that of the bulk channel, if the session's id is known.
local function is_bulk(ctx, conversation)
	local id = ctx.session.id
	return id and conversation == (tonumber(id:sub(-14, -7), 16) + 1) % 4294967296
end

-- messages_of finds the whole messages in the data of a segment: their offsets and sizes. start is where the first
-- message begins that does not begin in an earlier segment: an offset, which can be behind the data, or -1 - n if the
-- segment before ends with n, the first of the two bytes of a size. It returns the same for the next segment too.
local function messages_of(data, start)
	local found, at, length = {}, start, data:len()
	if at < 0 then
		at = 2 + (-1 - at) % 128 + 128 * data(0, 1):uint()
	end
	while at < length do
		local size, head = data(at, 1):uint(), 1
		if size >= 128 then
			if at + 1 == length then
				return found, -1 - size
			end
			size, head = size % 128 + 128 * data(at + 1, 1):uint(), 2
		end
		if at + head + size + 1 <= length then
			found[#found + 1] = { at = at + head, size = size + 1 }
		end
		at = at + head + size + 1
	end
	return found, at - length
end

local function dissect_segments(tvb, tree, ctx)
	local at = 0
	while at < tvb:len() do
		if at + 24 > tvb:len() or at + 24 + tvb(at + 20, 4):le_uint() > tvb:len() then
			return bad(ctx, tree, "no KCP segment")
		end
		local size = tvb(at + 20, 4):le_uint()
		local item = tree:add(f.kcp, tvb(at, 24 + size))
		item:add_le(f.kcp_conv, tvb(at, 4))
		item:add(f.kcp_cmd, tvb(at + 4, 1))
		item:add_le(f.kcp_wnd, tvb(at + 6, 2))
		item:add_le(f.kcp_ts, tvb(at + 8, 4))
		item:add_le(f.kcp_sn, tvb(at + 12, 4))
		item:add_le(f.kcp_una, tvb(at + 16, 4))
		item:add_le(f.kcp_len, tvb(at + 20, 4))
		local command, sn = tvb(at + 4, 1):uint(), tvb(at + 12, 4):le_uint()
		item:append_text(string.format(": %s %d", COMMANDS[command] or "?", sn))
		ctx.info[#ctx.info + 1] = string.format("%s %d", COMMANDS[command] or "?", sn)
		if command == 81 and size > 0 then
			-- Messages in one segment can be read; of one in several the parts are shown.
			local conversation, data = tvb(at, 4):le_uint(), tvb(at + 24, size)
			local messages = once(ctx, function()
				local all = ctx.session[ctx.direction].starts
				all[conversation] = all[conversation] or { [0] = 0 }
				local starts, found = all[conversation], nil
				if starts[sn] then
					found, starts[(sn + 1) % 4294967296] = messages_of(data, starts[sn])
				end
				return found
			end) or {}
			local shown = 0
			for _, m in ipairs(messages) do
				shown = shown + m.size + (m.size > 128 and 2 or 1)
				local message = data(m.at, m.size):tvb()
				if is_bulk(ctx, conversation) then
					dissect_stream(message, item, ctx)
				else
					dissect_message(message, item, ctx)
				end
			end
			if shown < size then
				item:add(f.kcp_data, data)
			end
		end
		at = at + 24 + size
	end
end

local function dissect_heartbeat(tvb, tree, ctx)
	if tvb:len() ~= 12 then
		return bad(ctx, tree, "a heartbeat has 12 bytes")
	end
	if tvb(11, 1):uint() >= 2 * 117 then
		return bad(ctx, tree, "no datagram is that large")
	end
	tree:add_le(f.hb_ask, tvb(0, 4))
	tree:add_le(f.hb_echo, tvb(4, 4))
	tree:add_le(f.hb_hold, tvb(8, 3))
	tree:add(f.hb_answer, tvb(11, 1))
	tree:add(f.hb_largest, tvb(11, 1))
end

local dissect_body

-- dissect_part dissects a part, and with the last one that arrives, the whole body.
local function dissect_part(tvb, tree, ctx)
	local n = tvb:len()
	local head = n > 2 and tvb(0, 2):le_uint() or 0
	local offset, index, last = head % 2048, math.floor(head / 2048) % 4, math.floor(head / 8192) % 4
	local reliable = head >= 32768
	if n <= 2 or last == 0 or index > last or offset + n - 2 > 1472 or (index == 0) ~= (offset == 0) then
		return bad(ctx, tree, "a part that is none")
	end
	for _, field in ipairs({ f.part_kind, f.part_count, f.part_index, f.part_offset }) do
		tree:add_le(field, tvb(0, 2))
	end
	tree:add(f.part_data, tvb(2))
	ctx.info[#ctx.info + 1] = string.format("part %d of %d", index + 1, last + 1)
	local body = once(ctx, function()
		local bodies, first = ctx.session[ctx.direction].parts, (ctx.low - index) % 524288
		local b = bodies[first]
		if not b or b.last ~= last or b.reliable ~= reliable then
			b = { last = last, reliable = reliable, count = 0 }
			bodies[first] = b
		end
		if not b[index] then
			b[index], b.count = tvb(2):bytes(), b.count + 1
		end
		if b.count <= last then
			return false
		end
		bodies[first] = nil
		local whole = ByteArray.new()
		for i = 0, last do
			whole:append(b[i])
		end
		return whole
	end)
	if body then
		dissect_body(reliable and RELIABLE or DATA, body:tvb("body of " .. (last + 1) .. " parts"), tree, ctx)
	end
end

function dissect_body(kind, tvb, tree, ctx)
	if kind == DATA then
		dissect_message(tvb, tree, ctx)
	elseif kind == RELIABLE then
		dissect_segments(tvb, tree, ctx)
	elseif kind == HEARTBEAT then
		dissect_heartbeat(tvb, tree, ctx)
	elseif kind == CLOSE then
		if tvb:len() < 1 or tvb:len() > 65 then
			return bad(ctx, tree, "a close has 1 to 65 bytes")
		end
		tree:add(f.close_code, tvb(0, 1))
		if tvb:len() > 1 then
			tree:add(f.close_text, tvb(1))
		end
	elseif kind == CHALLENGE then
		if tvb:len() ~= 8 then
			return bad(ctx, tree, "a challenge has 8 bytes")
		end
		tree:add(f.challenge, tvb())
	elseif kind == RESPONSE then
		if tvb:len() ~= 9 then
			return bad(ctx, tree, "a response has 9 bytes")
		end
		tree:add(f.challenge, tvb(0, 8))
		tree:add(f.generation, tvb(8, 1))
	elseif kind == PROBE then
		if tvb:len() == 2 then
			ctx.info[1] = "Probe answer"
			tree:add_le(f.probe_size, tvb(0, 2))
		else
			generated(tree, f.probe_size, ctx.size)
		end
	elseif kind == PART then
		dissect_part(tvb, tree, ctx)
	end
end

-- Datagrams --------------------------------------------------------------------------------------------------------

-- is_encrypted reports whether bodies of the session are encrypted. A heartbeat has 12 bytes, and its AEAD tag.
local function is_encrypted(ctx, kind, size)
	if uplink.prefs.encryption ~= 0 then
		return uplink.prefs.encryption == 1
	end
	if kind == HEARTBEAT and not ctx.visited then
		ctx.session.plain = size == 12
	end
	return not ctx.session.plain
end

local EMPTY = ByteArray.new()

-- dissect_session dissects a datagram of a session. opened is the mark of uplink decrypt, if present.
local function dissect_session(tvb, tree, ctx, opened)
	local form = tvb(0, 1):bitfield(0, 2)
	local long, data = form == LONG, form == DATA_FORM
	local header = long and 11 or data and 2 or 3
	if tvb:len() < header then
		return bad(ctx, tree, "a datagram that ends in its header")
	end
	local kind = data and DATA or tvb(0, 1):bitfield(2, 3)
	local report = kind == DATA and not long and not data
	local id = opened and opened.id or (long and tvb(1, 8):le_uint64():tohex(16)) or nil
	ctx.session, ctx.direction = look(ctx.pinfo, id, opened and opened.direction or UP)
	local low = data and tvb(0, 2):bitfield(2, 14) or tvb(0, 1):bitfield(5, 3) * 65536 + tvb(header - 2, 2):le_uint()
	ctx.low = low
	tree:add(f.form, tvb(0, 1))
	if data then
		generated(tree, f.kind, kind)
		tree:add(f.number_data, tvb(0, 2))
	else
		tree:add(f.kind, tvb(0, 1))
		tree:add(f.number_high, tvb(0, 1))
	end
	if long then
		tree:add_le(f.conn, tvb(1, 8))
	elseif not opened and ctx.session.id then
		generated(tree, f.conn, UInt64.fromhex(ctx.session.id))
	end
	if not data then
		tree:add_le(f.number_low, tvb(header - 2, 2))
	end
	if not opened then
		local number = once(ctx, function()
			local way = ctx.session[ctx.direction]
			local n = way.newest and nearest(way.newest, low, data and 16384 or 524288, data and 8191 or 262143) or low
			way.newest = math.max(way.newest or 0, n)
			return n
		end)
		generated64(tree, f.number, number)
		generated(tree, f.direction, ctx.direction)
	end
	ctx.info[1] = KINDS[kind]
	local body = tvb:len() - header
	if not opened and is_encrypted(ctx, kind, body) then
		local item = body > 0 and tree:add(f.sealed, tvb(header)) or tree
		item:add_proto_expert_info(no_body, string.format("encrypted, %d bytes; run uplink decrypt", body))
		ctx.info[#ctx.info + 1] = string.format("encrypted, %d bytes", body)
		return
	end
	ctx.size = tvb:len() + (opened and opened.tag or 0)
	if report then
		if body < 6 then
			return bad(ctx, tree, "a report that is cut off")
		end
		tree:add_le(f.report_newest, tvb(header, 2))
		tree:add_le(f.report_arrived, tvb(header + 2, 2))
		tree:add_le(f.report_count, tvb(header + 4, 2))
		ctx.info[#ctx.info + 1] = "report"
		header, body = header + 6, body - 6
		if body == 0 then
			return
		end
	end
	local inner = body > 0 and tvb(header):tvb() or EMPTY:tvb("empty body")
	dissect_body(kind, inner, tree, ctx)
end

-- A copy that uplink decrypt made begins with 0xbe, or 0xbf to the client; "upl"; suite u8; connection id u64; packet
-- number u64.
local OPENED = 21
local TAGS = { [0] = 0, [1] = 16, [2] = 8, [3] = 16, [4] = 8 }

local function is_opened(tvb)
	local first = tvb:len() > OPENED and tvb(0, 1):uint()
	return (first == 0xbe or first == 0xbf) and tvb(1, 3):string() == "upl" and tvb(OPENED, 1):bitfield(0, 2) ~= HANDSHAKE
end

local function dissect_opened(tvb, tree, ctx)
	local opened = {
		direction = tvb(0, 1):uint() - 0xbe, id = tvb(5, 8):le_uint64():tohex(16), tag = TAGS[tvb(4, 1):uint()],
	}
	local item = tree:add(f.opened, tvb(0, OPENED))
	item:add(f.direction, tvb(0, 1), opened.direction)
	item:add(f.suite, tvb(4, 1))
	item:add_le(f.conn, tvb(5, 8))
	item:add_le(f.number, tvb(13, 8))
	dissect_session(tvb(OPENED):tvb(), tree, ctx, opened)
end

local function dissect_handshake(tvb, tree, ctx)
	local kind = tvb(0, 1):bitfield(2, 6)
	tree:add(f.form, tvb(0, 1))
	tree:add(f.hs_type, tvb(0, 1))
	ctx.info[1] = TYPES[kind] or "?"
	local n = tvb:len()
	local sizes = { [0] = n >= 64, [1] = n == 33, [2] = n == 67, [3] = n == 10, [4] = n == 3 or n == 4 or n == 12 }
	if not sizes[kind] then
		return bad(ctx, tree, "a datagram of the handshake that has another length")
	end
	if kind == 4 then
		tree:add(f.hs_echo, tvb(1))
		return
	end
	if kind ~= 0 then
		tree:add_le(f.hs_nonce, tvb(1, 8))
	end
	if kind == 0 then
		tree:add_le(f.hs_version, tvb(1, 2))
		tree:add_le(f.hs_nonce, tvb(3, 8))
		if tvb(1, 2):le_uint() ~= VERSION then
			return
		end
		tree:add(f.hs_cookie, tvb(11, 24))
		tree:add(f.hs_key, tvb(35, 4))
		tree:add(f.hs_route_size, tvb(39, 1))
		local route = tvb(39, 1):uint()
		if route > 16 then
			return bad(ctx, tree, "a hello with too long a route id")
		end
		if route > 0 then
			tree:add(f.hs_route, tvb(40, route))
		end
		tree:add_le(f.hs_length, tvb(40 + route, 2))
		local size = tvb(40 + route, 2):le_uint()
		if 42 + route + size > n then
			return bad(ctx, tree, "a hello that ends in its message")
		end
		if size > 0 then
			tree:add(f.hs_noise, tvb(42 + route, size))
		end
		once(ctx, function()
			local known, nonce = flows[(flow_keys(ctx.pinfo))], tvb(3, 8):le_uint64():tohex(16)
			if not known or known.session.nonce ~= nonce then
				local s = new_session(nil)
				s.nonce = nonce
				learn(ctx.pinfo, s, UP)
			end
		end)
	elseif kind == 1 then
		tree:add(f.hs_cookie, tvb(9, 24))
	elseif kind == 2 then
		tree:add(f.hs_noise, tvb(9))
	else
		tree:add(f.hs_reason, tvb(9, 1))
	end
end

function uplink.dissector(tvb, pinfo, tree)
	if tvb:len() == 0 or tvb:len() ~= tvb:reported_len() then
		return 0 -- nothing, or cut off when it was captured
	end
	pinfo.cols.protocol = "uplink"
	local ctx = { pinfo = pinfo, packet = pinfo.number, visited = pinfo.visited, step = 0, info = {} }
	local item = tree:add(uplink, tvb())
	if is_opened(tvb) then
		dissect_opened(tvb, item, ctx)
	elseif tvb(0, 1):bitfield(0, 2) == HANDSHAKE then
		dissect_handshake(tvb, item, ctx)
	else
		dissect_session(tvb, item, ctx, nil)
	end
	local info = table.concat(ctx.info, ", ")
	pinfo.cols.info = info
	item:append_text(": " .. info)
	return tvb:len()
end

-- Without the port, opened datagrams are known by their mark, and others by the hello of their session.
local function heuristic(tvb, pinfo, tree)
	local n = tvb:len()
	if n ~= tvb:reported_len() then
		return false
	end
	local hello = n >= 64 and n <= 1200 and tvb(0, 1):uint() == 0x80 and tvb(1, 2):le_uint() == VERSION
		and 37 + tvb(35, 2):le_uint() <= math.max(n, 64)
	if not hello and not is_opened(tvb) then
		return false
	end
	pinfo.conversation = uplink
	uplink.dissector(tvb, pinfo, tree)
	return true
end

local udp = DissectorTable.get("udp.port")
local registered

local function listen()
	if registered ~= uplink.prefs.port then
		if registered then
			udp:remove(registered, uplink)
		end
		registered = uplink.prefs.port
		if registered ~= 0 then
			udp:add(registered, uplink)
		end
	end
end
uplink.prefs_changed = listen

uplink:register_heuristic("udp", heuristic)
listen()
