// What the pages share: requests to our own server, pieces of page that the server
// rendered, and events.

// fetchJSON asks for JSON; signal, if any, ends it early. A refusal is an Error with
// the server's words.
page.fetchJSON = async (url, signal) => {
  const answer = await page.request(url, signal);
  return answer.json();
};

page.request = async (url, signal) => {
  const early = window.early?.url === url ? window.early.answer : undefined; // head.js has asked already
  if (early) window.early = undefined;
  const answer = await (early || fetch(url, {signal, headers: {"Accept": "application/json"}}));
  if (answer.status === 401) { location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search)); throw new Error("the session has ended"); }
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Error(said.error || `${answer.status} ${answer.statusText}`);
  }
  return answer;
};

// piece puts a rendered piece of page in place of what an element holds. What was
// open stays open, focus stays on the link that had it.
page.piece = (target, html) => {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const open = new Set([...target.querySelectorAll("details[open][id]")].map(d => d.id));
  const had = target.contains(document.activeElement) ? document.activeElement.closest("[id]")?.id : undefined;
  const known = new Set([...target.querySelectorAll("[data-alert]")].map(e => e.dataset.alert));
  target.replaceChildren(...fresh.body.childNodes);
  for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
  for (const e of target.querySelectorAll("[data-alert]")) if (!known.has(e.dataset.alert)) e.classList.add("new");
  if (had) (document.querySelector(`#${CSS.escape(had)} summary`) || document.getElementById(had))?.focus();
};

// later calls f once, wait milliseconds after the first of several calls.
page.later = (f, wait) => {
  let timer;
  return () => { timer ??= setTimeout(() => { timer = undefined; f(); }, wait); };
};

// live listens to the server's events while the page can be seen: a browser allows
// six connections to one server, and hidden tabs must not hold them. on(event) is
// told each event; again() is called whenever some may have been missed.
page.live = (url, on, again) => {
  const state = document.getElementById("live");
  let source, missed = false;
  const show = (text, kind) => { if (state) { state.textContent = text; state.className = "state " + kind; } };
  const start = () => {
    source = new EventSource(url);
    source.addEventListener("open", () => { show("live", "on"); if (missed) again(); missed = false; });
    source.addEventListener("message", e => on(JSON.parse(e.data)));
    source.addEventListener("error", () => { missed = true; show("reconnecting", "off"); if (source.readyState === EventSource.CLOSED) { stop(); setTimeout(() => { if (!source && !document.hidden) { again(); start(); } }, 3000); } });
  };
  const stop = () => { source?.close(); source = undefined; };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stop(); missed = true; show("paused", ""); } else if (!source) start();
  });
  addEventListener("pagehide", stop);
  if (!document.hidden) start(); else missed = true;
};

// say tells those who listen to the page.
page.say = text => { const e = document.getElementById("said"); if (e) e.textContent = text; };

// whenThemeChanges calls f after a change of theme.
page.whenThemeChanges = f => {
  new MutationObserver(f).observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", f);
};

// whenWidthChanges calls f a frame after the width of an element has changed.
page.whenWidthChanges = (element, f) => {
  let width = element.clientWidth;
  new ResizeObserver(() => requestAnimationFrame(() => { if (element.clientWidth !== width) { width = element.clientWidth; f(); } })).observe(element);
};

// ages makes times show the reader's own clock when pointed at, and lets "5 s ago" grow
// old. The server says how old each was: its clock and the reader's may differ.
page.ages = root => {
  for (const t of root.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (!isNaN(at)) t.title = at.toLocaleString();
    if (t.dataset.age) t.born = performance.now() - 1000 * Number(t.dataset.age);
  }
};
page.ages(document);
setInterval(() => {
  for (const t of document.querySelectorAll("time[data-age]")) {
    const s = (performance.now() - t.born) / 1000;
    t.textContent = s < 5 ? "just now" : s < 60 ? `${Math.floor(s)} s ago` : s < 3600 ? `${Math.floor(s / 60)} min ago` : s < 48 * 3600 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} days ago`;
  }
}, 5000);
