// A grid holds one measure at every place and step of a run: values[s·P + p] is
// place p at snapshot s, NaN where there is none.

// loadGrid asks for a grid; since: only the steps after it. The answer is a length of
// 4 bytes, that much JSON, and float32 numbers, all little-endian.
page.loadGrid = async (run, measure, sample, since) => {
  const query = new URLSearchParams({measure, sample});
  if (since !== undefined) query.set("since", since);
  const bytes = await (await page.request(`/data/runs/${encodeURIComponent(run)}/grid?${query}`)).arrayBuffer();
  const n = new DataView(bytes).getUint32(0, true);
  const grid = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, n)));
  grid.values = new Float32Array(bytes, 4 + n); // the JSON is padded to four bytes
  grid.P = grid.where.length;
  grid.S = grid.steps.length;
  grid.places = grid.where.map(page.place);
  grid.at = new Map(grid.where.map((w, p) => [w, p]));
  grid.medians = new Map();
  grid.sparks = new Map();
  return grid;
};

// place takes "L3H5", "L3KV1" or "L3" apart.
page.place = where => {
  const m = /^L(\d+)(?:(H|KV)(\d+))?$/.exec(where);
  return m ? {layer: Number(m[1]), kind: m[2] || "L", index: m[3] === undefined ? 0 : Number(m[3])} : {layer: -1, kind: "?", index: 0};
};

// joinGrid returns the grid with newer columns; undefined where they do not fit it.
page.joinGrid = (old, more) => {
  if (more.P !== old.P || more.where.some((w, p) => w !== old.where[p]) || more.S && old.S && more.steps[0] <= old.steps[old.S - 1]) return undefined;
  const values = new Float32Array(old.values.length + more.values.length);
  values.set(old.values);
  values.set(more.values, old.values.length);
  return {...old, values, steps: [...old.steps, ...more.steps], S: old.S + more.S, medians: new Map(), sparks: new Map()};
};

// nearest returns the index of the step nearest to x in a rising list.
page.nearest = (steps, x) => {
  let lo = 0, hi = steps.length - 1;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (steps[mid] < x) lo = mid + 1; else hi = mid; }
  return lo > 0 && x - steps[lo - 1] <= steps[lo] - x ? lo - 1 : lo;
};

// median sorts the first n numbers of a list in place and returns their median.
page.median = (list, n = list.length) => {
  if (!n) return NaN;
  if (n > 40) { if (list.subarray) list.subarray(0, n).sort(); else list.sort((a, b) => a - b); }
  else for (let i = 1; i < n; i++) {
    const v = list[i];
    let k = i;
    for (; k > 0 && list[k - 1] > v; k--) list[k] = list[k - 1];
    list[k] = v;
  }
  const m = n >> 1;
  return n % 2 ? list[m] : (list[m - 1] + list[m]) / 2;
};

// gather copies the finite values of places at a snapshot and returns how many.
page.gather = (grid, s, list, into) => {
  let n = 0;
  for (const p of list) { const v = grid.values[s * grid.P + p]; if (v - v === 0) into[n++] = v; }
  return n;
};

// peersOf lists the places that a place is compared with: those of its layer, or all
// of its kind where the layer has fewer than four.
page.peersOf = grid => {
  if (!grid.peers) {
    const byLayer = new Map();
    grid.places.forEach((at, p) => byLayer.set(at.layer, [...(byLayer.get(at.layer) || []), p]));
    const all = grid.places.map((_, p) => p);
    grid.peers = grid.places.map(at => byLayer.get(at.layer).length < 4 ? all : byLayer.get(at.layer));
  }
  return grid.peers;
};

// outliers returns for each place how far it is from its peers' median at a snapshot,
// in their median absolute deviation times 1.4826 (one standard deviation of normal
// numbers); a spread below a thousandth of the median counts as that.
page.outliers = (grid, s) => {
  const out = new Float32Array(grid.P).fill(NaN), peers = page.peersOf(grid), done = new Map(), v = new Float64Array(grid.P);
  for (let p = 0; p < grid.P; p++) {
    const list = peers[p];
    let known = done.get(list);
    if (!known) {
      const n = page.gather(grid, s, list, v), middle = page.median(v, n);
      for (let i = 0; i < n; i++) v[i] = Math.abs(v[i] - middle);
      known = {middle, spread: Math.max(1.4826 * page.median(v, n), Math.abs(middle) * 1e-3, 1e-30), enough: n >= 4};
      done.set(list, known);
    }
    if (known.enough) out[p] = (grid.values[s * grid.P + p] - known.middle) / known.spread;
  }
  return out;
};

