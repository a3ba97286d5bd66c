// chart draws series over a common axis as a figure; pointing at it reads values.
// options: title, x, y (axis names with units), log, height, zero (start at 0),
// mirror (labels without sign), series: [{name, x, y, dashed, stems, color}].
page.chart = o => {
  const {el, num} = page;
  const W = 460, H = o.height || 150, L = 52, R = 8, T = 6, B = 34;
  const ok = v => Number.isFinite(v) && (!o.log || v > 0);
  let [x0, x1] = page.range(o.series.flatMap(s => s.x));
  let [y0, y1] = page.range(o.series.flatMap(s => s.y.filter(ok)));
  if (o.zero) { y0 = Math.min(y0, 0); y1 = Math.max(y1, 0); }
  if (o.unit) { y0 = 0; y1 = Math.max(y1, 1); }
  if (!(y1 > y0)) { const d = o.log ? y0 / 2 : Math.max(Math.abs(y0) / 2, 0.5); y0 -= d; y1 += d; }
  if (!(x1 > x0)) { x0 -= 0.5; x1 += 0.5; }
  const xs = page.scale(x0, x1, "linear"), ys = page.scale(y0, y1, o.log ? "log" : "linear");
  const px = x => L + (W - L - R) * xs.at(x), py = y => H - B - (H - T - B) * ys.at(y);
  const svg = el("svg", {class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": describe(o)});
  for (const v of page.ticks(ys, Math.max(4, Math.floor(H / 38)))) {
    svg.append(el("line", {class: "grid", x1: L, x2: W - R, y1: py(v), y2: py(v)}),
      el("text", {x: L - 5, y: py(v) + 4, "text-anchor": "end"}, num(o.mirror ? Math.abs(v) : v)));
  }
  const whole = o.series.every(s => s.x.every(Number.isInteger)); // layers, heads, tokens: no ticks between them
  for (const v of page.ticks(xs, 6).filter(v => !whole || Math.abs(v - Math.round(v)) < 1e-9)) svg.append(el("text", {x: px(v), y: H - B + 14, "text-anchor": "middle"}, num(v)));
  svg.append(el("path", {class: "axis", d: `M${L} ${T}V${H - B}H${W - R}`}),
    el("text", {class: "name", x: (L + W - R) / 2, y: H - 5, "text-anchor": "middle"}, o.x),
    el("text", {class: "name", x: 11, y: (T + H - B) / 2, "text-anchor": "middle", transform: `rotate(-90 11 ${(T + H - B) / 2})`}, o.y));
  const color = (s, i) => `var(--s${s.color ?? i})`;
  o.series.forEach((s, i) => {
    let d = "", pen = false;
    s.y.forEach((y, j) => {
      if (!ok(y)) { pen = false; return; }
      const x = px(s.x[j]).toFixed(1), v = py(y).toFixed(1);
      if (s.stems) { if (y !== 0) d += `M${x} ${py(0).toFixed(1)}V${v}`; return; }
      d += (pen ? "L" : "M") + x + " " + v + (pen ? "" : "h0.1");
      pen = true;
    });
    svg.append(el("path", {d, fill: "none", stroke: color(s, i), "stroke-width": 1.6, "stroke-dasharray": s.dashed ? "5 3" : null}));
  });
  const cursor = el("line", {class: "cursor", y1: T, y2: H - B, visibility: "hidden"}), out = el("output", {"aria-hidden": true});
  svg.append(cursor);
  svg.addEventListener("pointermove", e => {
    const box = svg.getBoundingClientRect();
    const at = x0 + (x1 - x0) * Math.min(Math.max(((e.clientX - box.left) * W / box.width - L) / (W - L - R), 0), 1);
    const near = s => s.x.reduce((best, x, j) => Math.abs(x - at) < Math.abs(s.x[best] - at) ? j : best, 0);
    const shown = o.series.filter(s => s.x.length);
    if (!shown.length) return;
    const x = shown[0].x[near(shown[0])];
    cursor.setAttribute("x1", px(x)); cursor.setAttribute("x2", px(x)); cursor.setAttribute("visibility", "visible");
    out.textContent = `${o.x} ${o.names ? o.names(x) : x}: ` + shown.map(s => `${s.name} ${num(o.mirror ? Math.abs(s.y[near(s)]) : s.y[near(s)])}`).join(", ");
  });
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); out.textContent = ""; });
  const keys = o.series.length > 1 ? o.series.map((s, i) => el("span", {class: "key"}, el("i", {class: s.dashed ? "dashed" : null, style: `border-color: ${color(s, i)}`}), s.name)) : [];
  return el("figure", {}, el("figcaption", {}, o.title, keys), svg, out);

  function describe(o) {
    return `${o.title}. ` + o.series.map(s => { const [lo, hi] = page.range(s.y.filter(ok)); return `${s.name}: ${s.y.length} points from ${num(lo)} to ${num(hi)}`; }).join("; ");
  }
};
