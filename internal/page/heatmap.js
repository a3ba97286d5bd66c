// heatmap makes a grid of cells: one tab stop, arrow keys move, Enter or a click
// picks. options: label, rows, cols (names), rowName, colName, cell(row, col) → id
// or undefined, pick(id), point(id or undefined).
// It returns {element, legend, paint({values, text, scale, palette, unit}), select(id)}.
page.heatmap = o => {
  const {el, num} = page;
  const grid = el("div", {class: "heatmap", role: "grid", "aria-label": o.label});
  const cells = new Map(), place = new Map();
  const head = el("div", {role: "row"}, el("span", {role: "columnheader"}, o.corner || ""));
  grid.append(head);
  const labels = o.cols.map((c, x) => el("span", {role: "columnheader"}, String(c)));
  head.append(...labels);
  const sides = o.rows.map((name, y) => {
    const side = el("span", {role: "rowheader"}, String(name)), row = el("div", {role: "row"}, side);
    o.cols.forEach((_, x) => {
      const id = o.cell(y, x), cell = el("div", {role: "gridcell", tabindex: -1});
      if (id === undefined) { cell.setAttribute("aria-disabled", "true"); }
      else { cell.dataset.id = id; cells.set(id, cell); place.set(id, [y, x]); }
      row.append(cell);
    });
    grid.append(row);
    return side;
  });
  let current = cells.keys().next().value, selected;
  if (current !== undefined) cells.get(current).tabIndex = 0;

  const focus = id => {
    cells.get(current).tabIndex = -1;
    current = id;
    cells.get(id).tabIndex = 0;
    cells.get(id).focus();
  };
  // step finds the next cell that has an id, in a direction.
  const step = (dy, dx) => {
    let [y, x] = place.get(current);
    for (y += dy, x += dx; y >= 0 && x >= 0 && y < o.rows.length && x < o.cols.length; y += dy, x += dx) {
      const id = o.cell(y, x);
      if (id !== undefined) return id;
    }
  };
  const far = (dy, dx) => { let last = current; for (let id = step(dy, dx); id !== undefined; id = step(dy, dx)) { last = current = id; } return last; };
  grid.addEventListener("keydown", e => {
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}, ends = {Home: [0, -1], End: [0, 1], PageUp: [-1, 0], PageDown: [1, 0]};
    let id;
    if (moves[e.key]) id = step(...moves[e.key]);
    else if (ends[e.key]) { const from = current; id = far(...ends[e.key]); current = from; }
    else if (e.key === "Enter" || e.key === " ") { e.preventDefault(); o.pick(current); return; }
    else return;
    e.preventDefault();
    if (id !== undefined) focus(id);
  });
  const of = e => { const c = e.target.closest("[data-id]"); return c ? Number(c.dataset.id) : undefined; };
  grid.addEventListener("click", e => { const id = of(e); if (id !== undefined) { focus(id); o.pick(id); } });
  grid.addEventListener("pointerover", e => o.point(of(e)));
  grid.addEventListener("pointerleave", () => o.point(undefined));
  grid.addEventListener("focusin", e => o.point(of(e)));

  const scroll = el("div", {class: "scroll", style: "padding: 3px"}, grid), legend = el("div", {class: "legend"});
  let fitted;
  const fit = () => {
    if (scroll.clientWidth === fitted) return;
    fitted = scroll.clientWidth;
    const side = 34, room = (fitted || 800) - side - 8;
    const w = Math.max(9, Math.min(o.cols.length > 16 ? 34 : 48, Math.floor(room / o.cols.length) - 1));
    const h = Math.max(9, Math.min(w, 24, Math.max(12, Math.floor(420 / o.rows.length))));
    grid.style.gridTemplateColumns = `${side}px repeat(${o.cols.length}, ${w}px)`;
    grid.style.gridTemplateRows = `16px repeat(${o.rows.length}, ${h}px)`;
    const every = (size, n, list) => { const k = [1, 2, 5, 10, 20].find(k => k * (n + 1) >= size) || 50; list.forEach((l, i) => { l.style.visibility = i % k ? "hidden" : "visible"; }); };
    every(22, w, labels);
    every(13, h, sides);
  };
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(scroll); // a frame later: its own change must not be reported
  fit();

  const paint = p => {
    for (const [id, cell] of cells) {
      const v = p.values(id), has = Number.isFinite(v);
      cell.classList.toggle("hole", !has);
      cell.style.background = has ? page.blend(p.palette, p.scale.at(v)) : "";
      cell.setAttribute("aria-label", p.text(id));
    }
    const bar = el("div", {class: "bar", style: `background: linear-gradient(to right, ${p.palette.join(", ")})`});
    let last = -1; // labels nearer than a tenth of the bar would touch
    for (const v of page.ticks(p.scale, 6).sort((a, b) => a - b).filter(v => p.scale.kind !== "signed" || v === 0 || Math.abs(p.scale.at(v) - 0.5) > 0.1)) if (p.scale.at(v) - last > 0.1) last = p.scale.at(v), bar.append(el("span", {style: `left: ${100 * p.scale.at(v)}%`}, num(v)));
    legend.replaceChildren(bar, el("span", {}, p.unit), el("span", {}, el("span", {class: "hole", "aria-hidden": true}), " no value"));
  };
  const select = id => {
    if (cells.has(selected)) cells.get(selected).removeAttribute("aria-selected");
    selected = id;
    if (!cells.has(id)) return;
    cells.get(id).setAttribute("aria-selected", "true");
    cells.get(current).tabIndex = -1;
    current = id;
    cells.get(id).tabIndex = 0;
  };
  return {element: scroll, legend, paint, select};
};
