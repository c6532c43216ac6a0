"""What every test may ask for, and what a run says it could not do."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gateway.bundled import BundledModels, default_models_dir, prepare

TEXTS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")  # a busy machine fails no test
ALL_OR_NOTHING = os.environ.get("CI", "").lower() not in ("", "0", "false")

CPU = Path("/proc/cpuinfo")
UNFIT = pytest.StashKey[list[str]]()
CPU_FLAGS = frozenset(CPU.read_text().split() if CPU.is_file() else ())


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The folder of prepared models; filled on first use and kept between runs."""
    return Path(os.environ.get("STRATA_MODELS_DIR") or default_models_dir(os.environ))


@pytest.fixture(scope="session")
def bundled_models(models_dir: Path) -> BundledModels:
    return prepare(models_dir)


@pytest.fixture(scope="session")
def bundled_chat_model(bundled_models: BundledModels) -> Path:
    """SmolLM2-135M-Instruct as a transformers folder."""
    return bundled_models.chat_path


@pytest.fixture(scope="session")
def tiny_chat(bundled_chat_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the bundled model's texts and tiny random weights."""
    import torch  # noqa: PLC0415  few tests need it, and it loads for seconds
    from transformers import AutoModelForCausalLM, LlamaConfig  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("tiny-chat")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = LlamaConfig(vocab_size=49_152, max_position_embeddings=8192, **sizes, **heads)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    for name in (*TEXTS, "chat_template.jinja"):
        if (bundled_chat_model / name).is_file():
            shutil.copy(bundled_chat_model / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def bundled_embedder(bundled_models: BundledModels) -> Path:
    """multilingual-e5-small as a sentence-transformers folder."""
    return bundled_models.embedder_path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out what this CPU has no instructions for: no program could be installed for it."""
    marks = ((item, item.get_closest_marker("cpu_flag")) for item in items)
    unfit = [item for item, mark in marks if mark is not None and mark.args[0] not in CPU_FLAGS]
    config.stash[UNFIT] = [item.nodeid for item in unfit]
    if unfit:
        config.hook.pytest_deselected(items=unfit)
        items[:] = [item for item in items if item not in unfit]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name what was left out; under CI nothing may be, but for want of a processor."""
    unfit = config.stash.get(UNFIT, [])
    if unfit:
        terminalreporter.section(f"not for this processor: {len(unfit)}")
        for nodeid in unfit:
            terminalreporter.line(nodeid)
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section(f"left out: {len(skipped)}", red=ALL_OR_NOTHING)
    for report in skipped:
        terminalreporter.line(f"{report.nodeid}: {_reason(report)}")
    if ALL_OR_NOTHING:
        terminalreporter.line("CI is set, so nothing may be left out", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run under CI that left something out."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if ALL_OR_NOTHING and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    longrepr = report.longrepr
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
