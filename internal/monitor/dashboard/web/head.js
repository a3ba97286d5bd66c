// Before anything is drawn: the theme that was chosen last time, and the request for
// what the page will need first.
try { const kept = localStorage.getItem("eigenhead.theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* storage may be refused */ }
{
  const meta = document.querySelector("meta[name=early]");
  if (meta) {
    window.early = {url: meta.content, answer: fetch(meta.content, {headers: {"Accept": "application/json"}})};
    window.early.answer.catch(() => {}); // whoever takes it is told
  }
}
