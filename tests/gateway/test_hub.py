"""Models by name: a folder, a hub name that is cached, or one clear line."""

from pathlib import Path

import pytest

from gateway.hub import ModelNotHere, find_model, served_name


def test_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    """A local folder needs no hub."""
    assert find_model(str(tmp_path)) == tmp_path
    assert served_name(f"{tmp_path}/") == tmp_path.name
    assert served_name("owner/name") == "owner/name"


@pytest.mark.parametrize("name", ["/no/such/folder", "./nothing", "plain-name"])
def test_one_clear_line_when_it_is_neither_folder_nor_hub_name(name: str) -> None:
    """A typo is named, not downloaded."""
    with pytest.raises(ModelNotHere, match="no such folder") as caught:
        find_model(name)
    assert "\n" not in str(caught.value)


def test_cached_hub_model_is_found_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was downloaded once serves a machine without a network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--owner--name" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    refs = tmp_path / "models--owner--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("a" * 40)
    assert find_model("owner/name") == snapshot
    with pytest.raises(ModelNotHere, match="hub cannot be reached"):
        find_model("owner/other")
