"""A client inherited by a child process opens its own connections: sharing a socket would mix answers."""

import http.server
import subprocess
import sys
import threading

import pytest

from tests.waiting import LIMIT_S

pytest.importorskip("httpx2", reason="needs likewise[client]")

PROGRAM = """
import os, sys
import likewise

client = likewise.Client(sys.argv[1], collection="pages")
client.describe()
child = os.fork()
if child == 0:
    client.describe()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.describe()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_forked_process_has_connections_of_its_own():
    ports = []

    class Answers(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        subprocess.run([sys.executable, "-c", PROGRAM, address], check=True, timeout=LIMIT_S)
        server.shutdown()
    parent, child, again = ports
    assert parent == again != child
