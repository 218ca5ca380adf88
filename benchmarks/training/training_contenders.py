# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The contenders of the training benchmark, which exchange gradients of the same model and data."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from benchmarks.training.training_models import BUCKET_BYTES
from switchfold.hostlib.parameter_server import ParameterClient

untyped: Any = torch  # some of its functions are only partly typed
collectives: Any = dist

LEARNING_RATE: Final = 0.02


class Trainer:
    """One replica of a model, and the exchange of its gradients."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.model = module
        self._initial = [parameter.detach().clone() for parameter in module.parameters()]
        self._optimizer: Any = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)

    def reset(self) -> None:
        """Restore the initial parameters."""
        with torch.no_grad():
            for parameter, initial in zip(self.module.parameters(), self._initial, strict=True):
                parameter.copy_(initial)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on a batch and return its loss."""
        self._optimizer.zero_grad()
        loss = untyped.nn.functional.cross_entropy(self.model(inputs), targets)
        loss.backward()
        self.exchange()
        self._optimizer.step()
        return float(loss.detach())

    def exchange(self) -> None:
        """Exchange what the backward pass has not exchanged: nothing here."""

    def weights(self) -> NDArray[np.float32]:
        """Return all parameters, flat."""
        parts = [untyped.flatten(parameter.detach()) for parameter in self.module.parameters()]
        return untyped.cat(parts).numpy()


class Overlapped(Trainer):
    """Unmodified DistributedDataParallel over a process group."""

    def __init__(self, module: Any, group: Any) -> None:
        super().__init__(module)
        parallel: Any = torch.nn.parallel.DistributedDataParallel
        self.model = parallel(module, process_group=group, bucket_cap_mb=BUCKET_BYTES / 2**20)


class Sequential(Trainer):
    """Sums all gradients as one array after the backward pass."""

    def __init__(self, module: Any, group: Any, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(module)
        self._group = group
        self._dtype = dtype

    def exchange(self) -> None:
        """Replace the gradients by their means over all workers."""
        gradients: list[Any] = [parameter.grad for parameter in self.module.parameters()]
        flat = untyped.cat([untyped.flatten(each) for each in gradients]).to(self._dtype)
        collectives.all_reduce(flat, group=self._group)
        flat /= dist.get_world_size()
        sizes = [each.numel() for each in gradients]
        for gradient, part in zip(gradients, flat.split(sizes), strict=True):
            gradient.copy_(part.view_as(gradient))


class OverParameterServer(Overlapped):
    """DistributedDataParallel whose buckets go to parameter servers as soon as they are ready."""

    def __init__(self, module: Any, group: Any, client: ParameterClient, name: str) -> None:
        super().__init__(module, group)
        self._client = client
        self._name = name
        self._iterations: Counter[str] = Counter()
        self._errors: list[BaseException] = []

        def hook(_, bucket):  # pyright: ignore  # torch reads annotations
            return self._send(bucket)

        self.model.register_comm_hook(None, hook)

    def _send(self, bucket: Any) -> Any:
        buffer = bucket.buffer()
        values = buffer.numpy()
        key = f"{self._name}.{bucket.index()}.{len(values)}"
        pulled = self._client.push_pull(key, values, self._iterations[key], values)
        self._iterations[key] += 1
        future: Any = untyped.futures.Future()

        def finish(done: Any) -> None:
            error = done.exception()
            if error is not None:
                self._errors.append(error)
            buffer.div_(dist.get_world_size())
            future.set_result(buffer)

        pulled.add_done_callback(finish)
        return future

    def exchange(self) -> None:
        """Raise the first error of the servers, if any."""
        if self._errors:
            raise self._errors[0]


class FromMeans(Sequential):
    """The oracle, which computes means in float64."""

    def __init__(self, module: Any, group: Any) -> None:
        super().__init__(module, group, torch.float64)
