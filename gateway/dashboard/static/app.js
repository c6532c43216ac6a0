// The pages' behaviour: theme, local times, live parts, calls of the admin API, fragments.
import { edit, editsIn, keepEdits, makeKeptEdits, settle, takenDown } from "./edits.js";

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
  if (response.status === 401 && token) signInAgain();
  const answer = await response.json().catch(() => ({}));
  if (answer.error?.code === "csrf_failed") loadAgain();
  if (!response.ok) throw new Error(answer.error?.message ?? `${document.body.dataset.failed} (${response.status})`);
  return answer;
}

/** Put what the API said in the page's language; what it does not know stays in English. */
export async function translated(text) {
  if (!text || document.documentElement.lang === "en") return text;
  const answer = await call("POST", "/dashboard/said", { text }).catch(() => ({ text }));
  return answer.text;
}

/** Ask for the key again where the session has ended, and come back with what was being edited. */
function signInAgain() {
  keepEdits();
  const next = location.pathname + location.search;
  location.assign(`/dashboard/login?${new URLSearchParams({ next })}`);
}

/** Load the page anew, with what was being edited: another tab has opened another session. */
function loadAgain() {
  keepEdits();
  location.reload();
}

/** Fetch a page of ours as a document; an ended session leads to the sign-in. */
async function fetchPage(url) {
  const response = await fetch(url, { headers: { accept: "text/html" } });
  if (response.redirected && new URL(response.url).pathname.endsWith("/login")) signInAgain();
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

const inUse = (part) => part.contains(document.activeElement);

/** Replace the parts of this page that have changed; what the reader has open or edits stays. */
export async function refresh(isLeft = inUse) {
  const fresh = await fetchPage(location.href);
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.getElementById(part.id);
    if (next && !isLeft(part)) replace(part, next);
  }
}

function replace(part, next) {
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  const node = document.importNode(next, true);
  [...node.querySelectorAll("details")].forEach((each, at) => { each.open = open[at] ?? each.open; });
  localise(node);
  if (node.outerHTML === part.outerHTML) return;
  const edits = editsIn(part);
  const used = inUse(part) ? document.activeElement.id : "";
  part.replaceWith(node);
  settle(node);
  edit(edits);
  if (used) document.getElementById(used)?.focus();
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

/** Read what a form sends: a field with data-with="NAME=VALUE" goes only with that other field. */
function sentBy(form) {
  const fields = fieldsOf(form);
  for (const input of form.querySelectorAll("[data-with]")) {
    const [other, value] = input.dataset.with.split("=");
    if (fields[other] !== value) delete fields[input.name];
  }
  return fields;
}

async function submitted(form) {
  const { api, method = "POST", confirm: question, done, ifMatch, then } = form.dataset;
  if (question && !window.confirm(question)) return;
  const alert = form.querySelector("[role=alert]");
  if (alert) alert.textContent = "";
  form.setAttribute("aria-busy", "true");
  try {
    const fields = sentBy(form);
    const settleSent = takenDown(form);
    const inQuery = method === "DELETE" || method === "GET";
    const query = inQuery && Object.keys(fields).length ? `?${new URLSearchParams(fields)}` : "";
    const answer = await call(method, api + query, inQuery ? undefined : fields, ifMatch ? { "if-match": ifMatch } : {});
    form.dispatchEvent(new CustomEvent("strata:done", { bubbles: true, detail: answer }));
    if (then) return location.assign(then);
    settleSent();
    await refresh(() => false);
    say(done ?? document.body.dataset.done);
  } catch (error) {
    const told = await translated(error.message);
    if (alert) alert.textContent = told;
    say(told, "bad");
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

document.querySelector(".tools a[hreflang]")?.addEventListener("click", keepEdits);

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
settle(document);
document.addEventListener("DOMContentLoaded", makeKeptEdits); // behind the page's own module
for (const place of document.querySelectorAll("[data-fragment]")) load(place, place.dataset.fragment);
