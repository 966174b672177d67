#!/usr/bin/env python3
"""Inputs of the fuzz targets, in the form that the targets of both languages read
(testdata/fuzz/README.md).

corpus.py seeds DIRECTORY     writes inputs from test vectors, golden sessions and the corpora in
                              testdata/fuzz to DIRECTORY/PARSER
corpus.py from-go FILE        writes the input of a file of Go's fuzzer ("go test fuzz v1")
corpus.py to-go FILE          writes a raw input as such a file
corpus.py compare TARGETS DIRECTORY
                              runs the C++ targets on the inputs in DIRECTORY/PARSER, and compares
                              the results with those that the Go targets have written there
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
corpora = root / "testdata/fuzz"

header = "go test fuzz v1\n"
escapes = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34, "'": 39}


def from_go(text):
    """from_go returns the input of a file of Go's fuzzer, whose only argument is bytes; otherwise None."""
    found = re.fullmatch(header + r'\[\]byte\("(.*)"\)\n?', text)
    if not found:
        return None
    data = b""
    for x, o, u, v, e, c in re.findall(r"\\x(..)|\\([0-7]{3})|\\u(....)|\\U(.{8})|\\(.)|(.)", found[1], re.S):
        if x:
            data += bytes([int(x, 16)])
        elif o:
            data += bytes([int(o, 8)])
        elif u or v:
            data += chr(int(u or v, 16)).encode()
        else:
            data += bytes([escapes[e]]) if e else c.encode()
    return data


def to_go(data):
    """to_go returns the file of Go's fuzzer for an input."""
    return header + '[]byte("' + "".join(f"\\x{b:02x}" for b in data) + '")\n'


def store(directory, data):
    """store writes an input to a directory, and returns its file."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / hashlib.sha256(data).hexdigest()[:16]
    file.write_bytes(data)
    return file


def entry(message, reliable=False):
    """entry returns a message as package entries does."""
    n = len(message)
    flag = 0x80 if reliable else 0
    return (bytes([flag | n]) if n < 127 else bytes([flag | 127]) + n.to_bytes(2, "little")) + message


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


def session(file, command):
    """session returns the messages of a command in a golden session."""
    lines = [line.replace("= ", "").split() for line in (root / file).read_text().splitlines()]
    return [bytes.fromhex(w[1]) for w in lines if w and w[0] == command]


def steps(name):
    """steps returns the steps of a recorded session."""
    return [json.loads(line) for line in (root / "testdata/sessions" / name).read_text().splitlines()]


def histories(head, messages, most):
    """histories returns inputs of one to three messages, each after those before it."""
    return [head + bytes([i]) + b"".join(map(entry, messages[i:i + 1 + i % 3])) for i in range(min(most + 1, len(messages)))]


def seeds():
    """seeds returns the inputs of each parser."""
    found = {"snapshot": [], "frame": [], "ack": [], "message": [], "reliable": []}
    for i, name in enumerate(("cubes", "ground", "kinds", "physics")):
        found["snapshot"] += histories(bytes([i]), session(f"internal/snapshot/testdata/{name}.session", "send"), 16)
    found["area"] = histories(b"", session("internal/replication/areas/testdata/moves.session", "take"), 8)
    found["state"] = histories(b"", session("internal/statesync/testdata/kinds.golden", "packet"), 16)
    for i, name in enumerate(("rle_kinds", "adaptive_kinds", "adaptive")):
        payloads = [bytes.fromhex(s["payload"]) for s in steps(name + ".jsonl") if "payload" in s]
        found["frame"] += histories(bytes([i]), payloads, 16)
    for i, a in enumerate(vectors("frames.json", "acks", "malformed_acks")):
        found["ack"].append(bytes([i % 18, 4 * i % 71]) + entry(a))
    for reliable in (False, True):
        for m in vectors("messages.json", "bind_requests", "bind_answers", "handovers", "messages", "malformed", "streams"):
            found["message"].append(entry(m, reliable))
    for file in sorted((root / "testdata/sessions/downstreams").glob("*.jsonl")):
        sent = []
        for s in steps("downstreams/" + file.name):
            sent += [entry(bytes.fromhex(s["reliable"]), True)] if "reliable" in s else []
            sent += [entry(bytes.fromhex(m)) for m in s.get("sent", [])]
        found["message"] += [b"".join(sent[:n]) for n in range(1, 12)]
    found["handshake"] = vectors("datagrams.json", "headers", "malformed_headers", "handshakes", "bodies", "sealed")
    for d in vectors("kcp.json"):
        found["reliable"].append(entry(d))
    bodies = [bytes.fromhex(e["bytes"]) for e in json.loads((root / "testdata/vectors/kcp.json").read_text())["events"] if "bytes" in e]
    found["reliable"] += [b"".join(map(entry, bodies[i:i + 4])) for i in range(0, len(bodies), 4)]
    found["token"] = [t.encode() for t in strings(json.loads((root / "testdata/vectors/tokens.json").read_text()))]
    found["prior"] = vectors("priors.json")
    for parser in found:
        found[parser] += stored(parser)
    return found


def stored(parser):
    """stored returns the corpus of a parser in the repository."""
    return [file.read_bytes() for file in sorted((corpora / parser).glob("*"))]


def compare(target, directory):
    """compare returns an error if results of a C++ target differ, and stores the first such input."""
    inputs = sorted(f for f in directory.iterdir() if f.suffix != ".results")
    environment = {**os.environ, "UPLINK_FUZZ_RESULTS": "1"}
    for i in range(0, len(inputs), 1000):
        some = inputs[i:i + 1000]
        done = subprocess.run([target, *some], env=environment, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            return f"{target}: {done.stderr[-5000:]}"
        lines = done.stdout.split("\n")[:-1][-len(some):]  # libFuzzer may run the first one twice
        for file, got in zip(some, lines, strict=False):
            want = file.with_name(file.name + ".results").read_text().split()
            got = got.split()
            if "full" in got:  # the C++ receiver has less memory
                got = got[:got.index("full")]
                want = want[:len(got)]
            if got != want:
                return f"{store(corpora / directory.name, file.read_bytes())}: C++ makes of it\n{got}\nand Go\n{want}"
    print(f"{directory.name}: {len(inputs)} inputs have the same results in Go and C++")
    return None


def main():
    if sys.argv[1:2] == ["compare"] and len(sys.argv) == 4:
        targets, directory = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
        failed = [compare(targets / f"fuzz_{d.name}", d) for d in sorted(directory.iterdir())]
        sys.exit("\n".join(filter(None, failed)) or None)
    if len(sys.argv) != 3 or sys.argv[1] not in ("seeds", "from-go", "to-go"):
        sys.exit(__doc__.strip())
    path = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "from-go":
        data = from_go(path.read_text())
        if data is None:
            sys.exit(f"{path}: want one argument of type []byte")
        sys.stdout.buffer.write(data)
    elif sys.argv[1] == "to-go":
        sys.stdout.write(to_go(path.read_bytes()))
    else:
        for parser, inputs in seeds().items():
            for data in inputs:
                store(path / parser, data)


if __name__ == "__main__":
    main()
