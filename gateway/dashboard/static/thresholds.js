// Tuning: the slider, the number and the chart's mark are one; touching them means mode "manual".
const id = (name) => document.getElementById(name);

function follow(value) {
  const mark = document.querySelector("line.tried");
  for (const end of ["x1", "x2"]) mark?.setAttribute(end, String(100 * value));
}

document.addEventListener("input", ({ target }) => {
  if (target.id === "slide") id("threshold").value = Number(target.value).toFixed(3);
  if (target.id === "threshold" && target.value !== "" && target.validity.valid) id("slide").value = target.value;
  if (target.id === "slide" || target.id === "threshold") {
    if (id("threshold").value !== "") id("mode").value = "manual";
    follow(Number(id("slide").value));
  }
}, { capture: true });
