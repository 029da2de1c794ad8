#!/usr/bin/env python3
"""Writes a trace of completions as Parquet: prompts that do not compress, in sessions, over two hours.

Needs nothing but Python: pyarrow is installed into a virtual environment of its own on the first call. The rows are the
same for the same arguments; --shuffled writes them in another order.
"""

import argparse
import base64
import os
import pathlib
import random
import subprocess
import sys

ROW_GROUP_BYTES = 64 << 20
SPAN_MS = 2 * 3600 * 1000
# Rows of one session are this many rows apart, and so many.
APART, TURNS = 100, 4


def enter_environment(folder: pathlib.Path) -> None:
    """Goes on in a Python that has pyarrow."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if subprocess.run([python, "-c", "import pyarrow"], stderr=subprocess.DEVNULL).returncode:
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", "pyarrow"], check=True)
    os.execv(python, [str(python), __file__, *sys.argv[1:], "--inside"])


def row(number: int, rows: int, prompt_bytes: int) -> dict:
    draw = random.Random(number)
    block, within = divmod(number, APART * TURNS)
    return {
        "timestamp_start_unix_ms": 1_700_000_000_000 + number * SPAN_MS // rows,
        "prompt": base64.b64encode(draw.randbytes(prompt_bytes * 3 // 4)).decode(),
        "input_tokens": prompt_bytes // 4,
        "output_tokens": draw.randrange(1, 5),
        "provided_session_id": f"s{block * APART + within % APART}",
        "total_hashes": [draw.randrange(1 << 40) for _ in range(prompt_bytes // 256)],
        "block_size": 64,
        "request_canceled": int(draw.random() < 0.01),
        "duration_e2e_ms": draw.randrange(10, 2000),
        "duration_ttft_ms": 5.0,
        "output_text": "ok",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--prompt-bytes", type=int, default=100_000)
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--environment", type=pathlib.Path, default=pathlib.Path(".bench/pyarrow"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        enter_environment(arguments.environment.absolute())

    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("timestamp_start_unix_ms", pa.int64()),
            ("prompt", pa.string()),
            ("input_tokens", pa.int64()),
            ("output_tokens", pa.int64()),
            ("provided_session_id", pa.string()),
            ("total_hashes", pa.list_(pa.int64())),
            ("block_size", pa.int64()),
            ("request_canceled", pa.int64()),
            ("duration_e2e_ms", pa.int64()),
            ("duration_ttft_ms", pa.float64()),
            ("output_text", pa.string()),
        ]
    )
    order = list(range(arguments.rows))
    if arguments.shuffled:
        random.Random(7).shuffle(order)
    in_group = max(1, ROW_GROUP_BYTES // arguments.prompt_bytes)
    unfinished = arguments.file.with_suffix(".tmp")
    with pq.ParquetWriter(unfinished, schema) as writer:
        for first in range(0, len(order), in_group):
            rows = [row(n, arguments.rows, arguments.prompt_bytes) for n in order[first : first + in_group]]
            writer.write_table(pa.Table.from_pylist(rows, schema), row_group_size=in_group)
    unfinished.rename(arguments.file)


if __name__ == "__main__":
    main()
