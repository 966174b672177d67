#!/usr/bin/env python3
"""corpus.py DIRECTORY writes the inputs from which the fuzz targets start to DIRECTORY/TARGET: those in
seeds, the test vectors, and the fuzz corpora of the Go packages, in the form that each target reads."""
import hashlib
import json
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
out = pathlib.Path(sys.argv[1])


def add(target, data):
    directory = out / target
    directory.mkdir(parents=True, exist_ok=True)
    (directory / hashlib.sha1(data).hexdigest()).write_bytes(data)


for seed in (root / "native/fuzz/seeds").glob("*/*"):
    add(seed.parent.name, seed.read_bytes())


def strings(value):
    """strings returns all strings of a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [s for v in value for s in strings(v)] if isinstance(value, list) else []


def vectors(name, *keys):
    """vectors returns the byte strings of a file of vectors, of these keys or of all."""
    value = json.loads((root / "testdata/vectors" / name).read_text())
    found = strings([value[k] for k in keys] if keys else value)
    return [bytes.fromhex(s) for s in found if len(s) % 2 == 0 and re.fullmatch("[0-9a-f]+", s)]


escapes = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34, "'": 39}


def unquote(text):
    """unquote returns the bytes of a quoted string of Go."""
    data = b""
    for x, u, v, e, c in re.findall(r"\\x(..)|\\u(....)|\\U(.{8})|\\(.)|(.)", text, re.S):
        if x:
            data += bytes([int(x, 16)])
        elif u or v:
            data += chr(int(u or v, 16)).encode()
        else:
            data += bytes([escapes[e]]) if e else c.encode()
    return data


def corpora(*packages):
    """corpora returns the byte strings of the Go fuzz corpora of packages."""
    found = []
    for package in packages:
        for file in sorted((root / package / "testdata/fuzz").glob("*/*")):
            for q in re.findall(r'^(?:\[\]byte|string)\("(.*)"\)$', file.read_text(), re.M):
                found.append(unquote(q))
    return found


# fuzz_client: the first byte selects the parser.
datagrams = vectors("datagrams.json") + corpora("transport/internal/wire", "transport/internal/session",
                                                "transport/internal/admission")
for d in datagrams:
    add("fuzz_client", b"\0" + d)
for d in vectors("kcp.json") + corpora("transport/internal/reliable"):
    n = min(len(d), 1023)
    add("fuzz_client", b"\1" + bytes([n & 255, n >> 8]) + d[:n])
messages = vectors("messages.json", "bind_requests", "bind_answers", "handovers", "messages", "malformed", "streams")
for m in messages + corpora("internal/control", "ds"):
    for parser in (2, 3, 5, 6, 7, 8):
        add("fuzz_client", bytes([parser]) + m)
def sessions(folder, *commands):
    """sessions returns the bytes of these commands, by golden session of a folder."""
    found = {}
    for file in sorted((root / folder).glob("*.session")):
        lines = [line.replace("= ", "").split() for line in file.read_text().splitlines()]
        found[file.stem] = [bytes.fromhex(w[1]) for w in lines if w and w[0] in commands]
    return found


for file in sorted((root / "testdata/sessions/downstreams").glob("*.jsonl")):
    for line in file.read_text().splitlines():
        step = json.loads(line)
        if "reliable" in step:
            add("fuzz_client", b"\6" + bytes.fromhex(step["reliable"]))
            add("fuzz_client", b"\10" + bytes.fromhex(step["reliable"]))
        for m in step.get("sent", []):
            add("fuzz_client", b"\5" + bytes.fromhex(m))
            add("fuzz_client", b"\7" + bytes.fromhex(m))


def records(messages, size=3000):
    """records returns messages with their sizes in front, as many as fit."""
    data = b""
    for m in messages:
        if len(data) + 2 + len(m) > size:
            break
        data += len(m).to_bytes(2, "little") + m
    return data


# fuzz_downlink: the first byte selects the decoder and the types of objects.
for name, sent in sessions("snapshot/testdata", "send").items():
    add("fuzz_downlink", (b"\1" if name == "kinds" else b"\0") + records(sent))
for sent in sessions("internal/replication/areas/testdata", "take").values():
    add("fuzz_downlink", b"\2" + records(sent))
for t in strings(json.loads((root / "testdata/vectors/tokens.json").read_text())):
    add("fuzz_client", b"\4" + t.encode())
for t in corpora("token"):
    add("fuzz_client", b"\4" + t)

acks = vectors("frames.json", "acks", "malformed_acks")
for a in acks + [b"".join(acks)]:
    add("fuzz_ack", a)

payloads = vectors("frames.json", "headers", "malformed_headers") + vectors("rle.json")
payloads += vectors("messages.json", "rpc_numbers")
payloads = [bytes([len(p)]) + p for p in payloads if len(p) < 256]
for p in payloads + [b"".join(payloads)]:
    add("fuzz_decode", p)

for p in vectors("priors.json"):
    add("fuzz_prior", p)

packets = []
for line in (root / "statesync/testdata/kinds.golden").read_text().splitlines():
    words = line.split()
    if words[0] == "packet" and words[3] != "lost":
        p = bytes.fromhex(words[1])
        packets.append(bytes([len(p)]) + p)
for i in range(0, len(packets), 24):
    add("fuzz_state", b"".join(packets[i:i + 24]))
add("fuzz_state", b"".join(packets))
