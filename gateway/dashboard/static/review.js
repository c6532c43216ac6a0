// Judging pairs: r, w and s, or the buttons; the next pair is there at once, the verdict goes out beside it.
import { call, say, translated } from "./app.js";

const queue = document.getElementById("queue");
const verdictOf = { r: "right", w: "wrong", s: "skip" };
let underway = 0;
let judged = 0;

function current() {
  return queue.querySelector("article:not([hidden])");
}

function next(pair) {
  const following = pair.nextElementSibling;
  pair.remove();
  following.hidden = false;
  if (following.matches("article")) following.focus();
  else if (judged && !underway) location.reload();
}

async function judge(pair, verdict) {
  if (verdict === "skip") return next(pair);
  judged += 1;
  underway += 1;
  const { request, entry } = pair.dataset;
  next(pair);
  try {
    await call("POST", "/admin/feedback", { request_id: request, entry, verdict, source: "review" });
    say(queue.dataset.done);
  } catch (error) {
    queue.prepend(pair);
    for (const other of queue.children) other.hidden = other !== pair;
    say(await translated(error.message), "bad");
  } finally {
    underway -= 1;
    if (!underway && !current() && judged) location.reload();
  }
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  const verdict = verdictOf[event.key.toLowerCase()];
  if (!verdict || typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const pair = current();
  if (pair) judge(pair, verdict);
});
queue.addEventListener("click", (event) => {
  const button = event.target.closest("[data-verdict]");
  if (button) judge(button.closest("article"), button.dataset.verdict);
});
