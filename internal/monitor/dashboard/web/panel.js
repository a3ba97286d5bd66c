// The panel of one place: its measures beside their nulls, and its course.
if (page.data?.page === "run") page.panel = (() => {
  const {el, num, signed, data: D} = page, box = document.getElementById("panel");
  const known = new Map(D.measures.map(m => [m.n, m]));
  let waiting, shownKey;

  async function show(state) {
    const {grid} = state;
    if (state.where === undefined || state.where === "" || !grid?.S) return;
    waiting?.abort();
    waiting = new AbortController();
    const step = grid.steps[state.index];
    try {
      const query = new URLSearchParams({where: state.where, step, sample: state.sample});
      const answer = await page.fetchJSON(`/data/runs/${encodeURIComponent(D.run)}/place?${query}`, waiting.signal);
      draw(state, answer);
    } catch (e) {
      if (e.name !== "AbortError") box.replaceChildren(el("h2", {id: "h-panel"}, state.where), el("p", {class: "wrong"}, `This could not be read: ${e.message}`));
    }
  }

  function draw(state, answer) {
    const {grid} = state, p = grid.at.get(answer.where), focus = box.contains(document.activeElement) ? document.activeElement.dataset.measure : undefined;
    const parts = [el("h2", {id: "h-panel"}, answer.where), el("p", {class: "faint small"}, `${answer.kind}, step ${answer.step}` + (answer.tokens ? `, ${answer.tokens} tokens` : ""))];
    const alerts = answer.alerts.toSorted((a, b) => Number(a.over) - Number(b.over)), most = 3; // newest first already
    for (const a of alerts.slice(0, most)) parts.push(el("p", {class: `alert ${a.over ? "over" : a.severity} small`}, el("span", {class: `tag ${a.over ? "over" : a.severity}`}, a.over ? `${a.severity}, over` : a.severity), ` ${a.code}, `,
      el("a", {href: a.href, "data-moment": true, "data-step": a.step, "data-where": a.where, "data-measure": a.measure || ""}, `step ${a.step}`), `: ${a.text}`));
    if (alerts.length > most) parts.push(el("p", {class: "faint small"}, `and ${alerts.length - most} more of this place`));
    const bad = answer.non_finite || [], names = n => `${n.value} in ${n.tensor} of ${n.where} (token ${n.token}, column ${n.column})`;
    if (bad.length) parts.push(el("p", {class: "wrong small"}, bad.slice(0, 4).map(names).join("; ") + (bad.length > 4 ? `; and ${bad.length - 4} more tensors of this layer` : "")));
    if (p !== undefined) parts.push(course(state, p, answer));
    if (answer.logit) parts.push(...logit(answer.logit));
    if (answer.reason) parts.push(el("p", {class: "wrong small"}, `This snapshot has no measures: ${answer.reason}`));
    if (answer.measures.length) parts.push(el("h3", {}, `Measures of ${answer.where}`), numbers(state, answer.measures));
    if (answer.kv.length) parts.push(el("h3", {}, `Measures of ${answer.kv_where}, its KV head${answer.kv_sure ? "" : " by the default map"}`), numbers(state, answer.kv));
    if (answer.layer.length) parts.push(el("h3", {}, "Measures of its layer"), numbers(state, answer.layer));
    if (!answer.measures.length && !answer.reason && !answer.non_finite) parts.push(el("p", {class: "faint"}, "No measure has a value here at this step."));
    const top = box.scrollTop;
    box.replaceChildren(...parts);
    box.scrollTop = top;
    if (focus) box.querySelector(`[data-measure="${CSS.escape(focus)}"]`)?.focus();
    shownKey = answer.where + answer.step;
    box.dataset.shown = shownKey;
  }

  // course draws the chosen measure over the run beside the median of the peers.
  function course(state, p, answer) {
    const {grid} = state, own = page.line(grid, p), series = [{name: grid.where[p], x: grid.steps, y: own, color: 0}];
    if (grid.P > 1) series.push({name: "median of its layer", x: grid.steps, y: page.medianLine(grid, p), dashed: true, color: 1});
    const limits = [...new Set(answer.alerts.filter(a => a.where === answer.where && a.measure === grid.measure && a.threshold !== undefined).map(a => a.threshold))];
    for (const limit of limits.slice(0, 2)) series.push({name: `threshold ${num(limit)}`, x: [grid.steps[0], grid.steps[grid.S - 1]], y: [limit, limit], dashed: true, color: 3});
    const [lo, hi] = page.range(series.flatMap(s => s.y)), log = lo > 0 && hi / lo > 50;
    return page.chart({title: grid.measure, x: "step", y: log ? "logarithmic" : grid.unit && grid.unit !== "1" ? grid.unit : "value", log, height: 170, series});
  }

  // logit takes the largest score apart: was it scale, direction or a single key?
  function logit(l) {
    const fact = (name, value) => [el("dt", {}, name), el("dd", {}, value)];
    return [el("h3", {}, `Largest score ${num(l.max)}`), el("p", {class: "small"}, `Query ${l.query} on key ${l.key}: ${num(l.scale)} · ‖q‖ ${num(l.query_norm)} · ‖k‖ ${num(l.key_norm)} · cosine ${num(l.cosine)}.`),
      el("dl", {class: "facts small"}, fact("‖q‖, median", `${num(l.query_norm)}, ${num(l.query_norm_median)}`), fact("‖k‖, median", `${num(l.key_norm)}, ${num(l.key_norm_median)}`), fact("largest without this key", num(l.other_keys)))];
  }

  function numbers(state, list) {
    const nullText = m => m.mean === undefined ? "–" : num(m.mean) + (m.sd ? " ± " + num(m.sd, 2) : "");
    return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "measures"}, el("table", {},
      el("thead", {}, el("tr", {}, ["measure", "value", "null", "z"].map(t => el("th", {scope: "col"}, t)))),
      el("tbody", {}, list.map(m => {
        const doc = known.get(m.n), unit = doc?.u && doc.u !== "1" ? " " + doc.u : "";
        return el("tr", {"aria-current": m.n === state.measure ? "true" : null},
          el("td", {}, doc ? el("button", {type: "button", class: "link", "data-measure": m.n, title: doc.s, onclick: () => page.choose(m.n)}, m.n.replace(".", ".\u200b")) : m.n, unit ? el("span", {class: "faint"}, unit) : null),
          el("td", {}, m.text || num(m.v)), el("td", {title: doc?.nn || null}, nullText(m)), el("td", {title: doc?.nz || null}, m.z === undefined ? "–" : signed(m.z)));
      }))));
  }
  return {show};
})();
