"""The nearest base found for delta coding: `python examples/delta_coding.py [FOLDER]`.

A store of builds keeps each new file as its difference from a file that it holds. Which one? The one that shares most
byte windows. This makes twelve releases of three programs in changing order (or takes the files of FOLDER), finds for
each the nearest earlier one by the resemblance of samples, codes it against that base with zstd, and prints the bytes
saved. Needs Python 3.14, `backports.zstd`, or the `zstd` program; without any it only names the bases.
"""

import functools
import importlib
import importlib.util
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import likewise
from likewise.stages import sets

WINDOW_BYTES = 8
LEAST_RESEMBLANCE = 0.05
LEVEL = 19

# Compresses a file, against a base where one is given; returns the number of bytes.
Coder = Callable[[bytes, bytes | None], int]


def as_text(data: bytes) -> str:
    """Return bytes as text of one character each, characters that no normalization changes."""
    return data.decode("latin-1").translate({byte: 0x4E00 + byte for byte in range(256)})


def nearest_bases(files: list[bytes]) -> list[tuple[int, float] | None]:
    """Return for each file the earlier one that resembles it most, and by how much; None where none does."""
    recipe = likewise.Recipe.shingles(tokens="char", shingle=WINDOW_BYTES)
    samples = sets.sample([as_text(data) for data in files], recipe, kind="min-s", size=512)
    found: list[tuple[int, float] | None] = []
    for row in range(len(files)):
        values = [(samples.resemblance(row, base).value, -base) for base in range(row)]
        best, base = max(values, default=(0.0, 0))
        found.append((-base, best) if best >= LEAST_RESEMBLANCE else None)
    return found


def coder() -> Coder | None:
    """Return what zstd there is: that of Python 3.14, its backport, or the program."""
    for name in ("compression", "backports"):
        if importlib.util.find_spec(name) and importlib.util.find_spec(f"{name}.zstd"):
            return functools.partial(by_module, importlib.import_module(f"{name}.zstd"))
    program = shutil.which("zstd")
    return None if program is None else functools.partial(by_program, program)


def by_module(zstd: Any, data: bytes, base: bytes | None) -> int:
    """Return the size by Python's zstd, the base as a prefix, which is what --patch-from makes of it."""
    if base is None:
        return len(zstd.compress(data, level=LEVEL))
    # The window reaches back over the whole base.
    parameter, window = zstd.CompressionParameter, max(10, (len(base) + len(data)).bit_length())
    options = {parameter.compression_level: LEVEL, parameter.window_log: window}
    return len(zstd.compress(data, options=options, zstd_dict=zstd.ZstdDict(base, is_raw=True).as_prefix))


def by_program(program: str, data: bytes, base: bytes | None) -> int:
    """Return the size by the zstd program, with --patch-from where there is a base."""
    with tempfile.TemporaryDirectory() as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        new.write_bytes(data)
        command = [program, "-q", f"-{LEVEL}", "-c", str(new)]
        if base is not None:
            old.write_bytes(base)
            command.append(f"--patch-from={old}")
        return len(subprocess.run(command, check=True, capture_output=True).stdout)


def made_releases(generator: random.Random) -> list[tuple[str, bytes]]:
    """Return four releases each of three programs, mixed: every release changes, adds and drops a little."""
    releases = []
    for name in ("alpha", "beta", "gamma"):
        data = bytearray(generator.randbytes(40_000))
        for number in range(4):
            releases.append((f"{name}-{number}", bytes(data)))
            for _ in range(12):
                place = generator.randrange(len(data))
                data[place : place + generator.randrange(60)] = generator.randbytes(generator.randrange(90))
    order = sorted(range(12), key=lambda i: (i % 4, generator.random()))
    return [releases[i] for i in order]


def main(folder: Path | None = None) -> None:
    """Name the bases, and what they save."""
    if folder is None:
        named = made_releases(random.Random(8))
    else:
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        named = [(str(path.relative_to(folder)), path.read_bytes()) for path in paths]
    files = [data for _, data in named]
    bases, compress = nearest_bases(files), coder()
    alone = coded = 0
    for (name, data), base in zip(named, bases, strict=True):
        told = "no base" if base is None else f"base {named[base[0]][0]} ({base[1]:.2f})"
        if compress is None:
            print(f"{name}: {len(data):,} bytes; {told}")
            continue
        own = compress(data, None)
        best = own if base is None else min(own, compress(data, files[base[0]]))
        alone, coded = alone + own, coded + best
        print(f"{name}: {len(data):,} bytes, alone {own:,}, kept {best:,}; {told}")
    if compress is None:
        print("No zstd here: pip install backports.zstd")
    else:
        saved = f"{alone - coded:,} ({1 - coded / alone:.0%}) saved"
        print(f"{sum(map(len, files)):,} bytes; each alone {alone:,}; by the nearest base {coded:,}: {saved}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
