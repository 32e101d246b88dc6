"""A model of Qwen3's shape and its tokenizer, made on the spot, for trying the recipe on a CPU: nothing is downloaded.

From random weights every episode would end in a format error, every reward would be -1.0 and every gradient 0; so the model
first imitates scripted agents (`warmed`), for as long as it takes to be right some of the time.
"""

import json
import random
from collections.abc import Sequence

import torch
from batched import Row
from pydantic import JsonValue
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl.chat_template_utils import qwen3_chat_template

from awm_factory.llm.protocol import ModelReply, ToolUse
from awm_factory.rollout import Turn
from awm_factory.rollout.agents import Agent, Say, Scene, Step
from awm_runtime.contract import ToolCall


def tokenizer(texts: Sequence[str], size: int = 700) -> PreTrainedTokenizerFast:
    """Byte pairs of the texts, with Qwen3's special tokens and chat template."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet))
    made.add_tokens(["<tool_call>", "</tool_call>", "<think>", "</think>"])
    fast = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<|endoftext|>", eos_token="<|im_end|>")
    fast.chat_template = qwen3_chat_template
    return fast


def model(words: PreTrainedTokenizerFast, seed: int = 0) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def warmed(
    pupil: Qwen3ForCausalLM, rows: Sequence[Row], steps: int, *, batch: int = 4, rate: float = 5e-3, seed: int = 0
) -> float:
    """Let it imitate what agents said, given what they were shown; returns the last loss."""
    chance = random.Random(seed)
    optimizer = torch.optim.AdamW(pupil.parameters(), lr=rate)
    pupil.train()
    value = 0.0
    for _ in range(steps):
        chosen = chance.sample(list(rows), min(batch, len(rows)))
        width = max(len(row.prompt_ids) + len(row.completion_ids) for row in chosen)
        ids = torch.full((len(chosen), width), pupil.config.pad_token_id)
        labels = torch.full((len(chosen), width), -100)
        mask = torch.zeros((len(chosen), width), dtype=torch.long)
        for place, row in enumerate(chosen):
            whole = row.prompt_ids + row.completion_ids
            ids[place, : len(whole)] = torch.tensor(whole)
            labels[place, len(row.prompt_ids) : len(whole)] = torch.tensor(row.completion_ids)
            mask[place, : len(whole)] = 1
        loss = pupil(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(pupil.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
    return value


class AgentPolicy:
    """A scripted agent in the place of a model, in the native form."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    @property
    def name(self) -> str:
        return self.agent.name

    async def act(self, turn: Turn) -> ModelReply:
        _, task, *history = turn.history
        steps = []
        for said, answer in zip(history[::2], history[1::2], strict=True):
            [use] = said.tool_calls
            call = ToolCall(tool=use.name, arguments=json.loads(use.arguments))
            content = _json(answer.content)
            failed = isinstance(content, dict) and isinstance(content.get("error"), dict)
            steps.append(Step(call, content, is_error=failed))
        move = self.agent.move(Scene(task.content, turn.tools, tuple(steps)))
        if isinstance(move, Say):
            return ModelReply(model=self.name, raw=move.answer)
        use = ToolUse(id="call_0", name=move.tool, arguments=json.dumps(move.arguments))
        return ModelReply(model=self.name, tool_calls=(use,))


def _json(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        return text
