#!/usr/bin/env python3
"""Rebuilds shakespeare.deflate and shakespeare.index from the texts named in PROVENANCE.md.

    rebuild.py FOLDER    FOLDER holds the 42 files *_gut.txt

Lines are trimmed, runs of white space within them become one space, lines without a letter or digit are dropped
(empty ones, rules, markup left over). The rest is joined by single spaces; a chunk closes at the line where it
reaches 10,000 characters, and every chunk begins with a space, so that the text runs on over the edges and from
its end to its beginning. Sixteen chunks at a time are packed as an independent raw deflate block.
"""

import pathlib
import sys
import zlib

CHUNK_CHARACTERS = 10_000
CHUNKS_PER_BLOCK = 16


def lines(folder):
    works = sorted(folder.glob("*_gut.txt"))
    if len(works) != 42:
        sys.exit(f"{folder}: expected 42 files *_gut.txt, found {len(works)}")
    works.sort(key=lambda path: path.name != "sonnets_gut.txt")
    for work in works:
        for line in work.read_text("ascii").splitlines():
            line = " ".join(line.split())
            if any(character.isalnum() for character in line):
                yield line


def chunks(folder):
    chunk = ""
    for line in lines(folder):
        chunk += " " + line
        if len(chunk) >= CHUNK_CHARACTERS:
            yield chunk
            chunk = ""
    if chunk:
        yield chunk


def main():
    here = pathlib.Path(__file__).parent
    every = list(chunks(pathlib.Path(sys.argv[1])))
    packed, index = b"", ""
    for start in range(0, len(every), CHUNKS_PER_BLOCK):
        block = every[start : start + CHUNKS_PER_BLOCK]
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
        data = deflate.compress("".join(block).encode("ascii")) + deflate.flush()
        packed += data
        index += " ".join(str(number) for number in [len(data), *map(len, block)]) + "\n"
    (here / "shakespeare.deflate").write_bytes(packed)
    (here / "shakespeare.index").write_text(index)
    print(len(every), "chunks,", sum(map(len, every)), "bytes,", len(packed), "packed")


main()
