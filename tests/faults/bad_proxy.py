"""Runs on the box: an HTTP proxy that cuts packages off in the middle (`cut`) or changes a byte of them (`alter`)."""

import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOW = sys.argv[1]


class Proxy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        with urllib.request.urlopen(self.path) as answer:  # noqa: S310 - apt gives http URLs of the practice machine
            body = bytearray(answer.read())
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path.endswith(".deb"):
            if HOW == "cut":
                body = body[: len(body) // 2]
            else:
                body[-1] ^= 1
        self.wfile.write(body)
        self.close_connection = True


ThreadingHTTPServer(("127.0.0.1", 3999), Proxy).serve_forever()
