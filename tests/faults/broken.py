"""STAND-INS for servers that do not serve: `sitecustomize` takes the place of SGLang when it is launched, only then.

Put on the box as sitecustomize.py; the profile's environment has its folder in PYTHONPATH and says in BROKEN how.
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Well by its /health, no good at anything else."""

    def do_GET(self) -> None:
        self._reply({"data": []})

    def do_POST(self) -> None:
        if os.environ["BROKEN"] == "dies":
            os._exit(1)
        self._reply({"choices": [{"message": {"content": ""}}]})

    def _reply(self, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if "sglang.launch_server" in sys.orig_argv and "BROKEN" in os.environ:
    if os.environ["BROKEN"] == "never":
        time.sleep(3600)
    port = int(sys.orig_argv[sys.orig_argv.index("--port") + 1])
    ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()  # noqa: S104 - as the server that it stands in for
