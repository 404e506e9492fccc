"""Is the answer right? And when a row stands still: does the server hang, or is it only slow?"""

from __future__ import annotations

from typing import Any

from gpubox.remote import endpoint
from gpubox.remote.bench.plan import Plan
from gpubox.remote.endpoint import NoAnswer
from gpubox.remote.probe import judge_answer

RANDOM_WEIGHTS = "dummy"
SILENCE_S = 10.0


def ask(plan: Plan, model: str, random_weights: bool) -> dict[str, Any]:
    """One chat completion at temperature 0: `text`, and `problem` (None: plausible, or the known answer).

    A model with random weights (`--load-format dummy`) talks nonsense by nature: its answer is only kept.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": plan.question}],
        "temperature": 0,
        "max_tokens": 64,
        "logprobs": True,
    }
    try:
        reply = endpoint.post(f"{plan.url}/v1/chat/completions", body, plan.api_key)
        text = _text(reply)
        return {"text": text, "problem": None if random_weights else judge_answer(reply, plan.answer)}
    except NoAnswer as error:
        return {"text": None, "problem": f"no answer: {error}"}
    except (LookupError, TypeError, AttributeError) as error:
        return {"text": None, "problem": f"not a chat completion: {error!r}"}


def diagnose(plan: Plan) -> str:
    """Why nothing finished: asks for a few streamed tokens and looks whether any arrive. Takes 30 s at most."""
    silence_s = min(SILENCE_S, plan.patience_s)
    body = {"text": "hello", "sampling_params": {"max_new_tokens": 4, "temperature": 0}, "stream": True}
    pieces = endpoint.bytes_within(f"{plan.url}/generate", body, plan.api_key, silence_s)
    if pieces:
        return "the server streams, but too slowly"
    try:
        endpoint.get(f"{plan.url}/health", plan.api_key, silence_s)
    except NoAnswer as error:
        return f"the server hangs: no token came for {silence_s:.0f} s, and /health: {error}"
    return f"the server hangs: no token came for {silence_s:.0f} s, though /health answers"


def _text(reply: Any) -> str:
    message = reply["choices"][0]["message"]
    return str(message.get("content") or message.get("reasoning_content") or "")
