#!/usr/bin/env python3
"""Compares the symbols that a shared library exports with the functions of the headers for C, and the
versions of glibc that it needs with the oldest supported one:

    symbols.py LIBRARY
"""
import pathlib
import re
import subprocess
import sys

GLIBC = (2, 34)

headers = pathlib.Path(__file__).resolve().parents[2] / "include" / "uplink"
api = set()
for header in headers.glob("*.h"):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    api |= set(re.findall(r"UPLINK_API[^;(]*?\b(uplink_\w+)\(", text))

library = sys.argv[1]
if library.endswith(".dll"):
    dump = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", library], check=True, capture_output=True, text=True).stdout
    table = dump[dump.index("[Ordinal/Name Pointer] Table"):]
    exported = set(re.findall(r"^\s*\[\s*\d+\] (?:\+base\[\s*\d+\]\s+\w+ )?(\w+)$", table, flags=re.M))
else:
    dump = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in dump.splitlines()}
    needed = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
    newest = max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", needed))
    if newest > GLIBC:
        sys.exit(f"{library} needs glibc {newest}, at most {GLIBC} is permitted")
    print("glibc", ".".join(map(str, newest)), "suffices")
if exported != api:
    sys.exit(f"exported without a declaration: {sorted(exported - api)}; declared and not exported: {sorted(api - exported)}")
print(len(api), "functions are exported, and nothing else")
