"""Intents in the settings."""

from pathlib import Path

import pytest

from gateway.intent_settings import policies_of, rules_of
from gateway.settings import SettingsError, load_settings


def load(tmp_path: Path, toml: str) -> list:  # type: ignore[type-arg]
    path = tmp_path / "strata.toml"
    path.write_text(toml, encoding="utf-8")
    return load_settings(path, {}).semantic.intents


def test_intents_are_read_when_they_are_given(tmp_path: Path) -> None:
    """A user's intent and a changed seed one become rules and policies."""
    intents = load(
        tmp_path,
        '[[semantic.intents]]\nname = "returns"\nexamples = ["how do I send it back?"]\n'
        'ttl_s = 60\nthreshold = 0.99\n[[semantic.intents]]\nname = "personal"\nmode = "auto"\n'
        '[[semantic.intents]]\nname = "transactional"\ncacheable = false\n',
    )
    rules, policies = rules_of(intents), policies_of(intents).by_intent
    assert (rules["returns"].ttl_s, rules["returns"].semantic) == (60, True)
    assert (rules["personal"].ttl_s, rules["personal"].semantic) == (300, True)
    assert not rules["transactional"].cacheable
    assert rules["time_sensitive"].ttl_s == 300
    assert (policies["returns"].mode, policies["returns"].threshold) == ("manual", 0.99)
    assert policies["personal"].mode == "auto"


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ('name = "Big Name"', "semantic.intents[0].name"),
        ('name = "a"\nmode = "manual"', "semantic.intents[0].threshold"),
        ('name = "a"\n[[semantic.intents]]\nname = "a"', "semantic.intents[1].name"),
        ('name = "a"\nttl_s = 0', "ttl_s"),
        ('name = "a"\nbudget = 2', "budget"),
        ('name = "a"\nexamples = [""]', "examples"),
        ('name = "a"\nmode = "on"', "auto | manual | off"),
        ('name = "a"\ncolour = 1', "colour"),
        ("ttl_s = 5", "name"),
    ],
)
def test_intent_stops_the_start_when_it_is_wrong(tmp_path: Path, toml: str, named: str) -> None:
    """One line names the key and what is allowed."""
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, f"[[semantic.intents]]\n{toml}\n")
    assert named in str(caught.value)
