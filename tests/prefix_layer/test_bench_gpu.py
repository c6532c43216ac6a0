"""The script for machines with CUDA goes through its whole flow on a CPU."""

import sys
from pathlib import Path

import pytest
import torch

from tests.bench import bench_gpu


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["bench_gpu", *arguments])
    return bench_gpu.main()


def test_parity_and_table_are_printed_when_run_on_a_cpu(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Quick: two architectures are compared and every row of the table is there."""
    assert run(monkeypatch, str(tiny_llama), "--device", "cpu", "--quick") == 0
    printed = capsys.readouterr().out
    assert printed.count("same") == bench_gpu.QUICK_MAKES
    for row in ("TTFT cold", "TTFT warm", "decode step", "4 with one new prefix", "8 at once"):
        assert row in printed


def test_a_fault_is_named_when_the_engine_disagrees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that computes anything else is named, and the check fails."""
    monkeypatch.setattr(bench_gpu, "TOLERANCE", -1.0)
    assert not bench_gpu.check_parity("cpu", quick=True)
    assert "logits differ" in capsys.readouterr().out


def test_one_line_says_so_when_there_is_no_cuda(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without CUDA nothing runs, and it is no failure."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run(monkeypatch) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no CUDA device here: nothing was measured (--device cpu tries the flow)"
    ]
