"""The cache page in a real browser: found, looked at, taken out after the count was shown."""

from playwright.sync_api import Page, expect

from tests.dashboard.house import House

SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def store(house: House, text: str, *, tags: str = "", namespace: str = "pages") -> str:
    """Ask through the gateway, so that the answer is kept; return its entry."""
    headers = {"x-strata-namespace": namespace, **({"x-strata-tags": tags} if tags else {})}
    answer = house.caller.chat(text, model="stub-model", headers=headers)
    assert answer.status_code == 200, answer.text
    listed = house.admin.http.get("/admin/cache/entries", params={"namespace": namespace}).json()
    return next(str(e["id"]) for e in listed["entries"] if e["text"] == text)


def test_entry_is_found_and_shown_in_full(operator: Page, house: House) -> None:
    """A search leads to the entry, and the entry shows its question and its bodies."""
    text = "How tall is the lighthouse of Westkapelle?"
    entry = store(house, text)
    operator.goto("/dashboard/cache")
    operator.get_by_role("searchbox").fill("lighthouse of Westkapelle")
    operator.keyboard.press("Enter")
    rows = operator.locator("#entries tbody tr")
    expect(rows).to_have_count(1)
    rows.get_by_role("link", name=text).click()
    expect(operator.locator("h1")).to_have_text("Stored answer")
    expect(operator.locator("main")).to_contain_text(entry)
    operator.get_by_text("Request", exact=True).click()
    expect(operator.locator("pre").first).to_contain_text("stub-model")


def test_answers_are_removed_by_tag_when_their_count_was_confirmed(
    operator: Page, house: House
) -> None:
    """First the number, then the question, then they are gone, and nothing else is."""
    for n in (1, 2):
        store(house, f"What does chapter {n} of the tagged book say?", tags="book-7")
    store(house, "What does the other book say?", tags="book-8")
    operator.goto("/dashboard/cache?namespace=pages")
    operator.locator("#take-tag").fill("book-7")
    expect(operator.locator("#would")).to_have_text("2 stored answers would be removed.")
    asked: list[str] = []
    operator.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    operator.get_by_role("button", name="Remove").click()
    expect(operator.locator("#said")).to_have_text("Removed")
    assert asked == ["Remove 2 stored answers from all stores? This cannot be undone."]
    expect(operator.locator("#entries")).not_to_contain_text("tagged book")
    expect(operator.locator("#entries")).to_contain_text("the other book")
    left = house.admin.http.get("/admin/cache/entries", params={"tag": "book-7"}).json()
    assert left["entries"] == []


def test_nothing_is_removed_when_the_question_is_denied(operator: Page, house: House) -> None:
    """Nor can the button be pressed when nothing would be removed."""
    store(house, "What does the kept book say?", tags="book-9")
    operator.goto("/dashboard/cache")
    button = operator.get_by_role("button", name="Remove")
    expect(button).to_be_disabled()
    operator.locator("#take-tag").fill("no-such-tag")
    expect(operator.locator("#would")).to_have_text("0 stored answers would be removed.")
    expect(button).to_be_disabled()
    operator.locator("#take-tag").fill("book-9")
    operator.on("dialog", lambda dialog: dialog.dismiss())
    button.click()
    kept = house.admin.http.get("/admin/cache/entries", params={"tag": "book-9"}).json()
    assert len(kept["entries"]) == 1


def test_prompt_that_is_a_script_is_shown_as_text(operator: Page, house: House) -> None:
    """In the list and on its own page, in the question and in the tags (field case O03)."""
    requested: list[str] = []
    operator.on("request", lambda request: requested.append(request.url))
    entry = store(house, f"Explain {SCRIPT}", tags="<b>bold</b>")
    for url in ("/dashboard/cache?namespace=pages", f"/dashboard/cache/{entry}"):
        operator.goto(url)
        expect(operator.locator("main")).to_contain_text(SCRIPT)
        expect(operator.locator("main")).to_contain_text("<b>bold</b>")
        assert "owned" not in operator.title()
    assert not [url for url in requested if not url.startswith(house.stack.url)]
    assert not [url for url in requested if url.endswith("/x")]


def test_pages_go_on_where_the_last_ended(operator: Page, house: House) -> None:
    """By links, with the filters kept."""
    for n in range(3):
        store(house, f"Paged question {n}?", namespace="paged")
    seen: list[str] = []
    operator.goto("/dashboard/cache?namespace=paged&limit=2")
    seen += operator.locator("#entries tbody tr td:first-child a").all_inner_texts()
    operator.get_by_role("link", name="Next page").click()
    expect(operator.locator("#entries tbody tr")).to_have_count(1)
    seen += operator.locator("#entries tbody tr td:first-child a").all_inner_texts()
    assert sorted(seen) == [f"Paged question {n}?" for n in range(3)]


def test_entry_that_is_gone_says_so(operator: Page) -> None:
    """A link that was kept too long leads to words, not to a fault."""
    response = operator.goto("/dashboard/cache/nothing-here")
    assert response is not None
    assert response.status == 404
    expect(operator.locator("main")).to_contain_text("nothing-here")


def test_every_column_is_seen_when_rows_are_long(operator: Page, house: House) -> None:
    """Long names wrap, so that nothing is cut at 1280 px."""
    long = "a-rather-long-name-of-a-team-and-its-surroundings"
    store(house, "What is in a long row? " * 20, tags=f"{long},{long}-2", namespace=long)
    operator.goto(f"/dashboard/cache?namespace={long}")
    region = operator.locator("#entries .scroll")
    expect(region.locator("tbody tr")).to_have_count(1)
    assert region.evaluate("each => each.scrollWidth - each.clientWidth") <= 0
    for time in region.locator("tbody time").all():
        assert time.evaluate("each => each.getClientRects().length") <= len(("date", "clock"))


def test_error_names_every_selector_when_none_is_given(house: House) -> None:
    """Entries are also selected by what their text is near to."""
    answer = house.admin.http.delete("/admin/cache/entries")
    assert answer.status_code == 400
    for name in ("id", "tag", "model", "namespace", "tenant", "near", "all=1"):
        assert name in answer.json()["error"]["message"]
