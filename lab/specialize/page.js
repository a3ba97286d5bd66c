// The pictures of lab specialize. Data: see html.go.
{
  const {el, num, data: D} = page;
  const at = id => document.getElementById(id);
  const log = list => list.map(t => t > 0 ? Math.log10(t) : NaN);
  const time = x => "t = " + num(10 ** x);
  // cut leaves out the first moments, before anything can happen: they would fill half of a log axis.
  const cut = run => { const from = run.t.findIndex(t => t >= run.t[run.t.length - 1] / 3000 && t > 0); return list => list.slice(Math.max(from, 1)); };

  const losses = at("losses");
  if (losses && D.runs.length) {
    losses.append(
      page.chart({title: "Loss above the Bayes risk", x: "log₁₀ t", y: "loss − Bayes", log: true, height: 200, names: time,
        series: D.runs.map(r => { const c = cut(r); return {name: r.name, x: log(c(r.t)), y: c(r.loss).map(v => v - r.bayes), dashed: r.dashed}; })}),
      page.chart({title: "Specialization: 0 all heads alike, 1 heads cancel", x: "log₁₀ t", y: "1 − |mean m|²/mean |m|²", unit: true, height: 200, names: time,
        series: D.runs.map(r => { const c = cut(r); return {name: r.name, x: log(c(r.t)), y: c(r.spec), dashed: r.dashed}; })}));
  }
  D.runs.forEach((r, i) => {
    const c = cut(r), x = log(c(r.t));
    at("run" + i).append(...r.m.map((heads, f) => page.chart({title: `m on feature ${f + 1}`, x: "log₁₀ t", y: `m, feature ${f + 1}`, names: time, height: 170,
      series: heads.map((y, h) => ({name: "head " + (h + 1), x, y: c(y), color: h % 7, dashed: h >= 7}))})));
    const top = Math.max(...r.chosen.flatMap(s => s.r.flat().map(Math.abs)), 1e-9);
    const readout = el("p", {class: "readout"}, "r at chosen times; point at a cell to read it");
    const maps = r.chosen.map((s, k) => matrix(`t = ${num(s.t)}`, s.r, s.r.map((_, h) => h + 1), top, "r", text => { readout.textContent = text; }, k === r.chosen.length - 1));
    at(`run${i}-r`).before(readout);
    at(`run${i}-r`).append(...maps);
  });

  // matrix draws a square matrix of signed values.
  function matrix(title, values, names, top, unit, say, legend = true) {
    const n = values.length, text = id => `${unit}(${names[Math.floor(id / n)]}, ${names[id % n]}) = ${num(values[Math.floor(id / n)][id % n])}`;
    const map = page.heatmap({label: title, rows: names, cols: names, cell: (y, x) => y * n + x, pick: id => say(`${title}: ${text(id)}`),
      point: id => { if (id !== undefined) say(`${title}: ${text(id)}`); }});
    map.paint({values: id => values[Math.floor(id / n)][id % n], text, scale: page.scale(-top, top, "linear"), palette: page.palettes.diverging, unit});
    return el("div", {}, el("p", {}, title), map.element, legend ? map.legend : null);
  }

  const prune = at("prune");
  const pruned = D.runs.filter(r => r.pruned && r.pruned.length > 1);
  if (prune && pruned.length) {
    const curve = (title, pick) => page.chart({title, x: "heads removed", y: "loss", height: 200,
      series: pruned.filter(r => pick(r.pruned[1]) !== undefined && pick(r.pruned[1]) !== null).map(r => ({name: r.name, x: r.pruned.map(s => s.removed), y: r.pruned.map(s => pick(s) ?? s.mean), dashed: r.dashed}))});
    prune.append(curve("One head after the other", s => s.mean));
    if (pruned.some(r => r.pruned[1].best !== undefined)) prune.append(curve("The best subset of each size", s => s.best));
    if (pruned.some(r => r.pruned[1].reoptimized !== undefined)) prune.append(curve("Trained on after each removal", s => s.reoptimized));
  }

  const floors = at("floors");
  if (floors) {
    const f = D.floors, x = f.snr.map(Math.log10);
    floors.append(page.chart({title: "Least loss", x: "log₁₀ ν", y: "loss", height: 220, zero: true, names: v => "ν = " + num(10 ** v),
      series: [...f.curves.map(c => ({name: c.name, x, y: c.loss})), {name: "softmax floor", x, y: x.map(() => f.floor), dashed: true}]}));
  }

  for (const d of (D.diagrams || []).filter(d => d.axes.length === 1)) {
    const cells = d.cells.filter(c => c.done && !c.reason), wide = cells.length > 1 && cells[0].x > 0 && cells[cells.length - 1].x / cells[0].x >= 50;
    const x = cells.map(c => wide ? Math.log10(c.x) : c.x), name = (wide ? "log₁₀ " : "") + d.axes[0].name;
    at("phase").classList.replace("maps", "charts");
    at("phase").append(page.chart({title: d.model + ": loss", x: name, y: "loss", zero: true, height: 190, names: v => num(wide ? 10 ** v : v),
      series: [{name: "loss", x, y: cells.map(c => c.loss)}, {name: "Bayes risk", x, y: cells.map(c => c.bayes), dashed: true}]}),
    page.chart({title: d.model + ": what the heads did", x: name, y: "count", zero: true, height: 190, names: v => num(wide ? 10 ** v : v),
      series: [{name: "features on which heads split", x, y: cells.map(c => c.split)}, {name: "heads that differ", x, y: cells.map(c => c.distinct)}]}));
  }
  for (const d of (D.diagrams || []).filter(d => d.axes.length === 2)) {
    const xs = d.axes[0].values, ys = d.axes[1].values, say = text => { at("phase-readout").textContent = text; };
    const cellAt = (y, x) => (ys.length - 1 - y) * xs.length + x;
    const name = c => `${d.model}, ${d.axes[0].name} ${num(c.x)}, ${d.axes[1].name} ${num(c.y)}: ` +
      (c.reason || (c.done ? `${c.phase}, loss ${num(c.loss)} (Bayes ${num(c.bayes)}), split on ${c.split} features, ${c.distinct} heads differ` : "not done"));
    const show = (title, of, unit) => {
      const map = page.heatmap({label: title, rows: [...ys].reverse().map(v => num(v)), cols: xs.map(v => num(v)), cell: cellAt, pick: id => say(name(d.cells[id])),
        point: id => { if (id !== undefined) say(name(d.cells[id])); }});
      const values = id => d.cells[id].done && !d.cells[id].reason ? of(d.cells[id]) : NaN;
      const [lo, hi] = page.range(d.cells.map((_, i) => values(i)));
      map.paint({values, text: id => name(d.cells[id]), scale: page.scale(lo, hi > lo ? hi : lo + 1, "linear"), palette: page.palettes.viridis, unit});
      return el("div", {}, el("p", {}, `${d.model}: ${title}`), map.element, map.legend);
    };
    at("phase").append(show("loss − Bayes", c => c.loss - c.bayes, "loss − Bayes"), show("features on which heads split", c => c.split, "features"),
      show("heads that differ", c => c.distinct, "heads"));
    at("phase-readout").textContent = `Across: ${d.axes[0].name}; up: ${d.axes[1].name}. Point at a cell to read it.`;
  }

  if (at("overlap")) {
    const say = text => { at("overlap-readout").textContent = text; };
    at("overlap").append(...D.overlaps.map(o => matrix(o.name, o.order.map(i => o.order.map(j => o.cosines[i][j])), o.order.map(i => o.heads[i].replace(/^.*[H ]/, "")), 1, "cosine", say)));
  }
}
