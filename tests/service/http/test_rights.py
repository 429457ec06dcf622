"""Which keys may do what."""

import base64

import pytest

from likewise.errors import InvalidInput, InvalidParameter

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")


from likewise.service import Settings
from likewise.service.run import check_address
from likewise.service.settings import key_of, line_of, new_key, read_keys
from tests.service.http.answers import PAGES, problem

SECRETS = {right: f"a-secret-of-the-right-{right}" for right in ("read", "write", "admin")}


def test_keys_have_rights(begin, tmp_path):
    keys = tuple(key_of(secret, name=right, right=right) for right, secret in SECRETS.items())
    client = begin(keys=keys)
    bearer = {right: {"authorization": f"Bearer {secret}"} for right, secret in SECRETS.items()}
    assert client.put(PAGES, json={}, headers=bearer["admin"]).status_code == 201
    tried = {
        "read": [("POST", f"{PAGES}/check", {"text": "x"}), ("GET", PAGES, None), ("GET", "/metrics", None),
                 ("POST", "/v1/compare", {"a": "x", "b": "y"}), ("GET", "/docs", None), ("GET", "/openapi.json", None)],
        "write": [("POST", f"{PAGES}/add", {"doc_id": "a", "text": "x"}), ("POST", f"{PAGES}/remove", {"doc_id": "a"})],
        "admin": [("PUT", "/v1/collections/more", {}), ("POST", f"{PAGES}/snapshots", None),
                  ("DELETE", "/v1/collections/more", None)],
    }  # fmt: skip
    order = list(SECRETS)
    for needed, requests in tried.items():
        for method, path, body in requests:
            for other in [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {SECRETS['read'][:-1]}"}]:
                problem(client.request(method, path, json=body, headers=other), "unauthorized")
            for right in order:
                answer = client.request(method, path, json=body, headers=bearer[right])
                if order.index(right) < order.index(needed):
                    problem(answer, "forbidden")
            assert answer.status_code < 300 or path.endswith("remove"), (path, answer.text)
    for path in ("/healthz", "/livez", "/readyz"):
        assert client.get(path).status_code == 200
    basic = base64.b64encode(f"anybody:{SECRETS['read']}".encode()).decode()
    assert client.get(PAGES, headers={"authorization": f"Basic {basic}"}).status_code == 200
    for broken in ("Basic !", "Basic", "Digest x", "\xff"):
        problem(client.get(PAGES, headers={"authorization": broken.encode("latin-1")}), "unauthorized")
    assert "www-authenticate" in client.get(PAGES).headers
    assert client.get(PAGES).json()["detail"] == "send a key: Authorization: Bearer KEY"
    assert (
        client.get(PAGES, headers={"authorization": "Bearer x"}).json()["detail"]
        == "the service does not know this key"
    )


def test_a_key_is_looked_at_before_the_body(begin):
    client = begin(keys=(key_of(SECRETS["read"], name="reader", right="read"),))
    pulled = []

    def chunks():
        for i in range(3):
            pulled.append(i)
            yield b"x"

    async def receive():
        raise AssertionError("the body was read")

    sent = []

    async def send(message):
        sent.append(message)

    import asyncio

    for headers, status in [([], 401), ([(b"authorization", b"Bearer " + SECRETS["read"].encode())], 403)]:
        sent.clear()
        scope = {
            "type": "http", "method": "POST", "path": f"{PAGES}/add", "headers": headers, "query_string": b"",
            "client": ("10.0.0.1", 1), "http_version": "1.1", "scheme": "http", "root_path": "", "server": ("x", 80),
        }  # fmt: skip
        asyncio.run(client.app(scope, receive, send))
        assert sent[0]["status"] == status


def test_only_its_own_names_reach_a_service_without_keys(begin):
    client = begin(allowed_hosts=("testserver", "Pages.Example"))
    for host in ("localhost", "localhost:99", "127.0.0.1:1", "[::1]:8", "pages.example"):
        assert client.get("/v1/collections", headers={"host": host}).status_code == 200, host
    for host in (
        *("evil.example", "localhost.evil.example", "", "127.0.0.1.evil", "[::2]", "[::1]evil", "[::1]evil:80"),
        *("[::1]:80evil", "localhost:evil", "localhost:80:evil", "[::1", "::1", "[localhost]evil"),
    ):
        problem(client.get("/v1/collections", headers={"host": host}), "unknown-host", "host")
    for site in ("cross-site", "same-site"):
        answer = client.post(f"{PAGES}/add", json={"doc_id": "a", "text": "x"}, headers={"sec-fetch-site": site})
        problem(answer, "cross-site")


def test_keys_are_kept_as_hashes(tmp_path):
    secret, key = new_key("crawler", "write")
    path = tmp_path / "keys.txt"
    path.write_text("# who may do what\n\n" + line_of(key) + "reader read " + "0" * 64 + " # later\n")
    assert secret not in path.read_text()
    assert [one.name for one in read_keys(path)] == ["crawler", "reader"]
    assert read_keys(path)[0] == key_of(secret, name="crawler", right="write")
    for text in ("a read\n", f"a all {'0' * 64}\n", f"a read {'0' * 63}\n", f"A read {'0' * 64}\n",
                 f"a read {'0' * 64}\na read {'1' * 64}\n"):  # fmt: skip
        path.write_text(text)
        with pytest.raises(InvalidInput):
            read_keys(path)
    for name, right in [("a", "all"), ("a b", "read")]:
        with pytest.raises(InvalidParameter):
            new_key(name, right)
    with pytest.raises(InvalidParameter, match="16 characters"):
        key_of("short")
    for secret in ("a key of several words", "a-key-beyond-ASCII-é", "a-key-and-a-line-end\n"):
        with pytest.raises(InvalidParameter, match="visible ASCII"):
            key_of(secret)


def test_other_addresses_need_a_key():
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        check_address(host, Settings())
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""):
        with pytest.raises(InvalidParameter, match="is reachable from other machines"):
            check_address(host, Settings())
        check_address(host, Settings(keys=(key_of(SECRETS["read"]),)))
