// The prefixes page: a request is explained, pinned or unpinned by the admin API; answers are shown as text.
import { call, refresh, say, translated } from "/dashboard/static/app.js";

const form = document.getElementById("ask");
const found = document.getElementById("found");

function show(name, text) {
  found.querySelector(`[data-show="${name}"]`).textContent = text;
}

function nameOf(cause) {
  return document.querySelector(`#causes [data-cause="${CSS.escape(cause)}"]`)?.textContent ?? cause;
}

function tokens(cached, all) {
  const text = found.querySelector('[data-show="tokens"]').dataset.text;
  show("tokens", text.replace("{cached}", cached).replace("{all}", all).replace("{computed}", all - cached));
}

async function showExplanation(answer) {
  const parted = answer.first_divergence;
  show("cause", nameOf(answer.cause));
  show("detail", await translated(answer.detail));
  tokens(answer.cached_tokens, answer.prompt_tokens);
  found.querySelector("[data-when]").hidden = !parted;
  show("before", parted?.text_before ?? "");
  show("here", parted?.text_here ?? "");
  show("there", parted?.text_cached ?? "–");
}

function showWarmed(answer, cause) {
  if (answer.errors.length) throw new Error(answer.errors[0].message);
  const [row] = answer.results;
  show("cause", nameOf(cause));
  show("detail", "");
  tokens(row.cached_tokens, row.prompt_tokens);
  found.querySelector("[data-when]").hidden = true;
}

async function act(action) {
  const tenant = form.elements.tenant.value ? { tenant: form.elements.tenant.value } : {};
  const request = JSON.parse(form.elements.request.value);
  if (action === "explain") {
    await showExplanation(await call("POST", "/admin/prefix/explain", { request, ...tenant }));
  } else {
    const pin = action === "pin";
    showWarmed(await call("POST", "/admin/prefix/warm", { requests: [request], pin, ...tenant }), pin ? "warmed" : "unpinned");
    await refresh();
  }
  found.hidden = false;
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const alert = form.querySelector("[role=alert]");
  alert.textContent = "";
  form.setAttribute("aria-busy", "true");
  try {
    await act(event.submitter?.value || "explain");
  } catch (error) {
    alert.textContent = await translated(error.message);
    say(alert.textContent, "bad");
  } finally {
    form.removeAttribute("aria-busy");
  }
});
