"""Shared libraries that hold nothing: a loader finds and lists them, and opening one fails as if it were not there.

So a box with the stand-in driver behaves like one without: programs that try NVIDIA's library go on as on a CPU.
"""

import struct

_NEEDED, _STRTAB, _STRSZ, _SONAME = 1, 5, 10, 14
_MISSING = "libgpubox-lab-has-no-driver.so"
_HEADER, _PROGRAM, _PROGRAMS = 64, 56, 3
_STACK = 0x6474E551  # PT_GNU_STACK: without it the stack must be executable, which glibc 2.41 refuses (Debian 13)


def library(soname: str) -> bytes:
    """An x86-64 ELF file of that name, which needs a library that no box has."""
    names = b"\0" + soname.encode() + b"\0" + _MISSING.encode() + b"\0"
    names_at = _HEADER + _PROGRAM * _PROGRAMS
    dynamic_at = (names_at + len(names) + 7) & ~7
    entries = [(_NEEDED, len(soname) + 2), (_SONAME, 1), (_STRTAB, names_at), (_STRSZ, len(names)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in entries)
    size = dynamic_at + len(dynamic)
    load = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, size, size, 0x1000)
    table = struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    stack = struct.pack("<IIQQQQQQ", _STACK, 6, 0, 0, 0, 0, 0, 16)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, _HEADER, 0, 0, _HEADER, _PROGRAM, _PROGRAMS, 64, 0, 0)
    return (header + load + table + stack + names).ljust(dynamic_at, b"\0") + dynamic
