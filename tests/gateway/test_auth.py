"""Keys, tenants, and who may listen where."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.auth import KeyRing, Tenant, check_exposure
from gateway.errors import Unauthorized
from gateway.keys_file import KeysFileError, add_key, list_keys, revoke_key
from gateway.loopback import is_loopback
from gateway.settings import Settings, SettingsError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.toml"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("authorization", [None, "Bearer anything", "Basic eA=="])
def test_everybody_is_public_when_the_ring_is_open(authorization: str | None) -> None:
    """Without a keys file any or no key is the tenant public."""
    assert KeyRing().tenant(authorization).name == "public"


def test_key_opens_its_tenant_when_it_is_in_the_file(path: Path) -> None:
    """The key alone decides, in either header."""
    _, acme = add_key(path, "acme")
    _, other = add_key(path, "other")
    ring = KeyRing(path)
    assert ring.tenant(f"Bearer {acme}") == Tenant.named("acme")
    assert ring.tenant(f"bearer  {acme} ") == Tenant.named("acme")
    assert ring.tenant(None, acme).name == "acme"
    assert ring.tenant(f"Bearer {other}").name == "other"


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Bearer x", "Basic x"])
def test_key_is_refused_when_it_is_missing_or_unknown(
    path: Path, authorization: str | None
) -> None:
    """With a keys file nobody is public."""
    add_key(path, "acme")
    with pytest.raises(Unauthorized) as caught:
        KeyRing(path).tenant(authorization)
    assert caught.value.code == "invalid_api_key"


def test_hash_is_not_a_key_when_somebody_reads_the_file(path: Path) -> None:
    """The file holds no key, and what it holds opens nothing."""
    _, key = add_key(path, "acme")
    text = path.read_text()
    assert key not in text
    stored = list_keys(path)[0].hash
    for guess in (stored, stored.partition(":")[2]):
        with pytest.raises(Unauthorized):
            KeyRing(path).tenant(f"Bearer {guess}")


def test_key_is_refused_when_only_the_start_of_its_hash_is_known(path: Path) -> None:
    """The whole hash counts, to its last digit."""
    _, key = add_key(path, "acme")
    stored = list_keys(path)[0].hash
    other = "0" if stored[-1] != "0" else "1"
    path.write_text(path.read_text().replace(stored, stored[:-1] + other))
    with pytest.raises(Unauthorized):
        KeyRing(path).tenant(f"Bearer {key}")


def test_sha256_row_opens_its_tenant_when_another_tool_made_it(path: Path) -> None:
    """An operator can hash a key with sha256sum."""
    digest = sha256(b"a-key-of-my-own-choice").hexdigest()
    path.write_text(f'[[keys]]\nid = "k"\ntenant = "acme"\nhash = "sha256:{digest}"\n')
    assert KeyRing(path).tenant("Bearer a-key-of-my-own-choice").name == "acme"


def test_salt_differs_when_tenants_differ() -> None:
    """The salt follows from the name, and no two names share one."""
    assert Tenant.named("a") == Tenant.named("a")
    assert len({Tenant.named(name).salt for name in ("a", "b", "public", "A")}) == 4


def test_file_is_read_again_when_it_has_changed(path: Path) -> None:
    """New and revoked keys count without a restart, after the recheck time."""
    clock = Clock()
    key_id, first = add_key(path, "acme")
    ring = KeyRing(path, recheck_s=1.0, clock=clock)
    _, second = add_key(path, "beta")
    with pytest.raises(Unauthorized):
        ring.tenant(f"Bearer {second}")
    clock.now += 1
    assert ring.tenant(f"Bearer {second}").name == "beta"
    revoke_key(path, key_id)
    clock.now += 1
    with pytest.raises(Unauthorized):
        ring.tenant(f"Bearer {first}")


def test_known_keys_stay_when_the_changed_file_is_broken(path: Path) -> None:
    """A slip of the editor locks nobody out."""
    clock = Clock()
    _, key = add_key(path, "acme")
    ring = KeyRing(path, clock=clock)
    path.write_text("[[keys]\n")
    clock.now += 5
    assert ring.tenant(f"Bearer {key}").name == "acme"


def test_no_key_is_left_when_the_file_is_gone(path: Path) -> None:
    """Taking the file away closes the door; it does not open it."""
    clock = Clock()
    _, key = add_key(path, "acme")
    ring = KeyRing(path, clock=clock)
    path.unlink()
    clock.now += 5
    with pytest.raises(Unauthorized):
        ring.tenant(f"Bearer {key}")


def test_start_fails_when_the_file_is_missing(path: Path) -> None:
    """A wrong path is no open door."""
    with pytest.raises(KeysFileError, match="cannot read"):
        KeyRing(path)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("keys = 5", "expected"),
        ("[[keys]]\nid = 'a'", r"keys\[0\]"),
        ("[[keys]]\nid='a'\ntenant='t t'\nhash='x'", "tenant"),
        ("[[keys]]\nid='a'\ntenant='t'\nhash='plain-key'", "hash"),
        ("[[keys]]\nid='a'\ntenant='t'\nhash='x'\nkey='secret'", r"keys\[0\]"),
        ("[", "not valid TOML"),
    ],
)
def test_row_is_named_when_the_file_is_wrong(path: Path, text: str, named: str) -> None:
    """The message leads to the row."""
    path.write_text(text)
    with pytest.raises(KeysFileError, match=named):
        list_keys(path)


def test_file_is_private_when_it_is_written(path: Path) -> None:
    """Only the owner may read it, and nothing temporary stays."""
    add_key(path, "acme")
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_rows_are_listed_when_keys_were_added_and_revoked(path: Path) -> None:
    """List shows what is in the file, in order."""
    first, _ = add_key(path, "acme")
    second, plain = add_key(path, "beta", "my-own-key-of-some-length")
    assert plain == "my-own-key-of-some-length"
    assert [(row.key_id, row.tenant) for row in list_keys(path)] == [
        (first, "acme"),
        (second, "beta"),
    ]
    revoke_key(path, first)
    assert [row.key_id for row in list_keys(path)] == [second]
    with pytest.raises(KeysFileError, match=first):
        revoke_key(path, first)


@pytest.mark.parametrize(
    ("tenant", "key"), [("", None), ("a b", None), ("ä", None), ("a" * 65, None), ("a", "short")]
)
def test_key_is_not_added_when_name_or_key_is_bad(path: Path, tenant: str, key: str | None) -> None:
    """Nothing is written then."""
    with pytest.raises(KeysFileError):
        add_key(path, tenant, key)
    assert not path.exists()


def test_key_is_not_added_twice_when_it_is_the_same(path: Path) -> None:
    """One key cannot be two tenants."""
    add_key(path, "acme", "my-own-key-of-some-length")
    with pytest.raises(KeysFileError, match="already"):
        add_key(path, "beta", "my-own-key-of-some-length")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        (None, False),
    ],
)
def test_loopback_is_told_when_names_are_tricky(host: str | None, expected: bool) -> None:
    """Only what cannot leave the machine is loopback."""
    assert is_loopback(host) is expected


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "gateway.example"])
def test_start_is_refused_when_others_could_reach_an_open_gateway(host: str, path: Path) -> None:
    """Without keys only loopback is served."""
    settings = Settings(host=host)
    with pytest.raises(SettingsError, match="api_keys_file"):
        check_exposure(settings)
    check_exposure(replace(settings, api_keys_file=path))
    check_exposure(replace(settings, host="localhost"))
