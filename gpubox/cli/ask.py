"""`gpubox ask`: one question to the model server of a box."""

from pathlib import Path

import click
import httpx

from gpubox import inventory
from gpubox.cli._complete import hosts
from gpubox.support.errors import GpuboxError

DEFAULT_PROMPT = "hello"


@click.command()
@click.argument("host", shell_complete=hosts)
@click.argument("prompt", required=False)
@click.option(
    "--inventory", "path", type=click.Path(path_type=Path), help="Default: inventory/lxc.py, or the only one."
)
@click.option("--max-tokens", default=128, show_default=True, help="Length of the answer at most, in tokens.")
def command(host: str, prompt: str | None, path: Path | None, max_tokens: int) -> None:
    """Ask the model server of HOST and print its endpoint and answer.

    Without PROMPT: the question that the profile knows an answer to.
    """
    box = inventory.load(path).box(host)
    known = box.profile.known_answer
    endpoint = f"http://{box.address}:{box.profile.port}/v1"
    body = {
        "model": str(box.profile.flags.get("served-model-name", box.profile.model_path)),
        "messages": [{"role": "user", "content": prompt or (known.prompt if known else DEFAULT_PROMPT)}],
        "temperature": 0,
        "max_tokens": max_tokens,
    }
    try:
        client = httpx.Client(headers=box.authorization(), timeout=300, trust_env=False)
        message = (
            client.post(f"{endpoint}/chat/completions", json=body).raise_for_status().json()["choices"][0]["message"]
        )
    except (httpx.HTTPError, ValueError, LookupError) as error:
        raise GpuboxError(f"{endpoint}: {error!r}", "an answer", f"`journalctl -u sglang` on {host}") from error
    click.echo(f"endpoint  {endpoint}")
    click.echo(f"question  {body['messages'][0]['content']}")  # type: ignore[index]  # a dict of our own, just above
    click.echo(f"answer    {message.get('content') or message.get('reasoning_content')}")
