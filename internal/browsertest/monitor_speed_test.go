//go:build browser

package browsertest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestMonitorOpensInASecond opens a run of 1,000 heads × 1,000 snapshots. The time on
// the clock is judged where the machine has cores to spare; the processor time of the
// server and of all of Chromium, which bounds it from above but for waiting, always.
func TestMonitorOpensInASecond(t *testing.T) {
	m := serveMonitor(t)
	big := shape{name: "big", layers: 40, heads: 25, steps: every(100, 1000), measures: 1, sick: true}
	m.fill(big)
	m.scalars(big)
	ctx := m.watch()
	m.run(ctx, m.login("/login"))
	best, least := math.Inf(1), math.Inf(1)
	for range 5 { // the machine is shared: the best of five is the page's own time
		var drawn float64
		m.run(ctx, chromedp.Navigate(m.url+"/"), waitFor(`document.getElementById("live").textContent === "live"`), chromedp.Sleep(time.Second)) // where a reader comes from
		before := processorTimes(t)
		m.run(ctx, chromedp.Navigate(m.url+"/runs/big"), waitFor(isDrawn))
		used := 0.0
		for pid, ms := range processorTimes(t) {
			used += ms - before[pid]
		}
		m.run(ctx, chromedp.Evaluate(`Number(document.documentElement.dataset.drawn)`, &drawn))
		var parts string
		m.run(ctx, chromedp.Evaluate(`[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].map(e => e.name.replace(/.*\/(?=.)/, "").slice(0, 12) + " " + Math.round(e.startTime) + "–" + Math.round(e.responseEnd)).join(", ")`, &parts))
		t.Logf("drawn %.0f ms after navigation, %.0f ms of processor time (%s)", drawn, used, parts)
		best, least = min(best, drawn), min(least, used)
	}
	if least >= 1000 {
		t.Errorf("%.0f ms of processor time until it is drawn, want less than 1,000", least)
	}
	if load := load(); best >= 1000 && load > 1.5 {
		t.Logf("drawn after %.0f ms, want less than 1,000: not judged, since %.1f programs wait for each core", best, load)
	} else if best >= 1000 {
		t.Errorf("drawn after %.0f ms, want less than 1,000", best)
	}
	var ms float64
	m.run(ctx, chromedp.Evaluate(`new Promise(done => { const slider = document.getElementById("slider"), start = performance.now(); let n = 0;
		const next = () => { if (n++ === 20) { done((performance.now() - start) / 20); return; } slider.value = n * 4000; slider.dispatchEvent(new Event("input")); requestAnimationFrame(() => requestAnimationFrame(next)); }; next(); })`, &ms, awaited))
	t.Logf("a scrub takes %.0f ms", ms)
	m.shoot(ctx, "big")
}

// load returns how many programs want to run for each core, 0 where the system does
// not say.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var one float64
	if _, err := fmt.Sscan(string(text), &one); err != nil {
		return 0
	}
	return one / float64(goruntime.NumCPU())
}

// processorTimes returns what this process and all that it started have used, in ms.
func processorTimes(t *testing.T) map[int]float64 {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		t.Skip("no /proc to read processor times from")
	}
	parent, used := map[int]int{}, map[int]float64{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		parent[pid], _ = strconv.Atoi(fields[1])
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		used[pid] = 10 * (user + system) // a tick is a hundredth of a second on Linux
	}
	ours := func(pid int) bool {
		for ; pid > 1; pid = parent[pid] {
			if pid == os.Getpid() {
				return true
			}
		}
		return false
	}
	maps.DeleteFunc(used, func(pid int, _ float64) bool { return !ours(pid) })
	return used
}
