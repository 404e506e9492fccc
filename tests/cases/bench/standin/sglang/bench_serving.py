"""Stands in for SGLang's client in the unit tests: same options, same progress bar, same keys in the result."""

import argparse
import json
import statistics
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

NUMBERS = ("port", "random-input-len", "random-output-len", "num-prompts", "max-concurrency", "warmup-requests", "seed")
TEXTS = ("backend", "host", "dataset-name", "random-range-ratio", "model", "tokenizer", "output-file")


def ask(args: argparse.Namespace) -> tuple[float, float, str]:
    body = {"text": "x", "sampling_params": {"max_new_tokens": args.random_output_len}, "stream": True}
    url = f"http://{args.host}:{args.port}/generate"
    began, first = time.perf_counter(), 0.0
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())) as reply:
            for line in reply:
                if line.startswith(b"data:") and not first:
                    first = time.perf_counter() - began
    except OSError as error:
        return 0.0, 0.0, str(error)
    return first, time.perf_counter() - began, "" if first else "cut off"


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in (*NUMBERS, *TEXTS):
        parser.add_argument(f"--{name}", type=int if name in NUMBERS else str)
    for name in ("tokenize-prompt", "flush-cache", "output-details"):
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    if error := ask(args)[2]:
        raise ValueError(f"Warmup failed: {error}")
    began, done = time.perf_counter(), []
    with ThreadPoolExecutor(args.max_concurrency) as pool:
        for answer in pool.map(lambda _: ask(args), range(args.num_prompts)):
            done.append(answer)
            if answer[2]:
                print(
                    "output.error="
                    + repr(f"Traceback (most recent call last):\n  File\nConnectionError: {answer[2]}\n")
                )
            print(f"\r {len(done)}/{args.num_prompts} [00:01<00:01]", end="", file=sys.stderr, flush=True)
    duration = time.perf_counter() - began
    urllib.request.urlopen(f"http://{args.host}:{args.port}/server_info").close()
    good = [answer for answer in done if not answer[2]]
    rate = len(good) / duration
    result = {
        "max_concurrency": args.max_concurrency,
        "random_input_len": args.random_input_len,
        "random_output_len": args.random_output_len,
        "duration": duration,
        "completed": len(good),
        "request_throughput": rate,
        "input_throughput": rate * args.random_input_len,
        "output_throughput": rate * args.random_output_len,
        "median_ttft_ms": statistics.median([answer[0] * 1000 for answer in good] or [0]),
        "errors": [answer[2] for answer in done],
        "server_info": {"api_key": "a secret that must not stay"},
        "itls": [[0.1]] * len(done),
    }
    with open(args.output_file, "a") as out:  # noqa: PTH123 - as the real one does
        out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
