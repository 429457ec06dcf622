// What the page can do beyond links and forms: keys, and the slider of the threshold page. Everything else works without.
"use strict";

(() => {
  const one = (query) => document.querySelector(query);

  // Keys: y, n, s, u and Escape press the link or button that names them, arrows turn pages, j and k walk through the rows of a list.
  function walk(step) {
    const links = [...document.querySelectorAll("[data-rows] tbody a.id")];
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
    links[next].focus();
    links[next].scrollIntoView({ block: "nearest" });
  }
  const relations = { ArrowRight: "next", ArrowLeft: "prev" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || one("dialog[open]")) return;
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
    if (event.key === "?") return one("#keys").showModal();
    const relation = relations[event.key];
    if (!relation && !/^([ynsu]|Escape)$/.test(event.key)) return;
    // Arrows turn the page, but for an element that scrolls or moves by them.
    if (relation && event.target !== document.body && event.target.matches("[tabindex], audio, video")) return;
    const named = one(relation ? `a[rel="${relation}"]` : `[data-key="${event.key}"]`);
    if (named) named.click();
  });

  // Buttons that copy a command.
  for (const copy of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(one(`#${copy.dataset.copy}`).textContent);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy command"), 1500);
    });
  }

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

  const recipe = one("#recipe");
  const own = String(+(+command.dataset.own).toFixed(6));
  function showCommand(cut) {
    // As the page itself names the recipe file and the output.
    const name = String(+cut.toFixed(6));
    const [inputs, rest] = template.split(/ -o (?=\S+ --recipe )/);
    command.textContent = `${inputs} -o ${rest.replaceAll(`-${own}`, `-${name}`)}`;
    recipe.setAttribute("href", recipe.getAttribute("href").replace(/cut=[^&]*/, `cut=${cut}`));
    recipe.setAttribute("download", `recipe-${name}.json`);
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
    showCommand(cut);
    drawMarks(cut);
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(null, "", `?cut=${cut}`);
      showAround(cut);
    }, 250);
  }
  slider.addEventListener("input", show);
})();
