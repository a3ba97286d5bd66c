// Before anything is drawn: the theme that was chosen last time.
try { const kept = localStorage.getItem("eigenhead.theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* storage may be refused */ }
