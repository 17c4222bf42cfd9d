"""An S3 server in threads of the test: moto's, with faults where a test wants some."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

Fault = Callable[[dict[str, Any]], tuple[int, str] | None]
"""Given a request (WSGI's environment), a status and a code to answer with, or None."""
STATUS = {403: "Forbidden", 500: "Internal Server Error", 503: "Slow Down"}


class ObjectServer:
    """moto's server.

    Attributes:
        url: Where it listens.
        fault: What becomes of requests before they are looked at.
        lost: What becomes of answers after a request was carried out.
        requests: Method, path and range of each since the last :meth:`reset`.
    """

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import (
            DomainDispatcherApplication,
            create_backend_app,
        )
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log(self, type: str, message: str, *args: Any) -> None:
                pass

        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self.reset()
        self._server = make_server(
            "127.0.0.1", 0, self, threaded=True, request_handler=Quiet
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def reset(self) -> None:
        """Forget requests and faults."""
        self.fault: Fault = lambda request: None
        self.lost: Fault = lambda request: None
        self.requests: list[tuple[str, str, str]] = []

    def count(self, method: str, end: str) -> int:
        """Return how often objects whose names end so were asked for."""
        return sum(1 for m, path, _ in self.requests if m == method and path.endswith(end))

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()

    def __call__(self, request: dict[str, Any], answer: Any) -> Iterable[bytes]:
        """Answer a request, as WSGI asks for it."""
        said = request["PATH_INFO"], request.get("HTTP_RANGE", "")
        with self._lock:
            self.requests.append((request["REQUEST_METHOD"], *said))
            found = self.fault(request)
        if found is not None:
            request["wsgi.input"].read(int(request.get("CONTENT_LENGTH") or 0))
            return self._refuse(found, answer)
        if self.lost(request) is not None:
            list(self._app(request, lambda *_: None))
            return self._refuse(self.lost(request) or (500, ""), answer)
        done: Iterable[bytes] = self._app(request, answer)
        return done

    def _refuse(self, found: tuple[int, str], answer: Any) -> Iterable[bytes]:
        status, code = found
        text = (
            f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>"
        )
        answer(f"{status} {STATUS[status]}", [("Content-Type", "application/xml")])
        return [text.encode()]


def every(number: int, status: int, code: str) -> Fault:
    """Return a fault of each so-manyth request."""
    seen = [0]

    def fault(request: dict[str, Any]) -> tuple[int, str] | None:
        seen[0] += 1
        return (status, code) if seen[0] % number == 0 else None

    return fault
