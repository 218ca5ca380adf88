# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Predicted iterations, models from files, and `switchfold scheme`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from switchfold.controller.__main__ import run
from switchfold.hostlib.errors import SchemeError
from switchfold.hostlib.schemes import Cluster, Scheme
from switchfold.hostlib.schemes.known_models import MODELS
from switchfold.hostlib.schemes.model_file import find_model
from switchfold.hostlib.schemes.models import VGG19, Model, ModelLayer
from switchfold.hostlib.schemes.prediction import (
    Computing,
    LayerTimes,
    Prediction,
    Strategy,
    predict,
    ring_time,
)
from switchfold.hostlib.schemes.tcp import RING_USE, SHARED_USE
from switchfold.hostlib.schemes.wire_cost import ExchangeTime, seconds


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no calibration of this user be found."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SWITCHFOLD_CALIBRATION", raising=False)


TOY = """
name = "toy"
[[layers]]
name = "conv"
kind = "conv"
num_values = 100_000
multiplications = 9_000_000
[[layers]]
name = "fc"
kind = "fc"
rows = 1000
columns = 1000
multiplications = 1_000_000
"""


def times(name: str, backward_s: float, transfer_s: float, latency_s: float = 0.0) -> LayerTimes:
    return LayerTimes(name, 0.0, backward_s, ExchangeTime(transfer_s, latency_s), "ps")


def of(*layers: LayerTimes, workers: int = 4) -> Prediction:
    return Prediction(
        strategy=Strategy.PS, num_workers=workers, link_bits_per_s=1e9, batch=8, layers=layers
    )


def test_toy_net_overlaps() -> None:
    found = of(times("conv", 0.09, 0.01), times("fc", 0.01, 0.09))
    assert found.sequential_s == pytest.approx(0.2)
    assert found.overlapped_s == pytest.approx(0.11)
    assert found.throughput() == pytest.approx(4 * 8 / 0.11)
    assert found.efficiency(has_overlap=False) == pytest.approx(0.5)


def test_link_serves_layers_in_order_and_latency_is_shared() -> None:
    # fc occupies the link from 10 to 100 ms; conv's gradient is there at 30 ms and waits.
    found = of(times("conv", 0.02, 0.05, 0.003), times("fc", 0.01, 0.09, 0.003))
    assert found.overlapped_s == pytest.approx(0.01 + 0.09 + 0.05 + 0.003)
    assert found.exchange_s == pytest.approx(0.143)
    alone = of(times("conv", 0.02, 0.05), times("fc", 0.01, 0.09), workers=1)
    assert alone.overlapped_s == alone.sequential_s == pytest.approx(0.03)


def test_sizes_and_operations_of_known_models() -> None:
    millions = {name: model.num_values / 1e6 for name, model in MODELS.items()}
    assert millions["vgg19"] == pytest.approx(143.667, abs=1e-3)
    assert millions["alexnet"] == pytest.approx(60.965, abs=1e-3)
    assert millions["resnet-152"] == pytest.approx(60.193, abs=1e-3)
    assert MODELS["vgg19"].num_values == 143_667_240
    assert MODELS["resnet-50"].num_values == 25_557_032
    assert MODELS["bert-base"].num_values == 109_482_240
    assert MODELS["gpt-2"].num_values == 124_439_808
    assert millions["vgg19-22k"] == pytest.approx(229.05, abs=1e-2)
    assert MODELS["inception-v3"].num_values == 27_161_264
    auxiliary = [each for each in MODELS["inception-v3"].layers if "auxiliary" in each.name]
    assert sum(layer.num_values for layer in auxiliary) == 27_161_264 - 23_834_568
    operations = {
        name: sum(layer.multiplications for layer in model.layers) / 1e9
        for name, model in MODELS.items()
    }
    assert operations["vgg19"] == pytest.approx(19.6, abs=0.1)
    assert operations["alexnet"] == pytest.approx(0.72, abs=0.01)
    assert operations["resnet-152"] == pytest.approx(11.5, abs=0.1)
    assert operations["resnet-50"] == pytest.approx(4.09, abs=0.01)
    # 2 operations per parameter of the blocks and token, and those of the attention.
    assert operations["bert-base"] == pytest.approx(48.3, abs=0.1)
    assert operations["gpt-2"] == pytest.approx(145.8, abs=0.1)
    assert operations["inception-v3"] == pytest.approx(5.72, abs=0.02)


def test_ring_against_the_switch_nears_the_limit_of_two() -> None:
    model = Model(
        name="one", source="", layers=(ModelLayer(name="w", kind="other", num_values=10**7),)
    )
    for workers, limit in ((4, 1.5), (8, 1.75), (32, 1.9375)):
        cluster = Cluster(num_workers=workers, link_bits_per_s=1e9)
        ring = ring_time(model.layers[0].num_bytes, cluster).seconds
        assert ring / seconds(Scheme.INA, model.layers[0], cluster) == pytest.approx(
            limit, rel=0.02
        )
        slow = cluster.replace(link_bits_per_s=1e8)
        slower = ring_time(model.layers[0].num_bytes, slow).transfer_s
        assert slower > 10 * ring_time(model.layers[0].num_bytes, cluster).transfer_s / RING_USE