// medianLine returns the median of a place's peers at every snapshot.
page.medianLine = (grid, p) => {
  const list = page.peersOf(grid)[p];
  if (!grid.medians.has(list)) {
    const v = new Float64Array(list.length);
    grid.medians.set(list, grid.steps.map((_, s) => page.median(v, page.gather(grid, s, list, v))));
  }
  return grid.medians.get(list);
};

page.line = (grid, p) => grid.steps.map((_, s) => grid.values[s * grid.P + p]);

// shown returns what the colors stand for: {values, scale, palette, unit}. kind is
// "value", "change" (from the first snapshot that has the place) or "peers".
page.shown = (grid, kind) => {
  const unit = grid.unit && grid.unit !== "1" ? " " + grid.unit : "";
  if (kind === "value") {
    const scale = page.scaleOf(grid.values);
    return {values: grid.values, scale, palette: page.palettes.viridis, unit: grid.measure + unit + (scale.kind === "linear" ? "" : ", logarithmic")};
  }
  const values = new Float32Array(grid.values.length);
  if (kind === "change") {
    for (let p = 0; p < grid.P; p++) {
      let first = NaN;
      for (let s = 0; s < grid.S; s++) {
        const v = grid.values[s * grid.P + p];
        if (Number.isNaN(first)) first = v;
        values[s * grid.P + p] = v - first;
      }
    }
  } else for (let s = 0; s < grid.S; s++) values.set(page.outliers(grid, s), s * grid.P);
  const [lo, hi] = page.range(values), top = Math.max(Math.abs(lo), Math.abs(hi)) || 1;
  const signed = kind === "peers" || page.wide(values, top);
  return {values, scale: page.scale(-top, top, signed ? "signed" : "linear"), palette: page.palettes.diverging,
    unit: (kind === "peers" ? "distance from the layer’s median, in its spread" : `change of ${grid.measure} since the first snapshot${unit}`) + (signed ? ", logarithmic" : "")};
};

// wide reports whether most values would be lost beside the largest.
page.wide = (values, top) => {
  const some = [];
  for (let i = 0, by = Math.max(1, Math.floor(values.length / 2000)); i < values.length; i += by) if (Number.isFinite(values[i])) some.push(Math.abs(values[i]));
  return top > 50 * page.median(some) && top > 10;
};

page.scaleOf = values => {
  let lo = Infinity, hi = -Infinity;
  for (let i = 0; i < values.length; i++) { const v = values[i]; if (v < lo) lo = v; if (v > hi) hi = v; }
  if (lo > hi) [lo, hi] = [0, 1];
  if (lo >= 0 && hi <= 1 && hi > 0.3) return page.scale(0, 1, "linear"); // shares keep one scale
  if (lo > 0 && hi / lo > 50) return page.scale(lo, hi, "log");
  if (lo <= 0 && page.wide(values, Math.max(hi, -lo))) return page.scale(lo, hi, "signed");
  return page.scale(lo, hi, "linear");
};

// levels turns values into 1 to 255 along a scale, 0 where there is none. Numbers that
// agree in sign, exponent and eight bits more share a color: a table of those is
// made as it is needed, since a million logarithms would be felt.
page.levels = (values, scale) => {
  const out = new Uint8Array(values.length), bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const f = {linear: x => x, log: Math.log, signed: x => Math.sign(x) * Math.log1p(Math.abs(x))}[scale.kind];
  const a = f(scale.lo), by = f(scale.hi) > a ? 254 / (f(scale.hi) - a) : 0;
  const table = new Int16Array(1 << 17).fill(-1), word = new Uint32Array(1), middle = new Float32Array(word.buffer);
  for (let i = 0; i < out.length; i++) {
    const key = bits[i] >>> 15;
    let level = table[key];
    if (level < 0) {
      word[0] = key << 15 | 1 << 14;
      const v = middle[0];
      level = table[key] = v - v === 0 ? Math.min(Math.max(by ? 1.5 + (f(v) - a) * by : 128, 1), 255) || 1 : 0;
    }
    out[i] = level;
  }
  return out;
};
