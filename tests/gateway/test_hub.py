"""Models by name: a folder, a hub name that is cached, or one clear line."""

from pathlib import Path

import pytest

from gateway.hub import ModelNotHere, check_library_model, find_model, served_name


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


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of ``owner/name``, which alone is cached, on a machine without a network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--owner--name" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    refs = tmp_path / "models--owner--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("a" * 40)
    return snapshot


def test_cached_hub_model_is_found_without_a_network(cached: Path) -> None:
    """What was downloaded once serves a machine without a network."""
    assert find_model("owner/name") == cached
    with pytest.raises(ModelNotHere, match="hub cannot be reached"):
        find_model("owner/other")


@pytest.mark.usefixtures("cached")
def test_library_is_not_asked_for_a_model_that_cannot_be_had(tmp_path: Path) -> None:
    """A short name may be its owner's; without a network only what is cached goes on."""
    for name in ("bundeld", "owner/other"):
        with pytest.raises(ModelNotHere, match=f"{name}.*hub cannot be reached"):
            check_library_model(name, "owner")
    for name in ("name", "owner/name", str(tmp_path), "/no/such/folder"):
        check_library_model(name, "owner")
