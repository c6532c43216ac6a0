"""Nothing on a page is said in one language only, and nothing could run a script of others."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import gateway.dashboard
from gateway.dashboard.language import LANGUAGES, catalogue, language_of
from gateway.dashboard.page import POLICY
from gateway.dashboard.templates import environment
from gateway.dashboard.words import threshold

FOLDER = Path(gateway.dashboard.__file__).parent
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
OTHERS = [language for language in LANGUAGES if language != "en"]
SAID = ("title", "aria-label", "alt", "placeholder", "summary", "data-confirm", "data-done")
JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
BRAND = {"Strata"}
KEYS = re.compile(r'\bt\("([a-z_.]+)"[,)]')


class Texts(HTMLParser):
    """Collects what a template says itself: texts, and attributes that are read aloud."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.attributes: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said += re.findall(r"\w*[^\W\d_]\w*", data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            self.attributes.append(name)
            if name in SAID:
                self.handle_data(value or "")


def read(template: Path) -> Texts:
    texts = Texts()
    texts.feed(JINJA.sub("", template.read_text("utf-8")))
    return texts


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_template_holds_no_bare_text(template: Path) -> None:
    """Every word comes from the catalogues."""
    assert set(read(template).said) <= BRAND | {"UTC"}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_template_has_no_inline_script_style_or_handler(template: Path) -> None:
    """What the content security policy forbids isn't there, and nothing is marked as safe."""
    attributes = set(read(template).attributes)
    assert "style" not in attributes
    assert not {name for name in attributes if name.startswith("on")}
    source = template.read_text("utf-8")
    assert "|safe" not in source.replace(" ", "")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style", source)
    assert not re.search(r"(src|href|action)=\"(https?:)?//", source)


@pytest.mark.parametrize("language", OTHERS)
def test_catalogue_has_the_same_keys_and_places_as_english(language: str) -> None:
    """No message is missing, none is left over, and each says the same values."""
    english, other = catalogue("en"), catalogue(language)
    assert set(english) == set(other)
    places = re.compile(r"\{(\w*)")
    for key, text in english.items():
        assert sorted(places.findall(text)) == sorted(places.findall(other[key])), key


def test_every_key_that_a_template_names_is_in_the_catalogue() -> None:
    """A message cannot be missing where a page is rarely seen."""
    named = {key for path in TEMPLATES for key in KEYS.findall(path.read_text("utf-8"))}
    assert named
    assert named <= set(catalogue("en"))


def test_templates_escape_and_the_policy_allows_nothing_inline() -> None:
    """The two defences against a prompt that is a script."""
    assert environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


@pytest.mark.parametrize(
    ("asked", "kept", "accepted", "expected"),
    [
        ("zh", "en", "en", "zh"),
        (None, "zh", "en", "zh"),
        ("xx", None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, None, "en;q=0.5, zh-TW", "zh"),
        (None, None, "zh;q=0, fr", "en"),
        (None, None, "zh;q=high", "en"),
        (None, None, "", "en"),
    ],
)
def test_language_is_the_first_known_of_query_cookie_and_browser(
    asked: str | None, kept: str | None, accepted: str, expected: str
) -> None:
    """A choice wins over what the browser sends."""
    assert language_of(asked, kept, accepted) == expected


def test_controls_of_direction_are_written_out() -> None:
    """A text cannot turn round what stands behind it, escaped or not (field case O03)."""
    page = environment().from_string("{{ x }}|{{ x|stored }}|{{ n }}")
    shown = page.render(x="a\u202eb<\u2066", n=3, masked=False)
    assert shown == "a⟨U+202E⟩b&lt;⟨U+2066⟩|a⟨U+202E⟩b&lt;⟨U+2066⟩|3"


def test_threshold_reads_as_one_when_it_is_one_only() -> None:
    """1 is met by equal texts alone; what is put in a field goes back as it was."""
    shown = [threshold(value) for value in (None, 0.8, 0.86934, 0.999, 0.9995, 0.9998, 1.0)]
    assert shown == ["–", "0.800", "0.869", "0.999", "0.9995", "0.9998", "1.000"]
