# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A small transformer that learns to write Python's own manual, data-parallel, by stock PyTorch.

    torchrun --nproc-per-node 4 examples/pytorch/text_transformer.py

`text_transformer.diff` is the only difference from the Gloo version. The text has half a million
characters; `help()` shows it, and every Python ships it in `pydoc_data`.
"""

import argparse
import hashlib
from pydoc_data.topics import topics

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

CONTEXT = 64
WIDTH = 96


class Transformer(nn.Module):
    """Predicts the next character from the CONTEXT characters before it."""

    def __init__(self, num_characters: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(num_characters, WIDTH)
        self.places = nn.Parameter(torch.randn(CONTEXT, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(
            WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(WIDTH, num_characters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, text: Tensor) -> Tensor:
        hidden = self.characters(text) + self.places
        return self.head(self.blocks(hidden, mask=self.mask, is_causal=True))


def load_text() -> tuple[Tensor, int]:
    """Return the text as character numbers (int64), and how many distinct characters it has."""
    text = "\n".join(topics[name] for name in sorted(topics))
    numbers = {character: number for number, character in enumerate(sorted(set(text)))}
    return torch.tensor([numbers[character] for character in text]), len(numbers)


def mean_of_all(value: Tensor) -> float:
    dist.all_reduce(value)
    return (value / dist.get_world_size()).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=8, help="passages per worker and step")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    dist.init_process_group("switchfold")
    text, num_characters = load_text()
    model = DistributedDataParallel(Transformer(num_characters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()
    passages = torch.Generator().manual_seed(100 + dist.get_rank())

    total = torch.zeros(())
    for step in range(1, options.steps + 1):
        starts = torch.randint(len(text) - CONTEXT - 1, (options.batch, 1), generator=passages)
        places = starts + torch.arange(CONTEXT)
        optimizer.zero_grad()
        scores = model(text[places])
        loss = loss_of(scores.flatten(0, 1), text[places + 1].flatten())
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % 25 == 0 or step == options.steps:
            loss_of_steps = mean_of_all(total / (step % 25 or 25))
            total.zero_()
            if dist.get_rank() == 0:
                print(f"step {step}: loss {loss_of_steps:.6f}", flush=True)

    weights = b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())
    digest = hashlib.sha256(weights).hexdigest()
    print(f"rank {dist.get_rank()}: weights {digest}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
