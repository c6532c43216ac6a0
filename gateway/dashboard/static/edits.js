// What a reader is editing: it stays when parts of the page are renewed, when the language is changed
// and when a session has to be opened anew.
const FIELDS = "input[id]:not([type=hidden], [type=password]), select[id], textarea[id]";
const KEPT = "strata_edits";
const settled = new WeakMap(); // what each field held when it came, or when it was last taken

const held = (field) => (field.type === "checkbox" ? field.checked : field.value);

/** Take what the fields hold now for what the page says: none of it is an edit. */
export function settle(root) {
  for (const field of root.querySelectorAll(FIELDS)) settled.set(field, held(field));
}

/** Take down what a form holds; the returned function settles it, as it was then. */
export function takenDown(form) {
  const values = [...form.elements].filter((field) => field.matches(FIELDS)).map((field) => [field, held(field)]);
  return () => { for (const [field, value] of values) settled.set(field, value); };
}

/** Return the edits in a part of the page: what a field holds, by its id. */
export function editsIn(root) {
  const edited = [...root.querySelectorAll(FIELDS)].filter((field) => settled.has(field) && settled.get(field) !== held(field));
  return Object.fromEntries(edited.map((field) => [field.id, held(field)]));
}

/** Make edits as the reader would: whatever follows a field hears of it. */
export function edit(edits) {
  for (const [id, value] of Object.entries(edits)) {
    const field = document.getElementById(id);
    if (!field?.matches(FIELDS)) continue;
    if (typeof value === "boolean") field.checked = value;
    else field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Return this page's address, whatever its language. */
function here() {
  const url = new URL(location.href);
  url.searchParams.delete("lang");
  return url.pathname + url.search;
}

/** Keep this page's edits for when it is loaded again, in this tab alone. */
export function keepEdits() {
  sessionStorage.setItem(KEPT, JSON.stringify({ page: here(), edits: editsIn(document) }));
}

/** Make the edits that were kept if they were of this page, once; the sign-in is only on the way. */
export function makeKeptEdits() {
  if (location.pathname.endsWith("/login")) return;
  const { page, edits } = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
  sessionStorage.removeItem(KEPT);
  if (page === here()) edit(edits);
}
