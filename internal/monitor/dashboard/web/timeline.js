// The timeline: everything over training steps, on one axis, with one cursor.

// timeAxis maps steps to pixels of an element that is as wide as the timeline.
page.timeAxis = () => {
  const axis = {L: 56, R: 12, lo: 0, hi: 1, width: 600};
  axis.px = step => axis.L + (axis.width - axis.L - axis.R) * (axis.hi > axis.lo ? (step - axis.lo) / (axis.hi - axis.lo) : 0.5);
  axis.step = px => axis.lo + (axis.hi - axis.lo) * Math.min(Math.max((px - axis.L) / (axis.width - axis.L - axis.R), 0), 1);
  return axis;
};

// strip draws series of scalars: {name, series: [{steps, lo, hi, bad, name}]}. A
// series has the least and the largest value of each part of the run, null where
// there is none; bad are steps whose value is no finite number.
page.strip = (o, axis) => {
  const {el, num} = page;
  const narrow = axis.width < 560, T = narrow ? 29 : 16, H = (o.height || 76) + (narrow ? 13 : 0), B = 4; // narrow: the value below the name
  const all = o.series.flatMap(s => [s.lo, s.hi]).flat().filter(v => v !== null);
  let [lo, hi] = page.range(all);
  const log = lo > 0 && hi / lo > 30;
  if (!(hi > lo)) { const d = Math.abs(lo) / 2 || 0.5; lo -= d; hi += d; }
  const scale = page.scale(lo, hi, log ? "log" : "linear");
  const py = v => H - B - (H - T - B) * scale.at(v);
  const label = `${o.name}: ` + o.series.map(s => `${s.name ? s.name + " " : ""}${s.steps.length} points from ${num(page.range(s.lo.filter(v => v !== null))[0])} to ${num(page.range(s.hi.filter(v => v !== null))[1])}` + (s.bad.length ? `, ${s.bad.length} not finite` : "")).join("; ");
  const svg = el("svg", {class: "strip", width: axis.width, height: H, viewBox: `0 0 ${axis.width} ${H}`, role: "img", "aria-label": label});
  let last = Infinity;
  for (const v of page.ticks(scale, 3).sort((a, b) => a - b)) {
    const y = py(v);
    svg.append(el("line", {class: "grid", x1: axis.L, x2: axis.width - axis.R, y1: y, y2: y}));
    if (last - y > 12 && y > T - 3) { svg.append(el("text", {x: axis.L - 5, y: y + 4, "text-anchor": "end"}, num(v))); last = y; }
  }
  o.series.forEach((s, k) => {
    let d = "", pen = false;
    s.steps.forEach((step, i) => {
      if (s.lo[i] === null) { pen = false; return; }
      const x = axis.px(step).toFixed(1), a = py(s.lo[i]).toFixed(1), b = py(s.hi[i]).toFixed(1);
      d += (pen ? "L" : "M") + x + " " + a + (a === b ? pen ? "" : "h0.1" : "V" + b);
      pen = true;
    });
    svg.append(el("path", {class: k ? "line b" : "line", d}));
    for (const step of s.bad.slice(0, 200)) {
      const x = axis.px(step);
      svg.append(el("path", {class: "bad", d: `M${x - 3} ${T}l6 6m0-6l-6 6`}, el("title", {}, `${o.name} is not finite at step ${step}`)));
    }
  });
  const value = el("text", {x: narrow ? axis.L : axis.width - axis.R, y: narrow ? 24 : 11, "text-anchor": narrow ? "start" : "end"});
  svg.append(el("text", {class: "name", x: axis.L, y: 11}, o.name + (log ? " (logarithmic)" : "")), value);
  // at writes what the series are at a step.
  const at = step => {
    value.textContent = o.series.map(s => {
      if (!s.steps.length) return "";
      const i = page.upTo(s.steps, step), name = s.name ? s.name + " " : "";
      if (s.bad.some(b => b === step)) return name + "not finite";
      if (i < 0 || s.lo[i] === null) return name + "–";
      return name + (s.lo[i] === s.hi[i] ? num(s.lo[i], 4) : `${num(s.lo[i])} to ${num(s.hi[i])}`);
    }).filter(Boolean).join(" · ");
  };
  return {element: svg, at};
};

