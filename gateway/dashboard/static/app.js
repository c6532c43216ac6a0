// The pages' behaviour: theme, local times, live parts, calls of the admin API, fragments.
const said = document.getElementById("said");
const token = document.querySelector('meta[name="strata-token"]')?.content;
let quietAt = 0;

/** Tell the reader something, aloud for screen readers. */
export function say(text, kind = "") {
  said.className = `toast shown ${kind}`;
  said.textContent = text;
  clearTimeout(quietAt);
  quietAt = setTimeout(() => said.classList.remove("shown"), 5000);
}

/** Call the admin API as a script would; throws with the API's own message. */
export async function call(method, url, body, headers = {}) {
  const sent = { "x-strata-actor": "dashboard", ...headers };
  if (token) sent["x-strata-csrf"] = token;
  if (body !== undefined) sent["content-type"] = "application/json";
  const response = await fetch(url, { method, headers: sent, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error?.message ?? `${document.body.dataset.failed} (${response.status})`);
  return answer;
}

/** Fetch a page of ours as a document; an expired session leads to the sign-in. */
async function fetchPage(url) {
  const response = await fetch(url, { headers: { accept: "text/html" } });
  if (response.redirected && new URL(response.url).pathname.endsWith("/login")) location.assign(response.url);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Replace the parts of this page that have changed; what the reader has open stays open. */
export async function refresh(url = location.href) {
  const fresh = await fetchPage(url);
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.getElementById(part.id);
    if (next && !part.contains(document.activeElement)) replace(part, next);
  }
}

function replace(part, next) {
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  const node = document.importNode(next, true);
  [...node.querySelectorAll("details")].forEach((each, at) => { each.open = open[at] ?? each.open; });
  localise(node);
  if (node.outerHTML !== part.outerHTML) part.replaceWith(node);
}

function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const at = new Date(time.dateTime);
    const two = (n) => String(n).padStart(2, "0");
    time.title = time.dateTime;
    const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
    if ("clock" in time.dataset) { time.textContent = clock; continue; }
    time.textContent = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}:${two(at.getSeconds())}`;
  }
}

/** Load a fragment into its place; only the latest of several quick ones is shown. */
const asked = new WeakMap();
export async function load(place, url) {
  const order = (asked.get(place) ?? 0) + 1;
  asked.set(place, order);
  place.setAttribute("aria-busy", "true");
  try {
    const fresh = await fetchPage(url);
    if (asked.get(place) !== order) return;
    place.replaceChildren(...[...fresh.body.children].map((each) => document.importNode(each, true)));
    localise(place);
  } catch {
    if (asked.get(place) === order) say(document.body.dataset.failed, "bad");
  } finally {
    if (asked.get(place) === order) place.removeAttribute("aria-busy");
  }
}

const readers = {
  number: (value) => (value === "" ? undefined : Number(value)),
  list: (value) => value.split(",").map((each) => each.trim()).filter(Boolean),
  json: (value) => JSON.parse(value),
  text: (value) => (value === "" ? undefined : value),
};

/** Read a form's fields as the API takes them: data-type is number, list, json or text. */
export function fieldsOf(form) {
  const fields = {};
  for (const input of form.elements) {
    if (!input.name || input.disabled || (input.type === "checkbox" && !input.checked)) continue;
    const value = readers[input.dataset.type ?? "text"](input.value);
    if (value !== undefined) fields[input.name] = value;
  }
  return fields;
}

/** Refresh all parts, the one in use too; the focus stays where it was. */
export async function renewed() {
  const used = document.activeElement?.id;
  document.activeElement?.blur();
  await refresh();
  if (used) document.getElementById(used)?.focus();
}

async function submitted(form) {
  const { api, method = "POST", confirm: question, done, ifMatch, then } = form.dataset;
  if (question && !window.confirm(question)) return;
  const alert = form.querySelector("[role=alert]");
  if (alert) alert.textContent = "";
  form.setAttribute("aria-busy", "true");
  try {
    const fields = fieldsOf(form);
    const inQuery = method === "DELETE" || method === "GET";
    const query = inQuery && Object.keys(fields).length ? `?${new URLSearchParams(fields)}` : "";
    const answer = await call(method, api + query, inQuery ? undefined : fields, ifMatch ? { "if-match": ifMatch } : {});
    form.dispatchEvent(new CustomEvent("strata:done", { bubbles: true, detail: answer }));
    if (then) return location.assign(then);
    await renewed();
    say(done ?? document.body.dataset.done);
  } catch (error) {
    if (alert) alert.textContent = error.message;
    say(error.message, "bad");
  } finally {
    form.removeAttribute("aria-busy");
  }
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.api) return;
  event.preventDefault();
  submitted(event.target);
});

// <form data-preview="URL" data-into="ID">: as its fields change, the fragment is loaded anew.
const previewing = new Map();
function preview(form) {
  clearTimeout(previewing.get(form));
  previewing.set(form, setTimeout(() => {
    load(document.getElementById(form.dataset.into), `${form.dataset.preview}?${new URLSearchParams(fieldsOf(form))}`);
  }, 120));
}
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.dataset.preview) preview(form);
});

document.getElementById("theme")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : root.dataset.theme === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `strata_theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
});

// <main data-live="SECONDS">: parts are brought up to date while the page is seen.
const live = Number(document.getElementById("main")?.dataset.live ?? 0);
let refreshing = false;
async function tick() {
  if (document.hidden || refreshing) return;
  refreshing = true;
  try { await refresh(); } catch { /* the next one will do */ } finally { refreshing = false; }
}
if (live) {
  setInterval(tick, live * 1000);
  document.addEventListener("visibilitychange", tick);
}
localise(document);
for (const place of document.querySelectorAll("[data-fragment]")) load(place, place.dataset.fragment);
