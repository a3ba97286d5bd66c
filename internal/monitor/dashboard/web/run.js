// The page of one run.
if (page.data?.page === "run") {
  const {el, num, signed, data: D} = page, $ = id => document.getElementById(id);
  const state = {measure: D.measure, show: D.show, sample: D.sample, step: D.step, where: D.where, follow: D.step === null, grid: undefined, shown: undefined, levels: undefined, index: -1, place: undefined};
  const axis = page.timeAxis();
  let scalars = {steps: [], series: []}, alerts = D.alerts, strips = [], memo = {}, map, mapPlaces = "", request = 0;
  const open = (a, step) => a.step <= step && (a.recovered === undefined || a.recovered > step);
  const count = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;
  const value = v => num(Number.isNaN(v) ? null : v);
  const spaced = v => String(v).replace(/\B(?=(\d{3})+$)/g, "\u202f");

  // load fetches the grid of the chosen measure and draws everything anew.
  async function load() {
    const mine = ++request;
    try {
      const grid = await page.loadGrid(D.run, state.measure, state.sample);
      if (mine !== request) return; // another measure was chosen meanwhile
      take(grid);
      $("problem").hidden = true;
    } catch (e) { if (mine === request) problem(e); }
  }
  function problem(e) { $("problem").textContent = `This could not be read: ${e.message}`; $("problem").hidden = false; }

  function take(grid) {
    state.grid = grid;
    recolor();
    if (state.follow || state.step === null) state.index = grid.S - 1;
    else if (grid.S) state.index = page.nearest(grid.steps, state.step);
    if (state.index >= grid.S) state.index = grid.S - 1;
    if (grid.S) state.step = grid.steps[state.index];
    if (state.place === undefined || grid.where[state.place] !== state.where) state.place = grid.at.get(state.where);
    if (!state.where && grid.S) { const first = ranking()[0]; if (first) { state.place = first.p; state.where = grid.where[first.p]; } } // somebody must be looked at first
    $("thinned").hidden = grid.by === 1;
    $("thinned").textContent = `${spaced(grid.total)} snapshots are too many to draw: every ${grid.by}th is shown, and those of alerts.`;
    const m = D.measures.find(m => m.n === grid.measure);
    $("about").replaceChildren(...(m ? [m.s + " ", el("details", {}, el("summary", {class: "small"}, "more about " + m.n), [m.f, m.r && "Range: " + m.r, m.nu && "Null: " + m.nu, m.nn && "No null: " + m.nn, m.g].filter(Boolean).map(t => el("p", {class: "small"}, t)))] : []));
    drawTime();
    drawMap();
    scrubbed();
  }
  function recolor() {
    state.shown = page.shown(state.grid, state.show);
    state.levels = page.levels(state.shown.values, state.shown.scale);
  }

  // drawTime draws what lies over the steps: scalars, alerts, the picture.
  function drawTime() {
    const grid = state.grid, box = $("timeline");
    axis.width = Math.max(box.parentElement.clientWidth, 200);
    axis.L = axis.width < 560 ? 44 : 56;
    const ends = [];
    if (grid?.S) ends.push(grid.steps[0], grid.steps[grid.S - 1]);
    if (scalars.steps.length) ends.push(scalars.steps[0], scalars.last);
    [axis.lo, axis.hi] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
    const slider = $("slider");
    slider.style.marginLeft = axis.L - 8 + "px";
    slider.style.width = axis.width - axis.L - axis.R + 16 + "px";
    slider.min = axis.lo;
    slider.max = axis.hi;
    $("lane").replaceChildren(page.alertLane(alerts, axis, jump));
    strips = scalars.series.slice(0, 3).map(s => page.strip({name: s.name, series: [{steps: scalars.steps, ...s, name: ""}]}, axis));
    $("strips").replaceChildren(...strips.map(s => s.element));
    drawMore();
    if (grid) drawPicture();
    $("steps").replaceChildren(page.stepAxis(axis));
    $("timeline").hidden = !ends.length;
    moveCursor();
  }
  function drawMore() {
    const rest = scalars.series.slice(3), box = $("more");
    box.hidden = !rest.length;
    box.firstElementChild.textContent = `${count(rest.length, "more scalar")}`;
    const more = box.open ? rest.map(s => page.strip({name: s.name, series: [{steps: scalars.steps, ...s, name: ""}]}, axis)) : [];
    strips.push(...more);
    $("morestrips").replaceChildren(...more.map(s => s.element));
  }
  function drawPicture() {
    const canvas = $("picture");
    page.picture(canvas, {grid: state.grid, levels: state.levels, palette: state.shown.palette, axis, selected: state.place, memo});
    canvas.setAttribute("aria-label", `${state.grid.measure}: ${count(state.grid.P, "place")} over ${count(state.grid.S, "snapshot")}. The heat map beside it shows the same values at the chosen step.`);
  }

  // drawMap draws layers × heads; its cells are made anew only for other places.
  function drawMap() {
    const grid = state.grid, places = grid.where.join();
    if (!map || places !== mapPlaces) {
      mapPlaces = places;
      const cols = [...new Set(grid.places.map(a => a.layer))].sort((a, b) => a - b), rows = [...new Set(grid.places.map(a => a.index))].sort((a, b) => a - b);
      const at = new Map(grid.places.map((a, p) => [a.layer + ":" + a.index, p]));
      const kind = grid.places[0]?.kind;
      map = page.heatmap({label: "places by layer; arrow keys move, Enter opens one", rows: kind === "L" ? [""] : rows, cols, corner: kind === "KV" ? "KV\\L" : kind === "L" ? "L" : "H\\L",
        cell: (y, x) => at.get(cols[x] + ":" + rows[y]), pick: p => pick(p), point: p => read(p ?? state.place)});
      $("map").replaceChildren(map.element, map.legend);
    }
    map.select(state.place);
  }
  function text(p) {
    const grid = state.grid, v = grid.values[state.index * grid.P + p], shown = state.shown.values[state.index * grid.P + p];
    const unit = grid.unit && grid.unit !== "1" ? " " + grid.unit : "";
    if (Number.isNaN(v)) return `${grid.where[p]}: no value`;
    return `${grid.where[p]}: ${num(v)}${unit}` + (state.show === "change" ? `, change ${signed(shown)}` : state.show === "peers" ? `, ${signed(shown)} spreads from its peers` : "");
  }
  function read(p) {
    const grid = state.grid;
    $("readout").textContent = p === undefined || !grid?.S ? "" : `${text(p)} (${grid.measure}, step ${spaced(grid.steps[state.index])})` + alerts.filter(a => a.where === grid.where[p] && open(a, grid.steps[state.index])).map(a => ` · ${a.severity}: ${a.code}`).join("");
  }

  // scrubbed shows another step.
  let frame;
  function scrubbed() {
    frame ??= requestAnimationFrame(() => {
      frame = undefined;
      const grid = state.grid;
      if (!grid?.S || !map) { $("at").textContent = "no snapshot yet"; return; }
      const s = state.index;
      map.paint({values: p => state.shown.values[s * grid.P + p], text, scale: state.shown.scale, palette: state.shown.palette, unit: state.shown.unit});
      read(state.place);
      moveCursor();
      if (document.documentElement.dataset.drawn) sickLater(); else sick();
      remember();
      panelLater();
      requestAnimationFrame(() => { document.documentElement.dataset.drawn ??= performance.now().toFixed(0); }); // after the frame that shows it
    });
  }
  function moveCursor() {
    const grid = state.grid;
    if (!grid?.S) return;
    const step = grid.steps[state.index], slider = $("slider");
    $("cursor").style.transform = `translateX(${axis.px(step)}px)`;
    slider.value = step;
    slider.setAttribute("aria-valuetext", `step ${step}, snapshot ${state.index + 1} of ${grid.S}`);
    $("at").textContent = `step ${spaced(step)} · ${state.index + 1} of ${grid.S}`;
    for (const s of strips) s.at(step);
  }
  function go(index, keep) {
    const grid = state.grid;
    if (!grid?.S) return;
    index = Math.min(Math.max(index, 0), grid.S - 1);
    if (!keep) state.follow = $("follow").checked = index === grid.S - 1 && state.follow;
    if (index === state.index) return;
    state.index = index;
    state.step = grid.steps[index];
    scrubbed();
  }

  // pick opens a place and goes to its panel where that is out of sight.
  function pick(p) {
    state.place = p;
    state.where = state.grid.where[p];
    map.select(p);
    drawPicture();
    read(p);
    sick();
    remember();
    page.panel.show(state);
    const box = $("panel"), top = box.getBoundingClientRect().top;
    if (top > innerHeight - 120) box.scrollIntoView({block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
  }
  // jump goes to the moment of an alert.
  function jump(a) {
    state.follow = $("follow").checked = false;
    state.step = a.step;
    state.where = a.where;
    state.place = undefined;
    if (a.measure && a.measure !== state.measure && D.measures.some(m => m.n === a.measure)) { choose(a.measure); return; }
    state.place = state.grid?.at.get(a.where);
    if (state.grid?.S) { state.index = page.nearest(state.grid.steps, a.step); drawPicture(); map.select(state.place); scrubbed(); }
  }
  function choose(measure) { state.measure = $("measure").value = measure; load(); }

  const remember = page.later(() => {
    const query = new URLSearchParams({measure: state.measure});
    if (state.sample) query.set("sample", state.sample);
    if (!state.follow && state.step !== null) query.set("step", state.step);
    if (state.where) query.set("where", state.where);
    if (state.show !== "value") query.set("show", state.show);
    history.replaceState(null, "", "?" + query);
  }, 400);
  const sickLater = page.later(() => { if (state.grid?.S) sick(); }, 90);
  const panelLater = page.later(() => page.panel.show(state), 130);

  // ranking lists the places that need a look at the chosen step: those with an open
  // alert, then those farthest from their peers.
  const rank = {info: 1, warn: 2, critical: 3}, rankOf = a => rank[a.severity] ?? 0;
  function ranking() {
    const grid = state.grid, step = grid.steps[state.index], far = page.outliers(grid, state.index), ill = new Map();
    for (const a of alerts) if (open(a, step) && grid.at.has(a.where)) ill.set(grid.at.get(a.where), [...(ill.get(grid.at.get(a.where)) || []), a]);
    for (const [p, list] of ill) { // one of each rule, the worst first
      list.sort((a, b) => rankOf(b) - rankOf(a));
      ill.set(p, list.filter((a, i) => list.findIndex(b => b.code === a.code) === i));
    }
    const worst = p => ill.has(p) ? rankOf(ill.get(p)[0]) : 0, distance = p => Number.isFinite(far[p]) ? Math.abs(far[p]) : -1;
    const list = grid.places.map((_, p) => p).filter(p => ill.has(p) || distance(p) > 3).sort((a, b) => worst(b) - worst(a) || distance(b) - distance(a)).slice(0, 10);
    return list.map(p => ({p, alerts: ill.get(p) || [], far: distance(p) > 3 ? far[p] : undefined, ill: worst(p) > 1}));
  }

  function sick() {
    const grid = state.grid, list = ranking(), box = $("sick");
    const focus = box.contains(document.activeElement) ? document.activeElement.dataset.where : undefined;
    $("sicknote").textContent = list.length ? "Heads with an open alert come first, then those more than three spreads from the median of their layer (dashed)." : "No alert is open at this step, and no place is more than three spreads from the median of its layer.";
    const head = el("tr", {}, ["where", "why", "over the run", "now"].map((t, i) => el("th", {scope: "col", style: i === 1 ? "text-align: left" : null}, t)));
    const row = r => el("tr", {"aria-selected": r.p === state.place ? "true" : null},
      el("th", {scope: "row"}, el("button", {type: "button", class: "link", "data-where": grid.where[r.p], onclick: () => pick(r.p)}, grid.where[r.p])),
      el("td", {class: "why"}, r.alerts.map(a => el("span", {class: "tag " + a.severity}, `${a.severity}: ${a.code} `)), r.far === undefined ? null : el("span", {class: "small"}, `${signed(r.far)} spreads`)),
      el("td", {}, sparkline(r.p, r.ill)), el("td", {}, value(grid.values[state.index * grid.P + r.p])));
    box.replaceChildren(...(list.length ? [el("table", {}, el("thead", {}, head), el("tbody", {}, list.map(row)))] : []));
    if (focus) box.querySelector(`[data-where="${CSS.escape(focus)}"]`)?.focus();
  }
  // sparkline draws a place and the median of its peers over the run.
  function sparkline(p, ill) {
    const grid = state.grid, W = 150, H = 30;
    if (!grid.sparks.has(p)) {
      const own = page.line(grid, p), peers = grid.P > 1 ? page.medianLine(grid, p) : [], [lo, hi] = page.range([...own, ...peers]);
      const scale = page.scale(lo, hi, lo > 0 && hi / lo > 50 ? "log" : "linear"), from = grid.steps[0], span = grid.steps[grid.S - 1] - from || 1;
      const x = s => W * (grid.steps[s] - from) / span, y = v => 1.5 + (H - 3) * (1 - scale.at(v));
      grid.sparks.set(p, {x, own: page.thinPath(own, x, y), peers: page.thinPath(peers, x, y), words: `${grid.where[p]} from ${num(own.find(Number.isFinite))} to ${num(own.findLast(Number.isFinite))}`});
    }
    const {x, own, peers, words} = grid.sparks.get(p), here = x(state.index).toFixed(1);
    return el("svg", {class: "spark", viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", "aria-label": words},
      el("path", {class: "peers", d: peers}), el("path", {class: ill ? "ill" : null, d: own}), el("line", {x1: here, x2: here, y1: 0, y2: H}));
  }

  // What the reader does.
  const slider = $("slider");
  slider.addEventListener("input", () => { state.follow = $("follow").checked = false; if (state.grid?.S) go(page.nearest(state.grid.steps, Number(slider.value)), true); slider.value = state.step; });
  const keys = {ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity};
  slider.addEventListener("keydown", e => { if (keys[e.key] !== undefined && !e.altKey && !e.ctrlKey && !e.metaKey) { e.preventDefault(); go(state.index + keys[e.key]); } });
  document.addEventListener("keydown", e => { // anywhere else that does not use arrows itself
    if (e.target !== document.body || e.altKey || e.ctrlKey || e.metaKey || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(e.key)) return;
    if ((e.key === "Home" || e.key === "End") && !e.shiftKey) return; // they scroll the page
    e.preventDefault();
    go(state.index + keys[e.key]);
  });
  for (const b of document.querySelectorAll("[data-go]")) b.addEventListener("click", () => go(state.index + {first: -Infinity, back: -1, on: 1, last: Infinity}[b.dataset.go]));
  $("follow").checked = state.follow;
  $("follow").addEventListener("change", e => { state.follow = e.target.checked; if (state.follow) go(Infinity, true); remember(); });
  $("measure").addEventListener("change", e => choose(e.target.value));
  $("show").addEventListener("change", e => { state.show = e.target.value; if (state.grid) { recolor(); drawPicture(); scrubbed(); } });
  $("samples")?.addEventListener("change", e => { state.sample = Number(e.target.value); load(); });
  $("more").addEventListener("toggle", () => { strips.length = Math.min(strips.length, 3); drawMore(); moveCursor(); });
  const where = e => {
    const canvas = $("picture"), box = canvas.getBoundingClientRect(), grid = state.grid;
    if (!grid?.S) return {};
    return {index: page.nearest(grid.steps, axis.step(e.clientX - box.left)), place: Math.min(Math.max(Math.floor((e.clientY - box.top) / box.height * grid.P), 0), grid.P - 1)};
  };
  const picture = $("picture");
  picture.addEventListener("pointermove", e => {
    const grid = state.grid, {index: s, place: p} = where(e);
    if (p !== undefined) $("picread").textContent = `${grid.where[p]}, step ${spaced(grid.steps[s])}: ${value(grid.values[s * grid.P + p])}`;
  });
  picture.addEventListener("pointerleave", () => { $("picread").textContent = ""; });
  picture.addEventListener("click", e => { const {index, place} = where(e); if (place !== undefined) { state.follow = $("follow").checked = false; go(index, true); pick(place); } });
  for (const id of ["strips", "morestrips"]) $(id).addEventListener("click", e => { if (state.grid?.S) { state.follow = $("follow").checked = false; go(page.nearest(state.grid.steps, axis.step(e.clientX - $("timeline").getBoundingClientRect().left)), true); } });
  document.addEventListener("click", e => { // a link to a moment of this run needs no reload
    const a = e.target.closest?.("a[data-moment]");
    if (!a || e.button || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    jump({step: Number(a.dataset.step), where: a.dataset.where, measure: a.dataset.measure});
    $("tools").scrollIntoView({block: "start"});
  });
  let playing;
  $("play").addEventListener("click", () => {
    const stop = () => { clearInterval(playing); playing = undefined; $("play").setAttribute("aria-pressed", "false"); };
    if (playing) { stop(); return; }
    $("play").setAttribute("aria-pressed", "true");
    if (state.index >= state.grid?.S - 1) go(0);
    playing = setInterval(() => { if (state.index >= state.grid.S - 1) stop(); else go(state.index + Math.ceil(state.grid.S / 300)); }, 80);
  });
  page.choose = choose;

  // What the server tells.
  const newColumns = page.later(async () => {
    const old = state.grid;
    if (!state.measure) { location.reload(); return; } // the first snapshot brings the measures
    if (!old?.S) { load(); refreshHead(); return; }
    try {
      const more = await page.loadGrid(D.run, state.measure, state.sample, old.steps[old.S - 1]);
      if (state.grid !== old) return;
      const whole = more.S ? page.joinGrid(old, more) : old;
      if (!whole || more.by !== 1) load(); else if (more.S) take(whole);
    } catch (e) { problem(e); }
    refreshHead();
  }, 500);
  const newScalars = page.later(loadScalars, 1500);
  const newAlerts = page.later(loadAlerts, 300);
  const reload = page.later(load, 700);
  async function loadScalars() {
    try { scalars = await page.fetchJSON(`/data/runs/${encodeURIComponent(D.run)}/scalars`); drawTime(); } catch (e) { problem(e); }
  }
  async function loadAlerts() {
    try {
      const answer = await page.fetchJSON(`/data/runs/${encodeURIComponent(D.run)}/alerts`);
      const known = new Set(alerts.map(a => a.id));
      alerts = answer.list;
      page.piece($("alerts"), answer.html);
      page.ages($("alerts"));
      const fresh = alerts.filter(a => !known.has(a.id));
      if (fresh.length) page.say(fresh.slice(0, 3).map(a => `New alert, ${a.severity}: ${a.text}`).join(" "));
      document.title = (answer.open ? `(${answer.open}) ` : "") + D.run + " · eigenhead";
      drawTime();
      scrubbed();
      page.panel.show(state);
    } catch (e) { problem(e); }
  }
  async function refreshHead() {
    try { const answer = await page.fetchJSON(`/data/runs/${encodeURIComponent(D.run)}/head`); page.piece($("facts"), answer.html); page.ages($("facts")); } catch (e) { problem(e); }
  }
  page.live(`/data/events?run=${encodeURIComponent(D.run)}`, e => {
    if (e.kind === "analyzed") { if (state.grid?.S && e.step <= state.grid.steps[state.grid.S - 1]) reload(); else newColumns(); } // several workers finish in any order
    else if (e.kind === "scalars") newScalars();
    else if (e.kind === "alert" || e.kind === "recovered") newAlerts();
  }, () => { load(); newScalars(); newAlerts(); refreshHead(); });
  page.whenThemeChanges(() => { if (state.grid) drawPicture(); });
  page.whenWidthChanges($("timeline").parentElement, drawTime);

  if (state.measure) load(); else $("at").textContent = "no snapshot yet";
  loadScalars();
}
