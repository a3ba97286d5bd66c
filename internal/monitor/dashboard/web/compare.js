// Two runs side by side: the same measure at the same step, and their difference.
if (page.data?.page === "compare" && page.data.a && page.data.b) {
  const {el, num, signed, data: D} = page, $ = id => document.getElementById(id);
  const state = {measure: D.measure, step: D.step, steps: [], a: undefined, b: undefined, place: D.where, index: -1};
  const axis = page.timeAxis(), maps = {};
  let scalars = [], strips = [], request = 0, text = () => "";
  const spaced = v => String(v).replace(/\B(?=(\d{3})+$)/g, "\u202f");

  async function load() {
    const mine = ++request;
    try {
      const [a, b] = await Promise.all([D.a, D.b].map(run => page.loadGrid(run, state.measure, 0)));
      if (mine !== request) return;
      Object.assign(state, {a, b});
      const shared = [...new Set([...a.where, ...b.where])];
      state.where = shared.map(w => [w, page.place(w)]).sort(([, x], [, y]) => x.layer - y.layer || x.index - y.index).map(([w]) => w);
      state.steps = [...new Set([...a.steps, ...b.steps])].sort((x, y) => x - y);
      state.index = state.step === null ? state.steps.length - 1 : page.nearest(state.steps, state.step);
      $("problem").hidden = true;
      drawTime();
      drawMaps();
      scrubbed();
    } catch (e) { if (mine === request) { $("problem").textContent = `This could not be read: ${e.message}`; $("problem").hidden = false; } }
  }

  // at returns the value of a place at the last snapshot of a run up to a step.
  function at(grid, where, step) {
    const s = page.upTo(grid.steps, step), p = grid.at.get(where);
    return s < 0 || p === undefined ? NaN : grid.values[s * grid.P + p];
  }

  function drawTime() {
    axis.width = Math.max($("timeline").parentElement.clientWidth, 200);
    axis.L = axis.width < 560 ? 44 : 56;
    const ends = [...state.steps.slice(0, 1), ...state.steps.slice(-1), ...scalars.filter(s => s.steps.length).flatMap(s => [s.steps[0], s.last])];
    [axis.lo, axis.hi] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
    const slider = $("slider");
    slider.style.marginLeft = axis.L - 8 + "px";
    slider.style.width = axis.width - axis.L - axis.R + 16 + "px";
    slider.min = axis.lo;
    slider.max = axis.hi;
    const names = [...new Set(scalars.flatMap(s => s.series.map(x => x.name)))].slice(0, 3);
    strips = names.map(name => page.strip({name, height: 90, series: scalars.map((s, i) => ({steps: s.steps, lo: [], hi: [], bad: [], ...s.series.find(x => x.name === name), name: i ? "B" : "A"}))
      .map(s => s.lo.length ? s : {...s, steps: []})}, axis));
    if (state.a) for (const [name, pickOf] of [["median", page.median], ["largest", v => page.range(v)[1]]]) {
      const one = grid => { const v = grid.steps.map((_, s) => { const list = [...grid.values.subarray(s * grid.P, (s + 1) * grid.P)].filter(Number.isFinite); return list.length ? pickOf(list) : null; }); return {steps: grid.steps, lo: v, hi: v, bad: []}; };
      strips.push(page.strip({name: `${state.measure}, ${name} of all places`, height: 90, series: [{...one(state.a), name: "A"}, {...one(state.b), name: "B"}]}, axis));
    }
    $("strips").replaceChildren(...strips.map(s => s.element));
    $("steps").replaceChildren(page.stepAxis(axis));
    $("timeline").hidden = !ends.length;
  }

  function drawMaps() {
    const places = state.where.map(page.place), cols = [...new Set(places.map(a => a.layer))].sort((a, b) => a - b), rows = [...new Set(places.map(a => a.index))].sort((a, b) => a - b);
    const ids = new Map(places.map((a, i) => [a.layer + ":" + a.index, i]));
    for (const key of ["a", "b", "diff"]) {
      const map = page.heatmap({label: {a: "run A", b: "run B", diff: "B minus A"}[key] + "; arrow keys move, Enter chooses a place", rows: places[0]?.kind === "L" ? [""] : rows, cols, corner: places[0]?.kind === "L" ? "L" : `${places[0]?.kind}\\L`,
        cell: (y, x) => ids.get(cols[x] + ":" + rows[y]), pick: i => { state.place = state.where[i]; scrubbed(); }, point: i => { $("readout").textContent = i === undefined ? text(state.where.indexOf(state.place)) : text(i); }});
      maps[key] = map;
      $("map-" + key).replaceChildren(map.element, map.legend);
    }
    const [lo, hi] = page.range([...[...state.a.values, ...state.b.values]]);
    maps.scale = page.scaleOf([...state.a.values, ...state.b.values]);
    maps.lo = lo;
    maps.hi = hi;
  }

  function scrubbed() {
    if (!state.steps.length || !maps.a) { $("at").textContent = "no snapshot yet"; return; }
    const step = state.steps[state.index];
    state.step = step;
    const a = state.where.map(w => at(state.a, w, step)), b = state.where.map(w => at(state.b, w, step)), diff = a.map((v, i) => b[i] - v);
    const unit = state.a.unit && state.a.unit !== "1" ? " " + state.a.unit : "";
    text = i => i < 0 ? "" : `${state.where[i]}: A ${num(Number.isNaN(a[i]) ? null : a[i])}${unit}, B ${num(Number.isNaN(b[i]) ? null : b[i])}${unit}` + (Number.isNaN(diff[i]) ? "" : `, B − A ${signed(diff[i])}`);
    const [dlo, dhi] = page.range(diff), top = Math.max(Math.abs(dlo), Math.abs(dhi)) || 1;
    const name = state.measure + unit + (maps.scale.kind === "linear" ? "" : ", logarithmic");
    maps.a.paint({values: i => a[i], text, scale: maps.scale, palette: page.palettes.viridis, unit: name});
    maps.b.paint({values: i => b[i], text, scale: maps.scale, palette: page.palettes.viridis, unit: name});
    const wide = page.wide(diff, top);
    maps.diff.paint({values: i => diff[i], text, scale: page.scale(-top, top, wide ? "signed" : "linear"), palette: page.palettes.diverging, unit: `difference, B − A${unit}${wide ? ", logarithmic" : ""}`});
    const chosen = state.where.indexOf(state.place);
    for (const key of ["a", "b", "diff"]) maps[key].select(chosen < 0 ? undefined : chosen);
    $("readout").textContent = text(chosen);
    $("cursor").style.transform = `translateX(${axis.px(step)}px)`;
    $("slider").value = step;
    $("slider").setAttribute("aria-valuetext", `step ${step}`);
    $("at").textContent = `step ${spaced(step)}`;
    for (const s of strips) s.at(step);
    const used = grid => { const s = page.upTo(grid.steps, step); return s < 0 ? "none yet" : `step ${spaced(grid.steps[s])}`; };
    $("used").textContent = `Snapshots shown: A ${used(state.a)}, B ${used(state.b)}.`;
    largest(a, b, diff);
    course();
    remember();
    document.documentElement.dataset.drawn ??= performance.now().toFixed(0);
  }

  function largest(a, b, diff) {
    const list = diff.map((d, i) => i).filter(i => Number.isFinite(diff[i])).sort((x, y) => Math.abs(diff[y]) - Math.abs(diff[x])).slice(0, 12);
    $("largest").replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ["where", "A", "B", "B − A"].map(t => el("th", {scope: "col"}, t)))),
      el("tbody", {}, list.map(i => el("tr", {"aria-selected": state.where[i] === state.place ? "true" : null}, el("th", {scope: "row"}, el("button", {type: "button", class: "link", onclick: () => { state.place = state.where[i]; scrubbed(); }}, state.where[i])),
        el("td", {}, num(a[i])), el("td", {}, num(b[i])), el("td", {}, signed(diff[i])))))));
  }

  function course() {
    const box = $("course");
    if (!state.place || !state.where.includes(state.place)) { box.replaceChildren(el("p", {class: "faint"}, "Choose a place in a map or in the table to see its course in both runs.")); return; }
    const series = [["A", state.a], ["B", state.b]].filter(([, g]) => g.at.has(state.place)).map(([name, g], i) => ({name: `${name}: ${name === "A" ? D.a : D.b}`, x: g.steps, y: page.line(g, g.at.get(state.place)), color: name === "A" ? 0 : 1, dashed: i === 1}));
    const [lo, hi] = page.range(series.flatMap(s => s.y)), log = lo > 0 && hi / lo > 50;
    box.replaceChildren(page.chart({title: `${state.place}, ${state.measure}`, x: "step", y: log ? "logarithmic" : "value", log, height: 200, series}));
  }

  const remember = page.later(() => {
    const query = new URLSearchParams({a: D.a, b: D.b, measure: state.measure});
    if (state.index < state.steps.length - 1) query.set("step", state.step);
    if (state.place) query.set("where", state.place);
    history.replaceState(null, "", "?" + query);
  }, 400);
  const go = i => { i = Math.min(Math.max(i, 0), state.steps.length - 1); if (i !== state.index && state.steps.length) { state.index = i; scrubbed(); } };
  const slider = $("slider"), keys = {ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity};
  slider.addEventListener("input", () => { if (state.steps.length) { go(page.nearest(state.steps, Number(slider.value))); slider.value = state.step; } });
  slider.addEventListener("keydown", e => { if (keys[e.key] !== undefined && !e.altKey && !e.ctrlKey && !e.metaKey) { e.preventDefault(); go(state.index + keys[e.key]); } });
  document.addEventListener("keydown", e => { if (e.target === document.body && (e.key === "ArrowLeft" || e.key === "ArrowRight") && !e.altKey && !e.ctrlKey && !e.metaKey) { e.preventDefault(); go(state.index + keys[e.key]); } });
  for (const b of document.querySelectorAll("[data-go]")) b.addEventListener("click", () => go(state.index + {first: -Infinity, back: -1, on: 1, last: Infinity}[b.dataset.go]));
  $("strips").addEventListener("click", e => { if (state.steps.length) go(page.nearest(state.steps, axis.step(e.clientX - $("timeline").getBoundingClientRect().left))); });
  $("measure").addEventListener("change", e => { state.measure = e.target.value; load(); });
  page.whenWidthChanges($("timeline").parentElement, () => { drawTime(); scrubbed(); });
  const refresh = page.later(load, 3000);
  page.live("/data/events", e => { if ((e.run === D.a || e.run === D.b) && e.kind === "analyzed") refresh(); }, refresh);
  const loadScalars = async () => { try { scalars = await Promise.all([D.a, D.b].map(run => page.fetchJSON(`/data/runs/${encodeURIComponent(run)}/scalars`))); drawTime(); scrubbed(); } catch (e) { $("problem").textContent = e.message; $("problem").hidden = false; } };
  if (state.measure) load(); else $("at").textContent = "no measure in common";
  loadScalars();
}
