"""What counts as private in a text, and what merely looks like it."""

import pytest

from semantic_layer.privacy import private_kind
from semantic_layer.private_texts import PIECE_CHARS, contact_in, pieces, secret_in
from semantic_layer.request import CacheQuery

SECRETS = [
    "here is my key AKIAIOSFODNN7EXAMPLE, why does it fail?",
    "token ghp_" + "a1B2" * 9,
    "sk-ant-api03-" + "a1B2c3" * 8,
    "sk-proj-" + "Ab3d" * 10,
    "-----BEGIN RSA PRIVATE KEY-----",
    "clone https://bob:hunter22@git.example.com/x.git",
    "my password is hunter2!",
    "Password: correct-horse-9",
    "我的密码是abc12345，登录不了",
    "charge 4111 1111 1111 1111 please",
    "card 5500-0000-0000-0004",
    "pay to GB82 WEST 1234 5698 7654 32",
    "IBAN DE89370400440532013000 works?",
    "我的身份证号是11010519491231002X",
    "SSN 536-90-4399",
    "OPENAI_API_KEY=sk-9fX2kLmQ8vTzR4wYbN6cJ1hD3g",
    "My API key is sk-abc123def456ghi789jkl012mno345",
    "the access token: 9f86d081884c7d659a2feaa0c55ad015 no longer works",
    "Authorization: Bearer abcDEF123456ghiJKL789",
    "我的密钥是 Zk93hfLs82nfQp01xx",
    "sort code 20-00-00 account 55779911",
    "My account number is 12345678",
    "Acct no. 0044 1234 5678 is blocked",
    "我的账号是 622202020001",
    "Is passport X48213977 expired?",
    "护照号 E12345678 过期了",
    "my pin is 9173",
    "my card pin: 4482",
    "The security code is 812",
    "验证码是 482913",
    "取款密码123456是不是太简单了？",
    "支付密码设为 135790 可以吗",
    "密碼是qwer1234，幫我改一下",
    "驗證碼 482913 過期了嗎",
]
CONTACTS = [
    "write to bob.smith+x@example.co.uk",
    "call me on +44 20 7946 0958",
    "我的手机号是13812345678",
    "手机 138 1234 5678",
    "my number is (415) 555-2671",
]
HARMLESS = [
    "How do I reset the password on my home router?",
    "The password is incorrect, what now?",
    "Why is my password required to be 12 characters long?",
    "密码忘了怎么办？",
    "密码用sha256加密够安全吗？",
    "密码2024年为什么都要改成十二位？",
    "密碼是什麼意思？",
    "What is 4111111111111112 divided by 3?",
    "Order 20251224 123456 of 1,234,567.89 on 2021-10-11 10:00",
    "What is 3.14159265358979323846?",
    "ISBN 978-3-16-148410-0",
    "the user@host notation",
    "11010519491231002Y",
    "Compare 192.168.100.200 and 10.0.0.1",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "What does pin 13 do on an Arduino?",
    "Is a PIN of 4 digits safe?",
    "my account was opened in 2019",
    "How do I renew a passport in 2024?",
    "Do account managers earn 100000 a year?",
    "How do I rotate an API key in AWS IAM?",
    "What is a bearer token in RFC6750?",
    "the api key authentication-middleware is slow",
    "sk-learn-contrib-packages-for-beginners",
    "Error code is 404, what now?",
    "Which licence covers 3 engines of a 737?",
    "",
]


@pytest.mark.parametrize("text", SECRETS)
def test_secret_is_found_when_its_form_or_checksum_is_right(text: str) -> None:
    """Keys, passwords, cards, accounts and identity numbers, in English and Chinese."""
    assert secret_in(text)


@pytest.mark.parametrize("text", CONTACTS)
def test_contact_is_found_when_it_is_an_address_or_a_number(text: str) -> None:
    """E-mail addresses and phone numbers of three countries and of any with its prefix."""
    assert secret_in(text) is None
    assert contact_in(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_text_is_harmless_when_it_only_looks_private(text: str) -> None:
    """Other numbers, and talk of passwords, are nobody's secret."""
    assert (secret_in(text), contact_in(text)) == (None, None)


def test_nothing_is_cut_in_two_when_a_text_is_long() -> None:
    """A secret at any place of a long text is whole in one of its pieces."""
    secret = "AKIAIOSFODNN7EXAMPLE"
    for at in range(PIECE_CHARS - 210, PIECE_CHARS + 30, 7):
        text = "x " * (at // 2) + secret + " y" * 5000
        assert any(secret in piece for piece in pieces(text))
    assert list(pieces("")) == [""]


def _query(*said: tuple[str, str]) -> CacheQuery:
    messages = [{"role": role, "content": content} for role, content in said]
    return CacheQuery("t", "m", "f", {"messages": messages})


async def test_contacts_count_in_the_asked_text_alone() -> None:
    """A company's own address in the system prompt or the answer makes nothing private."""
    query = _query(("system", "Support: help@example.com, key AB"), ("user", "How do I return it?"))
    answer = "Mail help@example.com or call +44 20 7946 0958."
    assert await private_kind(query, "How do I return it?", answer) is None
    assert await private_kind(query, "I am bob@example.com", answer) == "e-mail address"
    assert await private_kind(query, None, "Use AKIAIOSFODNN7EXAMPLE") == "aws access key"
    leaked = _query(("system", "password: s3cret-s3cret"), ("user", "Hi"))
    assert await private_kind(leaked, "Hi", "Hello") == "password"
