// table makes a sortable table. options: caption, columns: [{name, title, text},…],
// rows: ids, value(id, column index), text(id, column index), pick(id) if rows can
// be picked, match(id, words) if it can be filtered, limit.
// It returns {element, select(id), refresh(columns)}.
page.table = o => {
  const {el} = page;
  const limit = o.limit || 60;
  let columns = o.columns, sort = o.sort ?? 0, down = o.down ?? false, all = false, words = "", selected;
  const head = el("tr"), body = el("tbody"), more = el("button", {type: "button", onclick: () => { all = true; draw(); }});
  const count = el("span", {class: "faint small", role: "status"});
  // A dotted name takes two lines, so that columns stay narrow.
  const label = name => { const i = name.indexOf("."); return i < 0 ? name : [el("span", {class: "group"}, name.slice(0, i + 1)), name.slice(i + 1)]; };
  const draw = () => {
    head.replaceChildren(...columns.map((c, i) => el("th", {scope: "col", "aria-sort": i === sort ? (down ? "descending" : "ascending") : null},
      el("button", {type: "button", title: c.title || null, onclick: () => { down = i === sort ? !down : !c.text; sort = i; draw(); head.children[i].firstChild.focus(); }}, label(c.name)))));
    const kept = words ? o.rows.filter(id => o.match(id, words)) : [...o.rows];
    kept.sort((a, b) => {
      const x = o.value(a, columns[sort]), y = o.value(b, columns[sort]);
      if (x === y) return a - b;
      if (x === undefined || x === null) return 1; // no value comes last both ways
      if (y === undefined || y === null) return -1;
      return (x < y ? -1 : 1) * (down ? -1 : 1);
    });
    const shown = all ? kept : kept.slice(0, limit);
    body.replaceChildren(...shown.map(id => {
      const cells = columns.map((c, i) => {
        const text = o.text(id, c);
        return i === 0 && o.pick ? el("th", {scope: "row", style: "font-weight: 400"}, el("button", {type: "button", class: "link", onclick: e => { e.stopPropagation(); o.pick(id); }}, text)) : el("td", {}, text);
      });
      return el("tr", {"data-id": id, class: o.pick ? "pick" : null, "aria-selected": id === selected ? "true" : null, onclick: o.pick ? () => o.pick(id) : null}, cells);
    }));
    more.hidden = shown.length === kept.length;
    more.textContent = `Show all ${kept.length}`;
    count.textContent = kept.length === o.rows.length ? "" : `${kept.length} of ${o.rows.length}`;
  };
  const filter = o.match ? el("p", {}, el("label", {}, o.filter + " ", el("input", {type: "search", size: 24, oninput: e => { words = e.target.value.trim().toLowerCase(); draw(); }})), " ", count) : null;
  draw();
  return {
    element: el("div", {}, filter, el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": o.caption}, el("table", {}, el("thead", {}, head), body)), more),
    select: id => {
      selected = id;
      for (const row of body.children) if (Number(row.dataset.id) === id) row.setAttribute("aria-selected", "true"); else row.removeAttribute("aria-selected");
    },
    refresh: list => { const name = columns[sort].name; columns = list; const i = list.findIndex(c => c.name === name); if (i < 0) { sort = 0; down = false; } else { sort = i; } draw(); },
  };
};
