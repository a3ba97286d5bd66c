// What every script of a page uses: its data, elements, numbers, colors, the theme.
page.data = JSON.parse(document.getElementById("data").textContent);

// el makes an element: el("p", {class: "small"}, "text", child).
page.el = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "g", "path", "line", "text", "rect", "title"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "style") e.style.cssText = value || ""; // a policy without 'unsafe-inline' refuses the attribute
    else if (value !== undefined && value !== null && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat().filter(c => c !== null && c !== undefined && c !== false));
  return e;
};

// num writes three significant digits, or as many as asked for, as the terminal does.
page.num = (x, digits = 3) => {
  if (x === null || x === undefined) return "–";
  if (x === 0) return "0";
  const a = Math.abs(x);
  const s = a >= 1e6 || a < 1e-4 ? x.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e") : String(Number(x.toPrecision(digits)));
  return s.replaceAll("-", "−");
};

page.signed = x => x > 0 ? "+" + page.num(x) : page.num(x);

// blend returns the color of a palette at f in [0, 1].
page.blend = (palette, f) => {
  const at = Math.min(Math.max(f, 0), 1) * (palette.length - 1);
  const i = Math.min(Math.floor(at), palette.length - 2), t = at - i;
  const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  return "rgb(" + [0, 1, 2].map(k => Math.round(part(palette[i], k) * (1 - t) + part(palette[i + 1], k) * t)).join(" ") + ")";
};

// scale maps values to [0, 1]. kind: "linear", "log", or "signed" (logarithmic on
// both sides of 0, linear below 1).
page.scale = (lo, hi, kind) => {
  const f = {linear: x => x, log: x => Math.log(x), signed: x => Math.sign(x) * Math.log1p(Math.abs(x))}[kind];
  const a = f(lo), b = f(hi);
  return {lo, hi, kind, at: x => b > a ? Math.min(Math.max((f(x) - a) / (b - a), 0), 1) : 0.5};
};

// range returns the least and the largest finite value.
page.range = values => {
  let lo = Infinity, hi = -Infinity;
  for (const v of values) if (Number.isFinite(v)) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
  return lo <= hi ? [lo, hi] : [0, 1];
};

// ticks returns about n round values of a scale.
page.ticks = (s, n) => {
  if (s.kind === "log" && s.hi / s.lo >= 6.25) {
    const first = Math.ceil(Math.log10(s.lo) - 1e-9), last = Math.floor(Math.log10(s.hi) + 1e-9);
    if (last - first < 2) { // few decades: 1, 2, 5 in each
      const list = [];
      for (let e = first - 1; e <= last; e++) for (const m of [1, 2, 5]) list.push(m * 10 ** e);
      return list.filter(v => v >= s.lo && v <= s.hi);
    }
    const step = Math.max(1, Math.ceil((last - first + 1) / n));
    return Array.from({length: Math.floor((last - first) / step) + 1}, (_, i) => 10 ** (first + i * step));
  }
  if (s.kind === "signed") {
    const top = Math.floor(Math.log10(Math.max(s.hi, 1))), list = [0];
    for (let e = top; e >= 0 && list.length < n; e -= Math.max(1, Math.ceil(2 * top / n))) list.push(10 ** e, -(10 ** e));
    return list.filter(v => v >= s.lo && v <= s.hi);
  }
  const span = s.hi - s.lo;
  if (!(span > 0)) return [s.lo];
  const power = 10 ** Math.floor(Math.log10(span / n));
  const step = [1, 2, 5, 10].map(m => m * power).find(m => m >= span / n * (1 - 1e-9));
  const list = [];
  for (let i = Math.ceil(s.lo / step - 1e-9); i * step <= s.hi + step * 1e-9; i++) list.push(i * step);
  return list;
};

// The theme follows the system until the button is pressed.
{
  const button = document.getElementById("theme"), root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
  try { const kept = localStorage.getItem("eigenhead.theme"); if (kept) root.dataset.theme = kept; } catch { /* pages from files may have no storage */ }
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("eigenhead.theme", root.dataset.theme); } catch { /* kept for this visit only */ }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
