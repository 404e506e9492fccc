"""A small server that speaks SGLang's HTTP as far as a bench needs, and misbehaves on demand: PORT MODE [API_KEY]."""

import itertools
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from typing_extensions import override

PORT, MODE = int(sys.argv[1]), sys.argv[2]
KEY = sys.argv[3] if len(sys.argv) > 3 else None
COUNT = itertools.count(1)
INFO = {"tokenizer_path": "/nowhere", "version": "0.5.23", "api_key": KEY, "max_running_requests": None}
INFO["launch_command"] = f"--model-path /nowhere --api-key {KEY}"
STATES = {"internal_states": [{"effective_max_running_requests_per_dp": 4}]}
ANSWERS = {"nonsense": "!!!!!!!!", "empty": ""}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    @override
    def log_message(self, *args: object) -> None:
        del args

    def do_GET(self) -> None:
        if MODE == "not-sglang" and "server_info" in self.path:
            return self.reply({"error": "no such path"}, 404)
        known = {"/health": {}, "/v1/models": {"data": [{"id": "tiny"}]}, "/server_info": {**INFO, **STATES}}
        return self.reply(known.get(self.path, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/chat/completions":
            text = ANSWERS.get(MODE, "the sea is wide")
            tokens = [{"token": word, "logprob": -0.1} for word in (text if MODE == "nonsense" else text.split())]
            return self.reply({"choices": [{"message": {"content": text}, "logprobs": {"content": tokens}}]})
        number = next(COUNT)
        if MODE == "errors" or (MODE == "some-errors" and number > 3 and number % 3 == 0):
            return self.reply({"error": "out of memory"}, 500)
        if MODE == "dies" and number > 13:
            print("Scheduler hit an exception: api_key='topsecret'", flush=True)
            os._exit(9)
        if MODE == "hangs" and number > 11:
            time.sleep(60)
        return self.stream(body["sampling_params"]["max_new_tokens"], 0.4 if MODE == "slow" and number > 7 else 0.0)

    def stream(self, tokens: int, pause_s: float) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(tokens):
            time.sleep(pause_s)
            self.wfile.write(b"data: {}\n")
            self.wfile.flush()

    def reply(self, value: object, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
