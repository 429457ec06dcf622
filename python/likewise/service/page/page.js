// What the page can do beyond links and forms: keys, and the slider of the threshold page. Everything else works without.
"use strict";

(() => {
  const one = (query) => document.querySelector(query);

  // Keys: letters press the link or button that names them, j and k walk through the rows of a list.
  function walk(step) {
    const links = [...document.querySelectorAll("[data-rows] tbody a.id")];
    if (!links.length) {
      const beside = one(`a[rel="${step > 0 ? "next" : "prev"}"]`);
      if (beside) beside.click();
      return;
    }
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
    links[next].focus();
    links[next].scrollIntoView({ block: "nearest" });
  }
  const relations = { n: "next", p: "prev" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "j" || event.key === "k") return walk(event.key === "j" ? 1 : -1);
    if (event.key === "/") {
      const search = one("input[type=search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
      return;
    }
    if (!/^[a-z]$/.test(event.key)) return;
    const named = one(`[data-key="${event.key}"]`) || one(`a[rel="${relations[event.key] || "-"}"]`);
    if (named) named.click();
  });

  // The threshold: counts for every cut came with the page; the pairs around one are asked for once the slider rests.
  const slider = one("#position");
  if (!slider) return;
  const points = JSON.parse(one("#points").textContent);
  const number = new Intl.NumberFormat("en");
  const place = one("#slider").dataset.around;
  const command = one("#command");
  const template = command.textContent;
  let asked = 0;
  let timer = 0;

  function commandAt(cut) {
    if (points.bits) return template.replace(/--within \d+/, `--within ${Math.round((1 - cut) * points.bits)}`);
    return template.replace(/--threshold \S+/, `--threshold ${+cut.toFixed(6)}`);
  }
  function drawMarks(cut) {
    for (const chart of document.querySelectorAll("svg.chart")) {
      const axis = chart.querySelector(".axis");
      const line = chart.querySelector("line.mark");
      if (!axis || !line) continue;
      const low = points.cuts[0];
      const high = points.cuts[points.cuts.length - 1];
      const [x1, x2] = [+axis.getAttribute("x1"), +axis.getAttribute("x2")];
      const x = x1 + ((cut - low) / (high - low || 1)) * (x2 - x1);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      const text = chart.querySelector("text.mark");
      const isRight = x > 0.6 * x2;
      text.setAttribute("x", isRight ? x - 5 : x + 5);
      text.setAttribute("text-anchor", isRight ? "end" : "start");
    }
  }
  async function showAround(cut) {
    const mine = ++asked;
    const answer = await fetch(`${place}?cut=${cut}`, { credentials: "same-origin" });
    if (!answer.ok || mine !== asked) return;
    // Made by the same templates as the page itself, in which all text is escaped.
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine === asked) one("#around").replaceChildren(...parsed.body.children);
  }
  function show() {
    const at = +slider.value;
    const cut = points.cuts[at];
    const kept = points.kept[at];
    const change = kept - points.own_kept;
    one("#cut").textContent = cut.toFixed(4);
    one("#kept").textContent = number.format(kept);
    one("#share").textContent = `${((100 * kept) / (points.total || 1)).toFixed(1)} %`;
    one("#change").textContent = change
      ? `${change > 0 ? "+" : "\u2212"}${number.format(Math.abs(change))} compared with the run`
      : "same as the run";
    one("#found").textContent = points.found[at] === null ? "unknown" : points.found[at].toFixed(4);
    slider.setAttribute("aria-valuetext", `${cut.toFixed(4)}: ${number.format(kept)} kept`);
    command.textContent = commandAt(cut);
    drawMarks(cut);
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(null, "", `?cut=${cut}`);
      showAround(cut);
    }, 250);
  }
  slider.addEventListener("input", show);

  const copy = one("#copy");
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.textContent);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy command"), 1500);
    });
  }
})();
