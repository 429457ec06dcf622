"""Files compressed with bzip2 or xz: read and written by the standard library, in the way of ``_native.PackedFile``."""

import bz2
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from likewise.errors import InvalidInput
from likewise.io.formats import MAGICS

_READ_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20
# Memory of the decoder: xz -9 needs 65 MB.
_MOST_MEMORY = 256 << 20
# The ratio is not checked below this size, as for other codecs.
_FREE_BYTES = 64 << 20


class PackedStream:
    """A file that is decompressed into a plain one, with the methods of ``_native.PackedFile``."""

    def __init__(self, path: str, spool: str, *, codec: str, max_bytes: int, max_ratio: int) -> None:
        self._path, self._codec = path, codec
        self._source = Path(path).open("rb")  # noqa: SIM115
        self._spool = Path(spool).open("wb")  # noqa: SIM115
        self._max_bytes, self._max_ratio = max_bytes, max_ratio
        self._damage: str | None = None
        self._blocks = self._decompressed()
        # Decompressed bytes; end of the last piece; compressed bytes at that time.
        self._num_plain, self._end, self._num_told = 0, 0, 0

    def next_piece(self, piece_bytes: int) -> tuple[int, int, int] | None:
        """Decompress about `piece_bytes` more: (offset, length, compressed bytes) of whole lines; None at the end."""
        try:
            return self._next_piece(piece_bytes)
        except InvalidInput:
            self._close()
            raise

    def _next_piece(self, piece_bytes: int) -> tuple[int, int, int] | None:
        start, end = self._end, self._end
        for block in self._blocks:
            newline = block.rfind(b"\n") + 1
            end = self._num_plain + newline if newline else end
            self._spool.write(block)
            self._num_plain += len(block)
            num, read = self._num_plain, self._source.tell()
            if num > self._max_bytes:
                raise InvalidInput(
                    f"it unpacks to more than {self._max_bytes} bytes, which --max-unpacked allows", self._path
                )
            if num > _FREE_BYTES and num // self._max_ratio > read:
                raise InvalidInput(
                    f"{read} bytes of it unpack to {num}, over {self._max_ratio} times as many, as in a decompression "
                    "bomb; where that is right, allow more with --max-unpack-ratio",
                    self._path,
                )
            if end - start >= piece_bytes:
                break
        else:
            # After damage, the last line may be incomplete.
            end = self._num_plain if self._damage is None else end
        self._spool.flush()
        if end == start:
            self._close()
            return None
        self._end, before, self._num_told = end, self._num_told, self._source.tell()
        return start, end - start, self._num_told - before

    def _close(self) -> None:
        self._source.close()
        self._spool.close()

    def damage(self) -> tuple[str, int] | None:
        """Return why the file cannot be decompressed to its end, and how many bytes there are; None if it can."""
        return None if self._damage is None else (self._damage, self._num_plain)

    def _decompressed(self) -> Iterator[bytes]:
        """Yield decompressed blocks of all streams in the file; stop at damage."""
        data, magic = self._source.read(_READ_BYTES), MAGICS[self._codec]
        if not data:
            self._damage = f"the file is empty: there is no {self._codec} header"
        while data:
            if not data.startswith(magic):
                at = self._source.tell() - len(data)
                self._damage = f"there are trailing bytes after the {self._codec} stream, from byte {at} on"
                return
            is_bzip2 = self._codec == "bzip2"
            decoder: Any = bz2.BZ2Decompressor() if is_bzip2 else lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_MEMORY)
            while not decoder.eof:
                if decoder.needs_input and not data and not (data := self._source.read(_READ_BYTES)):
                    self._damage = (
                        f"the file is cut: it ends inside its {self._codec} data, at byte {self._source.tell()}"
                    )
                    return
                try:
                    block = decoder.decompress(data, _BLOCK_BYTES)
                except (OSError, lzma.LZMAError) as error:
                    if "limit" in str(error):
                        raise InvalidInput(
                            f"decompression needs more than {_MOST_MEMORY >> 20} MiB of memory, the limit for an xz "
                            "dictionary; compress it again, for example with xz -dc FILE | xz -9",
                            self._path,
                        ) from error
                    self._damage = f"the file is damaged ({error}) in the first {self._source.tell()} bytes"
                    return
                data = b""
                yield block
            data = decoder.unused_data
            # Streams can be followed by padding and further streams.
            while len(data := data.lstrip(b"\0")) < len(magic) and (more := self._source.read(_READ_BYTES)):
                data += more