// thinPath draws values as a path with at most two points for each pixel of x, the
// least and the largest, and a gap where there is no value.
page.thinPath = (values, x, y) => {
  let d = "", pen = false, at = NaN, lo = 0, hi = 0, last = 0;
  const flush = () => {
    if (Number.isNaN(at)) return;
    const far = hi !== lo ? (last === hi ? [lo, hi] : [hi, lo]) : [lo];
    for (const v of far) { d += (pen ? "L" : "M") + at + " " + y(v).toFixed(1) + (pen ? "" : "h0.1"); pen = true; }
    at = NaN;
  };
  values.forEach((v, s) => {
    if (!Number.isFinite(v)) { flush(); pen = false; return; }
    const px = Math.round(x(s));
    if (px !== at) { flush(); at = px; lo = hi = v; } else { lo = Math.min(lo, v); hi = Math.max(hi, v); }
    last = v;
  });
  flush();
  return d;
};

// upTo returns the index of the last step that is not above x, −1 where all are.
page.upTo = (steps, x) => {
  let lo = 0, hi = steps.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (steps[mid] <= x) lo = mid + 1; else hi = mid; }
  return lo - 1;
};

// alertLane draws when alerts were raised (a mark) and how long they lasted (a bar).
page.alertLane = (alerts, axis, pick) => {
  const {el} = page, H = 18;
  const svg = el("svg", {class: "strip", width: axis.width, height: H, viewBox: `0 0 ${axis.width} ${H}`, role: "img", "aria-label": `${alerts.length} alerts over the run`});
  const rank = {info: 0, warn: 1, critical: 2}, sorted = [...alerts].sort((a, b) => (rank[a.severity] ?? 0) - (rank[b.severity] ?? 0));
  for (const a of sorted) {
    const x = axis.px(a.step), end = axis.px(Math.min(a.recovered ?? axis.hi, axis.hi));
    svg.append(el("rect", {class: "span " + a.severity, x, y: 13.5, width: Math.max(end - x, 1), height: 3}));
  }
  const drawn = new Set(); // of thousands of marks, one for each pixel is enough
  for (const a of sorted.reverse()) {
    const x = Math.round(axis.px(a.step));
    if (drawn.has(x)) continue;
    drawn.add(x);
    svg.prepend(el("path", {class: "mark " + a.severity, d: `M${x} 12l-5-9h10z`, onclick: () => pick(a)}, el("title", {}, `step ${a.step}: ${a.severity}, ${a.code} at ${a.where}`)));
  }
  svg.append(...[...svg.querySelectorAll(".mark")]); // marks above bars
  return svg;
};

// stepAxis writes the steps below a timeline.
page.stepAxis = axis => {
  const {el} = page;
  const svg = el("svg", {class: "strip", width: axis.width, height: 30, viewBox: `0 0 ${axis.width} 30`, "aria-hidden": "true"});
  const whole = v => String(v).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  for (const v of page.ticks(page.scale(axis.lo, axis.hi, "linear"), Math.max(2, Math.floor(axis.width / 130))).filter(Number.isInteger)) {
    const x = axis.px(v);
    svg.append(el("line", {class: "grid", x1: x, x2: x, y1: 0, y2: 4}), el("text", {x, y: 15, "text-anchor": "middle"}, whole(v)));
  }
  svg.append(el("text", {class: "name", x: (axis.L + axis.width - axis.R) / 2, y: 28, "text-anchor": "middle"}, "training step"));
  return svg;
};

// columnsOf says for each of w pixels which snapshots it shows: every snapshot
// reaches halfway to its neighbors.
page.columnsOf = (steps, axis, w) => {
  const from = new Int32Array(w), to = new Int32Array(w), per = (axis.hi - axis.lo) / w;
  const first = steps[0], last = steps[steps.length - 1], half = steps.length > 1 ? (last - first) / (steps.length - 1) / 2 : Infinity;
  for (let x = 0; x < w; x++) {
    const a = axis.lo + per * x, b = a + per;
    if (b < first - half || a > last + half) { from[x] = 0; to[x] = -1; continue; } // nothing there
    from[x] = page.nearest(steps, a);
    to[x] = Math.max(from[x], page.nearest(steps, b - per * 1e-6));
  }
  return [from, to];
};

