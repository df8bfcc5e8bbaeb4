"""Reading an address at which anything may answer: in time, in memory, and well again after it."""

from __future__ import annotations

import re
import socket
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from penstock.core.errors import EngineError, InputError
from penstock.spark.read.http import (
    AbsentError,
    Endpoint,
    LimitError,
    Limits,
    NotSparkError,
    RefusedError,
)
from tests.fakes.hostile_server import GOOD, HOSTILE, HostileServer, hostile_server, redirect

SMALL = Limits(seconds=1.0, bytes=1 << 20, requests=20)
IN_TIME = 15.0  # seconds: far above the limit on the busiest machine, far below never


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with hostile_server() as made:
        yield made


class TestHostile:
    @pytest.mark.parametrize("behaviour", HOSTILE)
    def test_it_ends_with_an_error_that_says_where_and_the_next_answer_is_read(
        self, server: HostileServer, behaviour: str
    ) -> None:
        endpoint = Endpoint(server.url, limits=SMALL)
        server.behaviour = HOSTILE[behaviour]
        begun = time.monotonic()
        with pytest.raises(EngineError) as refused:
            endpoint.get("/api/v1/applications")
        assert time.monotonic() - begun < IN_TIME
        said = str(refused.value)
        assert f"{server.url}/api/v1/applications" in said
        assert len(said) < 600 and said.isprintable()
        server.behaviour = None
        assert endpoint.get("/api/v1/applications") == GOOD

    @pytest.mark.parametrize(
        "behaviour",
        [
            "sends 300 MB",
            "sends without end",
            "chunks without end",
            "a chunk of minus one",
            "a chunk size without end",
            "a gzip bomb",
            "lists inside of each other",
            "many empty lists",
            "many empty objects",
            "one wide character",
            "many keys",
        ],
    )
    def test_the_memory_that_it_takes_is_within_the_limit(
        self, server: HostileServer, behaviour: str
    ) -> None:
        endpoint = Endpoint(server.url, limits=SMALL)
        assert endpoint.get("/") == GOOD  # what is loaded once is loaded
        server.behaviour = HOSTILE[behaviour]
        tracemalloc.start()
        try:
            with pytest.raises(EngineError):
                endpoint.get("/")
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < SMALL.bytes

    def test_a_handshake_that_never_ends(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            begun = time.monotonic()
            with pytest.raises(LimitError, match=r"may take 1 s, .*https://127"):
                Endpoint(f"https://127.0.0.1:{port}", limits=SMALL).get("/")
            assert time.monotonic() - begun < IN_TIME


class TestBudget:
    def test_the_time_is_that_of_all_answers_together(self, server: HostileServer) -> None:
        endpoint = Endpoint(server.url, timeout=0.05, limits=SMALL)
        server.behaviour = HOSTILE["says nothing"]
        with endpoint.budget(seconds=0.3):
            for _ in range(20):
                with pytest.raises(EngineError) as refused:
                    endpoint.get("/slow")
                if isinstance(refused.value, LimitError):
                    break
                assert "timed out" in str(refused.value)
            else:
                pytest.fail("each answer had a time of its own")
        assert re.search(r"may take 0.3 s, .*/slow; the driver or a proxy", str(refused.value))

    def test_so_are_the_bytes(self, server: HostileServer) -> None:
        endpoint = Endpoint(server.url)
        with endpoint.budget(bytes=1000), pytest.raises(LimitError, match="may take 1000 bytes"):
            for _ in range(100):
                endpoint.get("/")
        assert 2 < len(server.asked) < 100
        assert endpoint.get("/") == GOOD

    def test_and_the_requests(self, server: HostileServer) -> None:
        endpoint = Endpoint(server.url)
        with endpoint.budget(requests=4):
            for left in (0.75, 0.5, 0.25, 0.0):
                endpoint.get("/")
                assert endpoint.left == left
            with pytest.raises(LimitError, match=r"may ask for 4 documents.*shorten the period"):
                endpoint.get("/")
        assert len(server.asked) == 4
        assert endpoint.left == 1.0

    def test_one_inside_of_another_changes_nothing(self, server: HostileServer) -> None:
        endpoint = Endpoint(server.url)
        with endpoint.budget(requests=2), endpoint.budget(requests=100):
            endpoint.get("/")
            assert endpoint.left == 0.5

    def test_an_error_ends_it(self, server: HostileServer) -> None:
        endpoint = Endpoint(server.url)
        with pytest.raises(KeyError), endpoint.budget(requests=1):
            raise KeyError("something else")
        assert endpoint.left == 1.0

    @pytest.mark.parametrize("name", ["seconds", "bytes", "requests"])
    def test_nothing_is_no_limit(self, name: str) -> None:
        with pytest.raises(InputError, match=f"{name} 0 .*above 0"):
            Limits(**{name: 0})


class TestKinds:
    def test_nothing_listens(self) -> None:
        with hostile_server() as gone:
            pass
        with pytest.raises(RefusedError, match="nothing listens at"):
            Endpoint(gone.url).get("/")

    def test_no_such_document(self, server: HostileServer) -> None:
        server.behaviour = lambda c: c.send(b"HTTP/1.1 404 Not Found\r\n\r\n")
        with pytest.raises(AbsentError, match=f"404 at {server.url}/sql/7"):
            Endpoint(server.url).get("/sql/7")

    def test_a_web_page_is_not_spark(self, server: HostileServer) -> None:
        server.behaviour = HOSTILE["a web page"]
        with pytest.raises(NotSparkError, match="a web page instead of JSON"):
            Endpoint(server.url).get("/")

    def test_the_clock_is_the_servers_and_stays_ours_where_it_tells_none(
        self, server: HostileServer
    ) -> None:
        endpoint = Endpoint(server.url)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: %s\r\n\r\n[]"
        for date in (b"Mon, 99 Foo 99999999999999999999 99:99:99 GMT", b"", b"0", b"\xff"):
            server.behaviour = lambda c, date=date: c.send(head % date)
            endpoint.get("/")
            assert abs(endpoint.now() - time.time()) < 1
        server.behaviour = lambda c: c.send(head % b"Mon, 16 Nov 2026 02:46:16 GMT")
        endpoint.get("/")
        assert abs(endpoint.now() - 1794797176.5) < 60


class TestHeaders:
    def test_a_token_goes_to_the_server_and_to_no_other_host(self, server: HostileServer) -> None:
        endpoint = Endpoint(server.url, token="secret", headers={"X-Proxy-User": "me"})
        endpoint.get("/")
        (_, sent) = server.asked[-1]
        assert (sent["Authorization"], sent["X-Proxy-User"]) == ("Bearer secret", "me")
        with hostile_server() as other:
            server.behaviour = redirect(other.url + "/elsewhere")
            assert endpoint.get("/") == GOOD
            ((path, sent),) = other.asked
        assert path == "/elsewhere"
        assert "Authorization" not in sent and "X-Proxy-User" not in sent

    def test_a_redirect_on_the_same_host_keeps_it(self, server: HostileServer) -> None:
        moved = redirect("/proxy/app-1/")

        def behave(c: object) -> None:
            server.behaviour = None
            moved(c)  # type: ignore[arg-type]

        server.behaviour = behave
        assert Endpoint(server.url, token="secret").get("/") == GOOD
        assert [sent["Authorization"] for _, sent in server.asked] == ["Bearer secret"] * 2

    def test_a_wrong_token_is_not_repeated(self) -> None:
        with pytest.raises(InputError, match="header Authorization") as refused:
            Endpoint("http://driver:4040", token="secret\nX-Evil: 1")
        assert "secret" not in str(refused.value)


def test_a_proxy_is_asked_but_not_for_networks_of_tests(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url)
    assert Endpoint("http://driver.invalid:4040").get("/api") == GOOD
    assert [path for path, _ in server.asked] == ["http://driver.invalid:4040/api"]
    with pytest.raises(EngineError):
        Endpoint("http://198.18.255.254:1", timeout=0.2, limits=SMALL).get("/api")
    assert len(server.asked) == 1
