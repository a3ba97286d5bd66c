// The list of runs and the list of alerts: the server renders them again when
// something has happened.
if (page.data?.page === "runs" || page.data?.page === "alerts") {
  const D = page.data, target = document.getElementById("live-list");
  const refresh = async () => {
    try {
      const answer = await page.fetchJSON(D.source);
      page.piece(target, answer.html);
      page.ages(target);
      if (target.querySelector("[data-pending]")) setTimeout(refresh, 700);
      if (answer.title) document.title = answer.title;
      document.getElementById("problem").hidden = true;
    } catch (e) { const p = document.getElementById("problem"); p.textContent = `This could not be read: ${e.message}`; p.hidden = false; }
  };
  if (target.querySelector("[data-pending]")) setTimeout(refresh, 700);
  const soon = page.later(refresh, 200), calm = page.later(refresh, 2000);
  page.live(D.events, e => {
    if (e.kind === "alert" || e.kind === "recovered") { soon(); if (e.kind === "alert" && e.alert) page.say(`New alert in ${e.run}, ${e.alert.severity}: ${e.alert.text}`); }
    else if (D.page === "runs") calm();
  }, refresh);
}
