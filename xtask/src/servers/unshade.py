"""Copies the classes that a jar carries under a prefix to another jar, under their own names.

    python3 unshade.py SHADED.jar OUT.jar

Hadoop's jar for clients has the libraries of its servers, but relocated. A class names others in its table of constants
only, so the prefix is taken out there, from every text that holds it; files that name services are renamed and edited.
"""
import struct
import sys
import zipfile

PREFIX = "org/apache/hadoop/shaded/"
SLASHES = PREFIX.encode()
DOTS = SLASHES.replace(b"/", b".")
# Hadoop's own classes come from its other jars; what it relocates elsewhere is used from there.
OWN = "org/apache/hadoop/"
KEPT = (PREFIX, "org/apache/hadoop/thirdparty/")

# Bytes that a constant takes, by its tag. A text, tag 1, says its length itself; numbers of 8 bytes count as two.
SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}


def plain(text):
    return text.replace(SLASHES, b"").replace(DOTS, b"")


def unshaded(code):
    (count,) = struct.unpack_from(">H", code, 8)
    at, number, copied, parts = 10, 1, 0, []
    while number < count:
        tag = code[at]
        if tag != 1:
            at += SIZES[tag]
            number += 2 if tag in (5, 6) else 1
            continue
        (length,) = struct.unpack_from(">H", code, at + 1)
        text = code[at + 3 : at + 3 + length]
        if plain(text) != text:
            parts += [code[copied:at], b"\x01", struct.pack(">H", len(plain(text))), plain(text)]
            copied = at + 3 + length
        at += 3 + length
        number += 1
    return b"".join(parts) + code[copied:]


def wanted(name):
    if name.endswith("/") or (name.startswith(OWN) and not name.startswith(KEPT)):
        return False
    return not name.startswith("META-INF/") or name.startswith("META-INF/services/")


with zipfile.ZipFile(sys.argv[1]) as shaded, zipfile.ZipFile(sys.argv[2], "w") as out:
    seen = set()
    for name in filter(wanted, shaded.namelist()):
        to = plain(name.encode()).decode()
        if to in seen:
            continue
        seen.add(to)
        data = shaded.read(name)
        if name.endswith(".class"):
            data = unshaded(data)
        elif name.startswith("META-INF/"):
            data = plain(data)
        out.writestr(to, data)
