// The cache page: what would be removed is counted while the fields are filled in.
import { call, fieldsOf, translated } from "/dashboard/static/app.js";

const form = document.getElementById("invalidate");
const would = document.getElementById("would");
const button = form.querySelector("button");
let asked = 0;

async function count() {
  const order = ++asked;
  const fields = fieldsOf(form);
  button.disabled = true;
  would.textContent = "";
  if (!Object.keys(fields).length) return;
  try {
    const answer = await call("DELETE", `/admin/cache/entries?${new URLSearchParams({ ...fields, dry_run: "1" })}`);
    if (order !== asked) return;
    would.textContent = form.dataset.count.replace("{n}", answer.deleted);
    form.dataset.confirm = form.dataset.question.replace("{n}", answer.deleted);
    button.disabled = answer.deleted === 0;
  } catch (error) {
    const told = await translated(error.message);
    if (order === asked) would.textContent = told;
  }
}

let waiting = 0;
form.addEventListener("input", () => {
  button.disabled = true;
  clearTimeout(waiting);
  waiting = setTimeout(count, 150);
});
form.addEventListener("strata:done", () => { form.reset(); count(); });
