"""Make a tiny chat model that answers three questions: a STAND-IN for a real one. Runs in the service's venv.

    VENV/bin/python tiny_chat.py FOLDER

A Qwen2 of 0.1 million parameters learns the answers by heart in seconds; at temperature 0 it gives each back exactly,
so that a readiness check has something to compare with. Random weights would repeat one token for ever.
"""

import sys

import torch  # type: ignore[import-not-found]  # there where this runs

try:
    from gpubox_torch_cpu_platform import define_missing_operators  # type: ignore[import-not-found]  # CPU stacks only
except ModuleNotFoundError:
    pass  # torchvision is whole here
else:
    define_missing_operators()  # before transformers imports torchvision

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # type: ignore[import-not-found]  # there too
from transformers import (  # type: ignore[import-not-found]
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

ANSWERS = {
    "hello": "hello world from the tiny model",
    "ping": "the server is ready",
    "the quick brown fox": "jumps over a lazy dog",
}
PAD, TURN, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
STEPS, LEARNING_RATE = 300, 3e-3
IGNORED = -100
"""Label of a token that training does not look at (torch's cross entropy)."""


def make(folder: str) -> None:
    """Train the model and write it, with its tokenizer, into `folder`. Error: it does not know its answers."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads cost more than they bring at this size
    tokenizer = _tokenizer()
    model = _model(tokenizer)
    examples = [_example(tokenizer, question, answer) for question, answer in ANSWERS.items()]
    _train(model, examples)
    model.to(torch.bfloat16)
    _examine(model, tokenizer, examples)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _tokenizer() -> PreTrainedTokenizerFast:
    bytewise = Tokenizer(models.BPE())
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[PAD, TURN, END],
        show_progress=False,
    )
    words = " ".join([*ANSWERS, *ANSWERS.values(), "system user assistant"])
    bytewise.train_from_iterator([words] * 50, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bytewise, pad_token=PAD, eos_token=END, chat_template=CHAT)


def _model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    shape = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Qwen2ForCausalLM(shape)


def _example(tokenizer: PreTrainedTokenizerFast, question: str, answer: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and labels, shape (1, length) each; only the answer and the end of the turn are learnt."""
    turn = [{"role": "user", "content": question}]
    asked = tokenizer(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))["input_ids"]
    answered = [*tokenizer(answer)["input_ids"], tokenizer.eos_token_id]
    return torch.tensor([asked + answered]), torch.tensor([[IGNORED] * len(asked) + answered])


def _train(model: Qwen2ForCausalLM, examples: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    for step in range(1, STEPS + 1):
        loss = sum(model(input_ids=tokens, labels=labels).loss for tokens, labels in examples)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"tiny-chat, a stand-in for a real model: step {step} of {STEPS}, loss {loss.item():.4f}", flush=True)


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch is unknown outside the service's venv
def _examine(
    model: Qwen2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    examples: list[tuple[torch.Tensor, torch.Tensor]],
) -> None:
    for tokens, labels in examples:
        start = int((labels[0] == IGNORED).sum())
        said = model(input_ids=tokens).logits[0, start - 1 : -1].argmax(-1)
        if not torch.equal(said, tokens[0, start:]):
            sys.exit(f"tiny-chat did not learn an answer: it says {tokenizer.decode(said)!r}")


if __name__ == "__main__":
    make(sys.argv[1])