def test_strategies_order_where_the_network_decides() -> None:
    cluster = Cluster(num_workers=8, batch=32, link_bits_per_s=1e9)
    computing = Computing(iteration_s=0.9)
    found = {each: predict(VGG19, cluster, each, computing) for each in Strategy}
    took = {each: prediction.overlapped_s for each, prediction in found.items()}
    assert took[Strategy.BEST] < took[Strategy.TWO_WAY] < took[Strategy.INA] < took[Strategy.PS]
    # As many bytes; but streams to and from all workers share the links.
    # The ring has fewer acknowledgements there.
    assert 1.05 < took[Strategy.PS] / took[Strategy.RING] < 1.02 / SHARED_USE
    for prediction in found.values():
        assert 0.9 <= prediction.overlapped_s <= prediction.sequential_s
        assert prediction.compute_s == pytest.approx(0.9)
    assert found[Strategy.BEST].schemes["fc6"] == "sfb"
    assert found[Strategy.BEST].schemes["conv5_4"] == "ina"
    fast = predict(
        VGG19, cluster.replace(link_bits_per_s=1e12), Strategy.INA, Computing(flops_per_s=4e12)
    )
    assert fast.efficiency() == pytest.approx(1, abs=0.01)
    assert fast.compute_s == pytest.approx(6 * 19.632e9 * 32 / 4e12, rel=1e-4)
    with pytest.raises(SchemeError, match="no switch with free slots"):
        predict(VGG19, cluster.replace(slots=0), Strategy.INA, computing)


def test_buckets_keep_bytes_and_wait_for_their_last_gradient() -> None:
    cluster, computing = Cluster(num_workers=4, batch=32), Computing(iteration_s=0.9)
    whole = predict(VGG19, cluster, Strategy.INA, computing)
    buckets = predict(VGG19, cluster, Strategy.INA, computing, bucket_bytes=25_000_000)
    assert len(buckets.layers) < len(whole.layers)
    assert buckets.exchange_s == pytest.approx(whole.exchange_s, rel=0.01)
    assert buckets.compute_s == pytest.approx(whole.compute_s)
    assert buckets.layers[-1].name == "fc7 to fc8.bias"
    factors = predict(VGG19, cluster, Strategy.BEST, computing, bucket_bytes=25_000_000)
    assert {"fc6", "fc7", "fc8"} <= set(factors.schemes)


def test_models_come_from_files(tmp_path: Path) -> None:
    path = tmp_path / "toy.toml"
    path.write_text(TOY)
    model = find_model(str(path))
    assert [layer.name for layer in model.layers] == ["conv", "fc"]
    as_json = tmp_path / "toy.json"
    as_json.write_text(
        json.dumps({"name": "toy", "layers": [layer.as_dict() for layer in model.layers]})
    )
    assert find_model(str(as_json)).layers == model.layers
    measured = Model(
        name="m",
        source="",
        layers=(ModelLayer(name="w", kind="other", num_values=9, forward_s=1, backward_s=2),),
    )
    assert Computing().times(measured, 32) == [(1, 2)]
    with pytest.raises(SchemeError, match="of its own"):
        Computing(iteration_s=1).times(measured, 32)
    with pytest.raises(SchemeError, match="is unknown: give flops_per_s"):
        Computing().times(model, 32)
    with pytest.raises(SchemeError, match="not both"):
        Computing(iteration_s=1, flops_per_s=1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.toml", None, "cannot read the model"),
        ("a.toml", "layers = ", "cannot read the model"),
        ("a.json", "[1]", "has a name and layers"),
        ("a.json", '{"layers": []}', "lists no layers"),
        ("a.json", '{"layers": [{"name": "x", "kind": "fc", "rows": 2}]}', "a.json: layer x has"),
        ("a.toml", TOY.replace('name = "fc"', 'name = "conv"'), "two layers are called conv"),
        ("vgg18", None, "no model .*vgg19, vgg19-22k, or a file"),
    ],
)
def test_bad_models_are_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(SchemeError, match=message):
        find_model(str(path) if "." in name else name)


def test_command_shows_the_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "toy.toml"
    path.write_text(TOY)
    arguments = ["scheme", "best", "--model", str(path), "--workers", "8", "--rate", "100M"]
    assert run([*arguments, "--batch", "16"]) == 0
    assert "sfb" in capsys.readouterr().out
    assert run([*arguments, "--slots", "0", "--json"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert [layer["best"] for layer in layers] == ["ps", "sfb"]
    assert "ina" not in layers[0]["seconds"]
    assert layers[1]["floats"]["ps"] == 2 * 10**6 * 14 / 8


def test_command_tells_whether_aggregation_helps(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["scheme", "predict", "--model", "vgg19", "--iteration-ms", "900"]
    keeps_up = ["--worker-us", "0", "--switch-us", "0", "--tcp-ns", "0"]
    assert run([*arguments, *keeps_up, "--rate", "1G,1T", "--workers", "1,8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    verdicts = [line for line in lines if "aggregation" in line]
    assert "8 workers: aggregation helps: 1.69" in verdicts[0]
    assert "8 workers: aggregation brings little: 1.0" in verdicts[1]
    assert run([*arguments, "--servers", "1", "--workers", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    by_strategy = {each["strategy"]: each["overlapped_s"] for each in found}
    assert set(by_strategy) == {each.value for each in Strategy}
    assert by_strategy["ps"] > 2 * by_strategy["ring"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["predict", "--model", "vgg19"], 1, "the computing time of model vgg19 is unknown"),
        (["predict", "--model", "vgg18"], 1, "no model 'vgg18'"),
        (["predict", "--model", "vgg19", "--rate", "1X"], 2, "not a number such as 40M"),
        (["predict", "--model", "vgg19", "--workers", "0"], 2, "not a list of worker counts"),
        (["best"], 2, "Missing option '--model'"),
    ],
)
def test_command_refuses(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["scheme", *arguments]) == code
    assert message in capsys.readouterr().err
