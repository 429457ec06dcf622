"""What a service allows, and how it stores."""

from dataclasses import dataclass, fields
from pathlib import Path

from likewise.errors import InvalidParameter
from likewise.index.opening import sync_seconds
from likewise.service.keys import Key


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits and rights of a service; every default is safe on a machine that others can reach.

    Parameters
    ----------
    keys : tuple of Key
        Who may ask; none: everybody who reaches the address, which must then be the machine's own.
    inputs : Path, optional
        Where the inputs of a finished run lie, if they were moved since.
    allowed_hosts : tuple of str
        Names by which clients call the service, besides its own address; where there are no keys, requests to other
        names are refused, so that a web page cannot reach the service through a name of its own.
    is_read_only : bool
        Whether the collections are opened beside another process that writes, and nothing can be changed.
    durability : str
        Of every collection: ``commit``, or ``interval:200ms``.
    threads : int, optional
        Threads of one batch; all processors if None.
    max_body_bytes : int
        Bytes of a request body as it comes.
    max_decoded_bytes : int
        Bytes of a compressed body once it is unpacked.
    max_body_memory_bytes : int
        Bytes of all bodies in memory at one time.
    max_document_characters, max_id_characters : int
        Characters of one text and of one id.
    max_batch : int
        Documents of one request.
    max_stream_bytes : int
        Bytes of one stream of lines.
    max_streams : int
        Streams of lines that are open at one time.
    max_within : int
        Radius of a collection that is made over HTTP.
    max_candidates : int
        Documents that one query may be compared with, by the bands of a collection that is made over HTTP.
    max_results : int
        Neighbors, members of a group or entries of a list in one answer.
    max_compare_characters : int
        Characters of each of two texts that are compared.
    max_collections : int
        Collections of the service.
    max_concurrency : int
        Requests at work at one time; others hear 503.
    max_key_share : float
        Part of the streams, of the requests at work and of the memory for bodies that one key may hold where there are
        several keys.
    max_connections : int
        Open connections; the one that has been idle for longest makes room.
    max_requests_per_second : float, optional
        For each key, or for each address where there are no keys; bursts of twice as many. None: no such limit.
    deadline_s : float
        Seconds for the work on a request.
    receive_s : float
        Seconds for the head of a request, and for its body beside what `min_bytes_per_second` allows.
    min_bytes_per_second : int
        Bytes per second that a body may take less than, after `receive_s`.
    send_s : float
        Seconds that a client may leave an answer untouched.
    idle_s : float
        Seconds that a connection may wait for its next request.
    drain_s : float
        Seconds that requests at work may take to end when the service is asked to end.
    has_request_log : bool
        Whether each request is a line of the log.
    """

    keys: tuple[Key, ...] = ()
    inputs: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    is_read_only: bool = False
    durability: str = "commit"
    threads: int | None = None
    max_body_bytes: int = 8 << 20
    max_decoded_bytes: int = 32 << 20
    max_body_memory_bytes: int = 256 << 20
    max_document_characters: int = 1 << 20
    max_id_characters: int = 512
    max_batch: int = 1000
    max_stream_bytes: int = 256 << 20
    max_streams: int = 32
    max_within: int = 10
    max_candidates: int = 50_000
    max_results: int = 1000
    max_compare_characters: int = 100_000
    max_collections: int = 256
    max_concurrency: int = 64
    max_key_share: float = 0.5
    max_connections: int = 4000
    max_requests_per_second: float | None = None
    deadline_s: float = 10.0
    receive_s: float = 10.0
    min_bytes_per_second: int = 100_000
    send_s: float = 10.0
    idle_s: float = 5.0
    drain_s: float = 20.0
    has_request_log: bool = True

    def __post_init__(self) -> None:
        sync_seconds(self.durability)
        if self.max_key_share > 1:
            raise InvalidParameter("max_key_share", f"{self.max_key_share!r} given; it must be at most 1")
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and not 0 < value < 2**53:
                raise InvalidParameter(field.name, f"{value!r} given; it must be a number above 0 and below 2^53")
