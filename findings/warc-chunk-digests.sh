#!/usr/bin/env bash
# Claim: The payload digest that warcio writes covers the lengths of HTTP chunks, so one page that a server sends in other chunks has another digest.
# Package: warcio 1.8.1 and FastWARC 2.0.1 (PyPI)
# Expected: The digest covers the body without transfer encoding, as WARC 1.1 defines the payload and as readers return the page, so equal pages have equal digests.
# Happens: The body is hashed as it was sent, with the length before each chunk. warcio and FastWARC return the page without these lengths, and both confirm the digest.
# Seen: one page sent whole, in chunks of 100 and of 64 bytes: three digests, one text (2026-11-29)
# Matters: Pages are dropped by this digest, in revisit records and in indexes of archives. Copies remain, because servers cut chunks by time and buffer. Hash the decoded body.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile warcio==1.8.1 fastwarc==2.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import io

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

PAGE = b"The river rose by two metres in the night and fell before noon. " * 5


def chunks(size):
    parts = [PAGE[at : at + size] for at in range(0, len(PAGE), size)] + [b""]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


archive = io.BytesIO()
writer = WARCWriter(archive, gzip=False)
chunked = [("Transfer-Encoding", "chunked")]
for name, fields, body in (("whole", [], PAGE), ("by 100", chunked, chunks(100)), ("by 64", chunked, chunks(64))):
    head = StatusAndHeaders("200 OK", [("Content-Type", "text/plain"), *fields], protocol="HTTP/1.1")
    address = "http://example.org/" + name.replace(" ", "-")
    writer.write_record(writer.create_warc_record(address, "response", payload=io.BytesIO(body), http_headers=head))
digests = []
for record in ArchiveIterator(io.BytesIO(archive.getvalue()), check_digests=True):
    same = record.content_stream().read() == PAGE
    digests.append(record.rec_headers.get_header("WARC-Payload-Digest"))
    print("warcio: page", same, "digest confirmed", record.digest_checker.passed, digests[-1])
for record in FastIterator(io.BytesIO(archive.getvalue()), auto_decode="none"):
    print("FastWARC: digest confirmed", record.verify_payload_digest())
for record in FastIterator(io.BytesIO(archive.getvalue()), auto_decode="all"):
    print("FastWARC: page", record.reader.read() == PAGE)
print("digests:", len(set(digests)))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
warcio: page True digest confirmed True sha1:WSKPLYPGB3BIMZNRHUMO4PGKF7H65TVI
warcio: page True digest confirmed True sha1:LR7CHDO757JIXWD5AX7VCABXYLQGD6CX
warcio: page True digest confirmed True sha1:FCISJTLQ4JOTNCK3JNVOFVESXD5XL427
FastWARC: digest confirmed True
FastWARC: digest confirmed True
FastWARC: digest confirmed True
FastWARC: page True
FastWARC: page True
FastWARC: page True
digests: 3
SEEN
