// The heads of one report: map, table, details. Data: see html_data.go.
{
  const {el, num, signed, data: D} = page;
  const name = h => `L${h.l}H${h.h}`;
  const kvOf = new Map(D.kv.map((k, i) => [k.l + ":" + k.k, i])), layerOf = new Map(D.layers.map((l, i) => [l.l, i]));
  // Every measure, with where to find its value for a head.
  const measures = [
    ...D.measures.head.map((m, i) => ({...m, per: "head", of: h => D.heads[h].m[i]})),
    ...D.measures.kv.map((m, i) => ({...m, per: "KV head", of: h => D.kv[kvOf.get(D.heads[h].l + ":" + D.heads[h].k)]?.m[i], own: k => D.kv[k].m[i]})),
    ...D.measures.layer.map((m, i) => ({...m, per: "layer", of: h => D.layers[layerOf.get(D.heads[h].l)]?.m[i], own: l => D.layers[l].m[i]})),
  ];
  const byName = new Map(measures.map(m => [m.n, m]));
  // A value is 0 (absent) or [value, null mean, null sd, z, bound], cut after the last that is there.
  const value = v => v ? v[0] : undefined, nullOf = v => v ? v[1] ?? undefined : undefined;
  const sd = v => v ? v[2] ?? undefined : undefined, z = v => v ? v[3] ?? undefined : undefined;
  const diff = v => nullOf(v) === undefined ? undefined : v[0] - v[1];
  const nullText = v => nullOf(v) === undefined ? "none" : num(v[1]) + (sd(v) ? " ± " + num(v[2], 2) : "");
  const findings = new Map();
  for (const f of D.findings) findings.set(f.w, [...(findings.get(f.w) || []), f]);
  const findingsOf = h => [...(findings.get(name(h)) || []), ...(findings.get(`L${h.l}KV${h.k}`) || []), ...(findings.get(`L${h.l}`) || [])];

  const state = {measure: byName.get("attention.sink") || measures[0], show: "value", head: 0};
  if (D.heads.length && state.measure) start();

  function start() {
    const map = makeMap(), table = makeTable();
    const pick = (h, move) => {
      state.head = h;
      map.select(h);
      table.select(h);
      detail(h);
      history.replaceState(null, "", "#" + name(D.heads[h]));
      const box = document.getElementById("detail");
      if (move || box.getBoundingClientRect().top > innerHeight - 80) box.scrollIntoView({block: "start"});
    };
    state.pick = pick;
    const byId = new Map(D.heads.map((h, i) => [name(h), i]));
    for (const b of document.querySelectorAll("[data-head]")) b.addEventListener("click", () => { if (byId.has(b.dataset.head)) { pick(byId.get(b.dataset.head), true); document.getElementById("detail").focus({preventScroll: true}); } });
    const first = byId.get(location.hash.slice(1)) ?? byId.get(D.first) ?? 0;
    state.head = first;
    map.select(first);
    map.draw();
    table.select(first);
    detail(first);
    layers();
    kv();
    docs();
  }

  function makeMap() {
    const uniq = f => [...new Set(D.heads.map(f))].sort((a, b) => a - b);
    const cols = uniq(h => h.l), rows = uniq(h => h.h);
    const at = new Map(D.heads.map((h, i) => [h.l + ":" + h.h, i]));
    const readout = el("p", {class: "readout"}), hint = el("p", {class: "faint small"});
    const map = page.heatmap({label: "heads by layer; arrow keys move, Enter opens a head", rows, cols, corner: "H\\L",
      cell: (y, x) => at.get(cols[x] + ":" + rows[y]), pick: h => state.pick(h),
      point: h => { readout.textContent = say(h ?? state.head); }});
    const say = h => {
      const m = state.measure, v = m.of(h);
      const owner = m.per === "KV head" ? ` (KV head ${D.heads[h].k})` : m.per === "layer" ? ` (layer ${D.heads[h].l})` : "";
      if (!v) return `${name(D.heads[h])}${owner}: ${m.n} has no value`;
      return `${name(D.heads[h])}${owner}: ${m.n} ${num(v[0])}${unit(m)}, null ${nullText(v)}` +
        (nullOf(v) === undefined ? "" : `, difference ${signed(diff(v))}`) + (z(v) === undefined ? "" : `, z ${signed(z(v))}`);
    };
    const select = el("select", {id: "measure", onchange: e => { state.measure = byName.get(e.target.value); draw(); state.columns?.(); }},
      ["head", "KV head", "layer"].map(per => {
        const list = measures.filter(m => m.per === per);
        return list.length ? el("optgroup", {label: "per " + per}, list.map(m => el("option", {value: m.n, selected: m === state.measure}, m.n))) : null;
      }));
    const radio = (show, label) => el("label", {}, el("input", {type: "radio", name: "show", value: show, checked: show === state.show, onchange: () => { state.show = show; draw(); }}), " " + label);
    const radios = el("fieldset", {"aria-label": "what the colors show"}, radio("value", "value"), radio("diff", "difference from the null"), radio("z", "z"));
    const draw = () => {
      const m = state.measure, has = {value: true, diff: D.heads.some((_, h) => diff(m.of(h)) !== undefined), z: D.heads.some((_, h) => z(m.of(h)) !== undefined)};
      for (const r of radios.querySelectorAll("input")) r.disabled = !has[r.value];
      const show = has[state.show] ? state.show : "value";
      radios.querySelector(`[value=${show}]`).checked = true;
      const get = {value, diff, z}[show], values = h => get(m.of(h)) ?? NaN;
      let [lo, hi] = page.range(D.heads.map((_, h) => values(h)));
      let kind = "linear", palette = page.palettes.viridis;
      if (show === "value") {
        if (lo >= 0 && hi <= 1 && hi > 0.3) { lo = 0; hi = 1; } // shares keep one scale
        else if (lo > 0 && hi / lo > 50) kind = "log";
      }
      else { hi = Math.max(Math.abs(lo), Math.abs(hi)) || 1; lo = -hi; palette = page.palettes.diverging; if (show === "z") kind = "signed"; }
      const why = !has.z ? ` · no z: ${m.nn || m.nz || "the null has no spread"}` : "";
      map.paint({values, text: say, scale: page.scale(lo, hi, kind), palette,
        unit: `${m.n}, ${{value: "value", diff: "difference from the null", z: "z"}[show]}${show === "z" ? "" : unit(m)}${kind === "linear" ? "" : ", logarithmic"}${why}`});
      hint.textContent = m.s || "";
      readout.textContent = say(state.head);
    };
    document.getElementById("map").append(el("div", {class: "controls"}, el("label", {}, "Measure ", select), radios), hint, map.element, map.legend, readout);
    return {...map, draw};
  }

  function unit(m) { return m.u && m.u !== "1" ? " " + m.u : ""; }

  function makeTable() {
    const usual = ["attention.sink", "attention.entropy", "attention.previous", "attention.induction", "attention.max_logit", "energy.k90", "energy.top20", "channel.key_ipr", "key.incoherence", "overlap.max", "output.share"];
    const columns = () => [{name: "head", text: true}, ...[...new Set([state.measure.n, ...usual])].filter(n => byName.has(n)).map(n => ({name: n, title: byName.get(n).s})), {name: "findings", text: true}];
    const codes = D.heads.map(h => [...new Set(findingsOf(h).map(f => f.c))].join(", "));
    const table = page.table({caption: "heads", columns: columns(), rows: D.heads.map((_, i) => i), limit: 40,
      filter: "Filter by head or finding", match: (h, words) => words.split(/\s+/).every(w => (name(D.heads[h]) + " " + codes[h]).toLowerCase().includes(w)),
      value: (h, c) => c.name === "head" ? D.heads[h].l * 1e5 + D.heads[h].h : c.name === "findings" ? codes[h] : value(byName.get(c.name).of(h)),
      text: (h, c) => c.name === "head" ? name(D.heads[h]) : c.name === "findings" ? codes[h] : num(value(byName.get(c.name).of(h))),
      pick: h => state.pick(h)});
    state.columns = () => table.refresh(columns());
    document.getElementById("table").append(table.element);
    return table;
  }

  // about is what a measure means, in paragraphs.
  function about(m) {
    return [m.s, m.f, m.r && "Range: " + m.r, m.nu && "Null: " + m.nu, m.nn && "No null: " + m.nn, m.g, m.src && "Source: " + m.src].filter(Boolean).map(t => el("p", {class: "small faint"}, t));
  }

  function doc(m) {
    return el("details", {}, el("summary", {}, m.n, el("span", {class: "faint"}, unit(m))), about(m));
  }

  // alike shows the cosines between the energy fields of a layer's heads, alike
  // ones side by side, and the groups that they form.
  function alike(h) {
    const layer = D.layers.find(x => x.l === h.l);
    if (!layer || !layer.o) return [];
    const group = layer.g.find(g => g.includes(h.h)), label = k => `L${h.l}H${k}`;
    const parts = [el("h3", {}, `Heads of layer ${h.l} by their energy fields`),
      el("p", {class: "small"}, group ? `One group: ${group.map(label).join(", ")}; its fields differ little, so one of them may do for all.`
        : `${name(h)} shares its field with no other head.` + (layer.g.length ? ` Groups: ${layer.g.map(g => g.map(label).join(", ")).join("; ")}.` : ""))];
    if (!layer.c) return parts;
    const n = layer.o.length, at = id => [Math.floor(id / n), id % n], cosine = id => { const [y, x] = at(id), c = layer.c[y][x]; return c === null ? NaN : c / 100; };
    const text = id => { const [y, x] = at(id); return `${label(layer.o[y])} and ${label(layer.o[x])}: ${Number.isNaN(cosine(id)) ? "no value" : "cosine " + num(cosine(id))}`; };
    const readout = el("p", {class: "readout small", role: "status"});
    const say = id => { readout.textContent = id === undefined ? "" : text(id); };
    const map = page.heatmap({label: "cosines between energy fields", rows: layer.o, cols: layer.o, corner: "", cell: (y, x) => y * n + x, point: say,
      pick: id => { const other = D.heads.findIndex(x => x.l === h.l && x.h === layer.o[at(id)[1]]); if (other >= 0) state.pick(other, true); }});
    map.paint({values: cosine, text, scale: page.scale(-1, 1, "linear"), palette: page.palettes.diverging, unit: "cosine of E"});
    return [...parts, map.element, map.legend, readout];
  }

  // named is a measure's name that opens a row with its meaning below its own.
  function named(m) {
    const b = el("button", {type: "button", class: "open", "aria-expanded": "false", onclick: () => {
      const row = b.closest("tr"), open = b.getAttribute("aria-expanded") === "true";
      b.setAttribute("aria-expanded", String(!open));
      if (open) row.nextSibling.remove();
      else row.after(el("tr", {}, el("td", {colspan: 5, class: "about"}, about(m))));
    }}, m.n.replace(".", ".\u200b"));
    return [b, unit(m) ? el("span", {class: "faint"}, unit(m)) : null];
  }

  function numbers(list) {
    return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "measures"}, el("table", {},
      el("thead", {}, el("tr", {}, ["measure", "value", "null", "difference", "z"].map(t => el("th", {scope: "col"}, t)))),
      el("tbody", {}, list.map(([m, v]) => el("tr", {}, el("td", {}, named(m)),
        el("td", {title: v[4] === undefined ? null : "± " + num(v[4])}, num(v[0])), el("td", {}, nullText(v)), el("td", {}, diff(v) === undefined ? "–" : signed(diff(v))), el("td", {}, z(v) === undefined ? "–" : signed(z(v))))))));
  }

  function detail(i) {
    const h = D.heads[i], box = document.getElementById("detail");
    const parts = [el("h2", {id: "h-detail"}, name(h)), el("p", {class: "faint"}, `layer ${h.l}, head ${h.h}, KV head ${h.k}` +
      (h.o ? `; closest head of the layer: L${h.l}H${h.o[0]}, cosine ${num(h.o[1])}` : ""))];
    for (const f of findingsOf(h)) parts.push(el("p", {class: "finding small " + f.s}, el("span", {class: "tag " + f.s}, f.s === "info" ? "note" : f.s), " ", f.t));
    const n = h.s ? h.s.length : 0;
    if (n) {
      const x = D.at.slice(0, n).map(c => c + 1);
      const series = [{name: "this head", x, y: h.s, color: 0}];
      if (h.n) series.push({name: "null of the same ‖E‖", x: D.at.slice(0, h.n.length).map(c => c + 1), y: h.n, dashed: true, color: 1});
      parts.push(page.chart({title: "Spectrum of the energy field", x: "channel", y: "σ (logits)", log: true, height: 190, series}));
    }
    parts.push(...profile(h));
    parts.push(...alike(h));
    parts.push(el("h3", {}, "Measures of this head"), numbers(measures.filter(m => m.per === "head" && m.of(i)).map(m => [m, m.of(i)])));
    const kvs = measures.filter(m => m.per === "KV head" && m.of(i));
    if (kvs.length) parts.push(el("h3", {}, `Measures of its KV head ${h.k}`), numbers(kvs.map(m => [m, m.of(i)])));
    box.replaceChildren(...parts);
    box.scrollTop = 0;
  }

  function profile(h) {
    const p = h.p;
    if (!p) return D.noprofile ? [el("p", {class: "faint small"}, D.noprofile)] : [];
    const x = p.x || D.x, parts = [];
    const binned = x.length < D.tokens ? `; ${x.length} bins` : "";
    p.c.forEach((c, i) => parts.push(page.chart({title: `Channel ${i + 1}: ${num(100 * c.e)} % of the energy, σ ${num(c.s)}`, x: "token" + binned, y: "weight", height: 130, mirror: true, zero: true,
      series: [{name: "queries (up)", x, y: c.q.map(w => w / D.w), stems: true, color: 0}, {name: "keys (down)", x, y: c.k.map(w => -w / D.w), stems: true, color: 1}]})));
    if (p.why) parts.push(el("p", {class: "faint small"}, "Row statistics: " + p.why));
    if (p.a) parts.push(page.chart({title: "Rows of attention", x: "query token" + binned, y: "share", height: 130, unit: true,
      series: [{name: "entropy / ln n", x, y: p.a.map(w => w / D.w), color: 0}, {name: "mass on the first token", x, y: p.b.map(w => w / D.w), color: 1}]}));
    if (p.g) parts.push(page.chart({title: "Largest logit of a row", x: "query token" + binned, y: "logit", height: 130, series: [{name: "max logit", x, y: p.g, color: 2}]}));
    return parts;
  }

  function layers() {
    const box = document.getElementById("layers"), list = measures.filter(m => m.per === "layer");
    if (!list.length) { box.append(el("p", {class: "faint"}, "Nothing measured.")); return; }
    for (const m of list) {
      const rows = D.layers.map((l, i) => [l.l, value(m.own(i))]).filter(r => r[1] !== undefined);
      const [lo, hi] = page.range(rows.map(r => r[1])), log = lo > 0 && hi / lo > 50;
      if (rows.length) box.append(page.chart({title: m.n, x: "layer", y: log ? "logarithmic" : "value", height: 130, log, series: [{name: m.n, x: rows.map(r => r[0]), y: rows.map(r => r[1]), color: 0}]}));
    }
  }

  function kv() {
    const box = document.getElementById("kv"), list = measures.filter(m => m.per === "KV head");
    if (!list.length) { box.hidden = true; return; }
    const id = k => `L${k.l}KV${k.k}`;
    box.addEventListener("toggle", () => {
      if (box.children.length > 1) return;
      box.append(page.table({caption: "KV heads", limit: 40, columns: [{name: "KV head", text: true}, ...list.flatMap(m => [{name: m.n, m, get: value}, ...(D.kv.some((_, k) => z(m.own(k)) !== undefined) ? [{name: m.n + " z", m, get: z}] : [])])],
        rows: D.kv.map((_, i) => i), filter: "Filter by KV head", match: (k, words) => id(D.kv[k]).toLowerCase().includes(words),
        value: (k, c) => c.m ? c.get(c.m.own(k)) : D.kv[k].l * 1e5 + D.kv[k].k, text: (k, c) => c.m ? num(c.get(c.m.own(k))) : id(D.kv[k])}).element);
    });
  }

  function docs() { document.getElementById("docs").append(...measures.map(m => doc(m))); }
}
