"""Secrets and personal data in texts, by the libraries of their fields. Pure; knows no cache.

Keys and tokens are told by detect-secrets, numbers by their checksums (python-stdnum), phone
numbers by their numbering plans (phonenumbers). Source: measured, 0.1 ms for 300 characters.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

import phonenumbers
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector
from stdnum import iban, luhn
from stdnum.cn import ric
from stdnum.us import ssn

PIECE_CHARS = 4_000  # some detectors take quadratic time
OVERLAP_CHARS = 400

_DETECTORS: tuple[type[RegexBasedDetector], ...] = (
    *(AWSKeyDetector, BasicAuthDetector, DiscordBotTokenDetector, GitHubTokenDetector),
    *(GitLabTokenDetector, JwtTokenDetector, MailchimpDetector, NpmDetector, OpenAIDetector),
    *(PrivateKeyDetector, PypiTokenDetector, SendGridDetector, SlackDetector, StripeDetector),
    *(TelegramBotTokenDetector, TwilioKeyDetector),
)
_MORE_KEYS = re.compile(  # shapes published by their issuers after detect-secrets' last release
    r"\bsk-(?:ant|proj|svcacct|or)-[A-Za-z0-9_-]{24,}|\bAIza[A-Za-z0-9_-]{35}\b"
    r"|\bgithub_pat_[A-Za-z0-9_]{30,}|\bhf_[A-Za-z0-9]{30,}|\bsk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,}"
)
_IS = r"\s*(?:is\b|was\b|[:=：#]|是|为)?\s*"
_SURELY_IS = r"\s*(?:is\b|was\b|[:=：]|是|为)\s*"
_NO = r"(?: (?:code|number|no\.?|#))?"
_NAMED_KEY = re.compile(  # a key of any issuer, told by what it is called
    r"(?:\b(?:api|access|auth|secret|private|bearer|client)[ _-]?(?:key|token|secret)|\bbearer"
    rf"|密钥|令牌){_IS}[\"'“‘]?"
    r"(?=[A-Za-z_./+-]*\d)(?=[\d_./+-]*[A-Za-z])[A-Za-z0-9_./+-]{16,}",
    re.IGNORECASE,
)
_NUMBERS = {  # without a checksum, told by what they are called
    "account number": re.compile(
        rf"\b(?:account|acct|sort code|routing|iban){_NO}{_IS}(?=(?:[ -]?\d){{6}})\d[\d -]{{4,}}\d"
        rf"|(?:账号|帐号|卡号|账户){_IS}(?:[ -]?\d){{6,}}",
        re.IGNORECASE,
    ),
    "passport or licence number": re.compile(
        rf"\b(?:passport|licen[cs]e){_NO}{_IS}(?=[A-Z]*\d{{5}})[A-Z]{{0,3}}\d{{5,12}}\b"
        rf"|护照(?:号码?)?{_IS}[A-Z]{{0,2}}\d{{7,9}}",
        re.IGNORECASE,
    ),
    "pin": re.compile(
        rf"\bmy (?:\w+ )?pin{_NO}{_SURELY_IS}\d{{4,8}}\b"
        rf"|\b(?:pin|cvv|cvc|security) (?:code|number){_SURELY_IS}\d{{3,8}}\b"
        rf"|\b(?:pin|cvv|cvc)\s*[:=]\s*\d{{3,8}}\b|(?:验证码|安全码){_SURELY_IS}\d{{3,8}}",
        re.IGNORECASE,
    ),
}
_PASSWORD = re.compile(
    r"(?:\b(?:password|passwd|passcode|passphrase|pwd)|密[码碼]|口令)\s*"
    r"(?:is\b|was\b|[:=：]|是|[设設改]?[为為]|[设設改]成)+\s*[\"'“‘]?(?=\S*[\d!@#$%^&*_-])(\S{5,})"
    r"|(?:密[码碼]|口令|[验驗][证證][码碼])\s*[A-Za-z]*\d{4,}(?!年)",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\d.-])(?:4|5[1-5]|2[2-7]|3[47]|6[0245])\d(?:[ -]?\d){10,16}(?![\d-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_CHINESE_ID = re.compile(r"(?<!\d)[1-9]\d{16}[\dXx](?!\d)")
_SSN = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])")
_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}\b")
_PHONES = (
    (None, re.compile(r"\+\d[\d ().-]{6,18}\d")),
    ("CN", re.compile(r"(?<!\d)1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)")),
    ("US", re.compile(r"(?<!\d)\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?!\d)")),
    ("GB", re.compile(r"(?<!\d)0\d{2,4} ?\d{3,4} ?\d{3,4}(?!\d)")),
)


def secret_in(text: str) -> str | None:
    """Name the first secret, card, account or identity number of a text: what nobody publishes."""
    for detector in _detectors():
        if any(detector.analyze_string(text)):
            return str(detector.secret_type).lower()
    if _MORE_KEYS.search(text) or _NAMED_KEY.search(text):
        return "api key"
    if _PASSWORD.search(text):
        return "password"
    checks: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
        ("card number", _CARD, lambda found: bool(luhn.is_valid(re.sub("[ -]", "", found)))),
        ("iban", _IBAN, iban.is_valid),
        ("identity number", _CHINESE_ID, ric.is_valid),
        ("social security number", _SSN, ssn.is_valid),
    )
    for name, pattern, is_valid in checks:
        if any(is_valid(found.group()) for found in pattern.finditer(text)):
            return name
    return next((name for name, pattern in _NUMBERS.items() if pattern.search(text)), None)


def contact_in(text: str) -> str | None:
    """Name the first e-mail address or phone number of a text."""
    if "@" in text and _EMAIL.search(text):
        return "e-mail address"
    for region, pattern in _PHONES:
        if any(_is_phone(found.group(), region) for found in pattern.finditer(text)):
            return "phone number"
    return None


def pieces(text: str) -> Iterator[str]:
    """Give a long text in pieces that overlap, so that nothing is cut in two."""
    for start in range(0, max(1, len(text) - OVERLAP_CHARS), PIECE_CHARS - OVERLAP_CHARS):
        yield text[start : start + PIECE_CHARS]


def _is_phone(text: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text, region))
    except phonenumbers.NumberParseException:
        return False


@cache
def _detectors() -> tuple[RegexBasedDetector, ...]:
    return tuple(detector() for detector in _DETECTORS)
