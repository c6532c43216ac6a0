"""Chat templates render as transformers renders them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

from gateway.backends.chat_template import ChatTemplate
from gateway.backends.tokenizer import Tokenizer
from gateway.errors import BackendUnavailable, BadRequest

CHAT = [
    {"role": "system", "content": "Be <brief> & kind."},
    {"role": "user", "content": "你好 'quoted' 🌙"},
    {"role": "assistant", "content": " padded "},
    {"role": "user", "content": "bye"},
]
TEMPLATES = {
    "trimming": "{{ bos_token }}{% for m in messages %}\n  {% if m.role == 'user' %}\n"
    "U: {{ m.content | trim }}\n  {% else %}\nA: {{ m['content'] }}\n  {% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}A:{% endif %}",
    "json": "{% for m in messages %}{{ m | tojson }}{{ m | tojson(indent=2) }}{% endfor %}",
    "loop control": "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}"
    "{{ m.content }}{% endfor %}",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% endfor %}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% endfor %}{{ ns.n }}{% if tools %}no{% endif %}",
    "methods": "{% for m in messages %}{{ m.content.split()[0].upper() }}{{ m.get('x', '-') }}"
    "{% endfor %}{{ strftime_now('%Y') }}",
}


@pytest.mark.parametrize("source", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_prompt_equals_transformers_when_rendered(source: str) -> None:
    """Whitespace, filters, loop controls and training marks come out the same."""
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    (expected,), _ = render_jinja_template(
        [CHAT], chat_template=source, add_generation_prompt=True, **special
    )
    assert ChatTemplate(source, special).render(CHAT) == expected


@pytest.mark.parametrize("content", ["Once upon", " padded", "a\nb", "<|im_end|> x", "bye"])
def test_prompt_equals_transformers_when_the_answer_has_begun(
    bundled_chat_model: Path, content: str
) -> None:
    """The model goes on with a last message of the assistant, whatever stands in it."""
    chat = [*CHAT, {"role": "assistant", "content": content}]
    template = Tokenizer(bundled_chat_model).template
    assert template is not None
    (expected,), _ = render_jinja_template(
        [chat], chat_template=template.source, continue_final_message=True
    )
    assert template.render(chat, continued=True) == expected


@pytest.mark.parametrize("chat", [CHAT, CHAT[1:], CHAT[3:]])
def test_ids_equal_transformers_when_the_model_is_bundled(
    bundled_chat_model: Path, chat: list[dict[str, Any]]
) -> None:
    """The bundled model sees the very ids that transformers would give it."""
    reference = AutoTokenizer.from_pretrained(bundled_chat_model)
    expected = reference.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    assert Tokenizer(bundled_chat_model).encode_chat(chat) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0].content + none }}",
        "{{ messages[9].content.x }}",
        "{{ 1 // 0 }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__ }}",
    ],
)
def test_request_is_refused_when_the_template_fails(source: str) -> None:
    """A template that cannot take the messages is a 400 that names them."""
    with pytest.raises(BadRequest) as caught:
        ChatTemplate(source, {}).render(CHAT)
    assert caught.value.param == "messages"


def test_digest_changes_when_template_or_special_tokens_do() -> None:
    """The digest names what decides a prompt."""
    digests = {
        ChatTemplate(source, special).digest
        for source in ("a", "b")
        for special in ({}, {"bos_token": "<s>"})
    }
    assert len(digests) == 4
    assert ChatTemplate("a", {}).digest in digests


@pytest.fixture
def folder(bundled_chat_model: Path, tmp_path: Path) -> Path:
    """The bundled model's text files, to be changed."""
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        shutil.copy(bundled_chat_model / name, tmp_path / name)
    return tmp_path


def test_begin_token_stands_once_when_the_template_writes_it(folder: Path) -> None:
    """The tokenizer adds no begin token of its own to a rendered prompt."""
    (folder / "chat_template.jinja").write_text("{{ bos_token }}{{ messages[0].content }}")
    path = str(folder / "tokenizer.json")
    adding = tokenizers.Tokenizer.from_file(path)
    begin = "<|im_start|>"
    adding.post_processor = TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, adding.token_to_id(begin))]
    )
    adding.save(path)
    assert adding.encode("hi").tokens[0] == begin
    tokenizer = Tokenizer(folder)
    ids = tokenizer.encode_chat([{"role": "user", "content": "hi"}])
    assert ids[:1] == [tokenizer.token_id(begin)]
    assert ids.count(ids[0]) == 1


def test_default_template_is_used_when_the_config_lists_several(folder: Path) -> None:
    """Older folders name their templates in tokenizer_config.json."""
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = [
        {"name": "rag", "template": "no"},
        {"name": "default", "template": "yes"},
    ]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    template = Tokenizer(folder).template
    assert template is not None
    assert template.render(CHAT) == "yes"


def test_chat_is_refused_when_the_model_has_no_template(folder: Path) -> None:
    """A base model cannot chat."""
    tokenizer = Tokenizer(folder)
    with pytest.raises(BadRequest, match="no chat template"):
        tokenizer.encode_chat(CHAT)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_one_line_names_the_file_when_it_is_broken(folder: Path, name: str) -> None:
    """A broken file stops the start with its name."""
    (folder / name).write_text("{% broken")
    with pytest.raises(BackendUnavailable) as caught:
        Tokenizer(folder)
    assert str(folder) in caught.value.message
    assert "\n" not in caught.value.message


def test_one_line_names_the_folder_when_it_holds_no_tokenizer(tmp_path: Path) -> None:
    """A folder without a tokenizer stops the start with its name."""
    with pytest.raises(BackendUnavailable) as caught:
        Tokenizer(tmp_path)
    assert str(tmp_path) in caught.value.message
    assert "\n" not in caught.value.message