// picture draws every place at every step on a canvas. memo keeps the cells between
// calls for the same levels and width, since a choice changes only the frame.
page.picture = (canvas, {grid, levels, palette, axis, selected, memo}) => {
  const style = getComputedStyle(document.documentElement), ratio = Math.min(devicePixelRatio || 1, 2), hole = style.getPropertyValue("--hole-b");
  const height = Math.min(Math.max(grid.P * 4, 120), 360);
  canvas.width = Math.round(axis.width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  const g = canvas.getContext("2d"), left = Math.round(axis.L * ratio), w = Math.max(1, canvas.width - left - Math.round(axis.R * ratio));
  if (grid.S && grid.P) {
    const key = [w, canvas.height, axis.lo, axis.hi, hole].join();
    if (memo.levels !== levels || memo.key !== key) Object.assign(memo, {levels, key, cells: page.cells(grid, levels, page.colorTable(palette, hole), axis, w, Math.min(grid.P, canvas.height))});
    g.imageSmoothingEnabled = false;
    g.drawImage(memo.cells, left, 0, w, canvas.height);
  }
  page.pictureLabels(g, canvas, {grid, left, ratio, style, selected, w});
};

// cells draws w × h pixels. Where several values share one it shows that farthest from
// the middle: a single ill head must be seen.
page.cells = (grid, levels, colors, axis, w, h) => {
  const image = new ImageData(w, h), out = new Uint32Array(image.data.buffer), middle = page.middleLevel(levels), [from, to] = page.columnsOf(grid.steps, axis, w);
  for (let y = 0; y < h; y++) {
    const p0 = Math.floor(y * grid.P / h), p1 = Math.max(p0 + 1, Math.floor((y + 1) * grid.P / h));
    for (let x = 0; x < w; x++) {
      if (to[x] < from[x]) continue; // no snapshot near: transparent
      let best = 0, far = -1;
      for (let s = from[x]; s <= to[x]; s++) for (let p = p0; p < p1; p++) {
        const v = levels[s * grid.P + p], d = v > middle ? v - middle : middle - v;
        if (v !== 0 && d > far) { far = d; best = v; }
      }
      out[y * w + x] = colors[best];
    }
  }
  const canvas = document.createElement("canvas");
  canvas.width = w;
  canvas.height = h;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
};

page.middleLevel = levels => {
  const counts = new Uint32Array(256);
  for (const v of levels) counts[v]++;
  let rest = (levels.length - counts[0]) / 2, v = 1;
  while (v < 255 && (rest -= counts[v]) > 0) v++;
  return v;
};

// colorTable makes the 256 colors of a palette, as the bytes of an image.
page.colorTable = (palette, hole) => {
  const table = new Uint32Array(256), rgb = text => { const n = parseInt(text.trim().slice(1), 16); return (255 << 24 | (n & 255) << 16 | (n >> 8 & 255) << 8 | n >> 16) >>> 0; };
  for (let i = 1; i < 256; i++) {
    const [r, g, b] = page.blend(palette, (i - 1) / 254).match(/\d+/g).map(Number);
    table[i] = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  }
  table[0] = rgb(hole);
  return table;
};

page.pictureLabels = (g, canvas, {grid, left, ratio, style, selected, w}) => {
  const per = canvas.height / Math.max(grid.P, 1);
  g.font = `${11 * ratio}px system-ui, sans-serif`;
  g.textAlign = "right";
  g.textBaseline = "middle";
  let from = 0, bottom = -Infinity;
  for (let p = 1; p <= grid.P; p++) {
    if (p < grid.P && grid.places[p].layer === grid.places[from].layer) continue;
    const y = (from + p) / 2 * per;
    if (y - bottom > 13 * ratio) { g.fillStyle = style.getPropertyValue("--faint"); g.fillText(`L${grid.places[from].layer}`, left - 5 * ratio, Math.min(Math.max(y, 6 * ratio), canvas.height - 6 * ratio)); bottom = y; }
    if (p < grid.P && (p - from) * per > 5 * ratio) { g.fillStyle = style.getPropertyValue("--bg"); g.fillRect(left, Math.round(p * per) - (ratio > 1 ? 1 : 0), w, 1); }
    from = p;
  }
  if (selected === undefined) return;
  const thick = Math.max(per, 3 * ratio), y = (selected + 0.5) * per - thick / 2;
  g.strokeStyle = style.getPropertyValue("--focus");
  g.lineWidth = 2 * ratio;
  g.strokeRect(left - ratio, y - ratio, w + 2 * ratio, thick + 2 * ratio);
};
