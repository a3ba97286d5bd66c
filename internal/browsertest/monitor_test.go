//go:build browser

package browsertest

import (
	"bytes"
	"context"
	"math"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/dashboard"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
)

func TestMonitorLogin(t *testing.T) {
	m := serveMonitor(t)
	m.fill(shape{name: "first", layers: 2, heads: 4, steps: every(100, 5), measures: 3})
	ctx := m.watch("401 (Unauthorized)")
	var wrong, heading, after string
	m.run(ctx, chromedp.Navigate(m.url+"/runs/first"), chromedp.SendKeys("#token", "not the token"+kb.Enter), chromedp.Text("#wrong", &wrong))
	m.shoot(ctx, "login")
	m.run(ctx, chromedp.SendKeys("#token", m.token+kb.Enter), chromedp.WaitVisible("#map"), chromedp.Text("h1", &heading),
		chromedp.Click(`form[action="/logout"] button`), chromedp.WaitVisible("#token"), chromedp.Navigate(m.url+"/"), chromedp.Text("h1", &after))
	m.run(ctx, m.login("/runs/first"), waitFor(isDrawn), network.ClearBrowserCookies(), chromedp.Click(`[data-go="first"]`), chromedp.WaitVisible("#token")) // a session that has ended
	if !strings.Contains(wrong, "not the token") || heading != "first" || after != "Log in" {
		t.Errorf("wrong token says %q, the right one leads to %q, after logout %q", wrong, heading, after)
	}
}

func TestMonitorRun(t *testing.T) {
	m := serveMonitor(t)
	m.fill(sickRun)
	m.scalars(sickRun)
	ctx := m.watch()
	var at, first, chosen, byKey string
	var charts, strips int
	m.run(ctx, m.login("/runs/"+sickRun.name), waitFor(isDrawn), waitFor(`document.querySelectorAll("#strips svg").length > 0`),
		chromedp.Text("#at", &at),
		chromedp.Evaluate(`document.querySelectorAll("#strips svg").length`, &strips),
		chromedp.SendKeys("#slider", kb.ArrowLeft+kb.ArrowLeft), waitFor(`document.getElementById("at").textContent.includes("58 of 60")`),
		chromedp.SendKeys("#slider", kb.Home), waitFor(`document.getElementById("at").textContent.includes("1 of 60")`), chromedp.Text("#at", &first),
		chromedp.Click(`#map [data-id="21"]`), waitFor(`document.getElementById("panel").dataset.shown === "L2H50"`), chromedp.Text("#panel", &chosen),
		chromedp.Evaluate(`document.querySelectorAll("#panel svg").length`, &charts),
		chromedp.SendKeys(`#map [data-id="21"]`, kb.ArrowRight+kb.Enter), waitFor(`document.getElementById("panel").dataset.shown === "L3H50"`), chromedp.Text("#h-panel", &byKey))
	m.run(ctx, chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent(kb.ArrowRight+kb.ArrowRight), waitFor(`document.getElementById("at").textContent.includes("3 of 60")`),
		chromedp.Click(`#picture`), waitFor(`/2[789] of 60/.test(document.getElementById("at").textContent)`),
		chromedp.SetValue("#measure", "attention.entropy"), chromedp.Evaluate(`document.getElementById("measure").dispatchEvent(new Event("change"))`, nil),
		waitFor(`location.search.includes("measure=attention.entropy")`), chromedp.Reload(), waitFor(isDrawn), waitFor(`document.getElementById("readout").textContent.includes("attention.entropy")`))
	if !strings.Contains(at, "60 of 60") || !strings.HasPrefix(first, "step 0") || strips != 3 || charts != 1 || byKey != "L3H5" {
		t.Errorf("opens at %q, Home leads to %q; %d scalars, %d charts; keyboard opens %q", at, first, strips, charts, byKey)
	}
	for _, want := range []string{"L2H5", "Largest score", "attention.\u200bentropy", "0.92 ± 0.02", "residual.\u200bcosine"} {
		if !strings.Contains(chosen, want) {
			t.Errorf("the panel lacks %q:\n%s", want, chosen)
		}
	}
}

// TestMonitorLive: an alert, its end, a snapshot and scalars appear without a reload.
func TestMonitorLive(t *testing.T) {
	m := serveMonitor(t)
	most := sickRun
	most.steps = sickRun.steps[:50]
	m.fill(most)
	ctx := m.watch()
	m.run(ctx, m.login("/runs/"+sickRun.name), waitFor(isDrawn), waitFor(`document.getElementById("live").textContent === "live"`),
		chromedp.Evaluate(`window.same = true`, nil), waitFor(`document.getElementById("alerts").textContent.includes("No open alert")`))
	a := m.alert(monitor.Alert{Run: sickRun.name, Code: "max-logit", Severity: finding.Critical, Step: 9600, Where: "L2H5", Text: "L2H5: <i>largest</i> score 1,020, above 1,000",
		Evidence: map[string]any{"measure": "attention.max_logit", "value": 1020.0, "threshold": 1000.0}})
	m.events.send(monitor.Event{Kind: monitor.AlertRaised, Run: a.Run, Step: a.Step, Alert: &a})
	m.run(ctx, waitFor(`document.querySelector("#alerts .alert.critical.new")?.textContent.includes("<i>largest</i>")`), waitFor(`document.getElementById("said").textContent.includes("New alert, critical")`),
		waitFor(`document.title.startsWith("(1)")`), waitFor(`document.querySelectorAll("#lane .mark").length === 1`), waitFor(`document.querySelector('#sick [data-where="L2H5"]') !== null`))
	m.snapshot(sickRun, 50)
	m.events.send(monitor.Event{Kind: monitor.SnapshotAnalyzed, Run: sickRun.name, Step: sickRun.steps[50]})
	m.run(ctx, waitFor(`document.getElementById("at").textContent.includes("51 of 51")`))
	m.scalars(sickRun)
	m.events.send(monitor.Event{Kind: monitor.ScalarsReceived, Run: sickRun.name, Step: 11800})
	m.run(ctx, waitFor(`document.querySelectorAll("#strips svg").length === 3`))
	// The alert's link leads to its moment, and a late snapshot is drawn too.
	var at, shown string
	m.run(ctx, chromedp.Click("#alerts a[data-moment]"), waitFor(`document.getElementById("panel").dataset.shown === "L2H59600"`), chromedp.Text("#at", &at), chromedp.Text("#panel", &shown))
	if !strings.Contains(at, "step 9\u202f600") || !strings.Contains(shown, "max-logit") {
		t.Errorf("the link leads to %q, the panel says %q", at, shown)
	}
	over := int64(10000)
	a.Recovered = &over
	m.alert(a)
	m.events.send(monitor.Event{Kind: monitor.AlertRecovered, Run: a.Run, Step: over, Alert: &a})
	var same bool
	m.run(ctx, waitFor(`document.getElementById("alerts").textContent.includes("No open alert")`), chromedp.Evaluate(`window.same === true`, &same))
	if !same {
		t.Error("the page was loaded anew")
	}
}

// TestMonitorWithPipeline: captures go in, and an alert of the rules comes out on a page
// that is open: a NaN in the sixth one.
func TestMonitorWithPipeline(t *testing.T) {
	m := serveMonitor(t)
	p := pipeline.New(m.store, nil)
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	server := httptest.NewServer(dashboard.Handler(m.store, p, auth.Everyone(), nil))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	m.url = server.URL
	accept := func(step int64, poison string) {
		t.Helper()
		key := monitor.Key{Run: "real", Step: step}
		if _, _, err := p.Accept(context.Background(), key.Run, bytes.NewReader(monitortest.Capture(key, monitortest.Usual, poison))); err != nil {
			t.Fatal(err)
		}
	}
	for step := range int64(5) {
		accept(100*step, "")
	}
	if err := p.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx := m.watch()
	m.run(ctx, chromedp.Navigate(m.url+"/runs/real"), waitFor(isDrawn), waitFor(`document.getElementById("live").textContent === "live"`), waitFor(`document.getElementById("at").textContent.includes("5 of 5")`))
	accept(500, "NaN")
	var text string
	m.run(ctx, chromedp.WaitVisible(`#alerts .alert.critical.new`), chromedp.Text("#alerts", &text), waitFor(`document.getElementById("at").textContent.includes("6 of 6")`),
		chromedp.Click("#alerts a[data-moment]"), waitFor(`document.getElementById("panel").textContent.includes("NaN in q")`))
	if !strings.Contains(text, "non-finite") || !strings.Contains(text, "step 500") {
		t.Errorf("the alert says %q", text)
	}
}

// TestMonitorHostile: whatever clients write stays text on every page.
func TestMonitorHostile(t *testing.T) {
	const evil = `"></title></script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">'`
	m := serveMonitor(t)
	for _, name := range []string{"evil", "other"} {
		s := shape{name: name, layers: 2, heads: 4, steps: every(10, 3), measures: 3, model: evil}
		m.fill(s)
		if err := m.store.SaveScalars(context.Background(), name, []monitor.Scalars{{Step: 1, Values: map[string]float64{evil: 1, "loss": 2}}, {Step: 20, Values: map[string]float64{evil: 2, "loss": math.NaN()}}}); err != nil {
			t.Fatal(err)
		}
		m.alert(monitor.Alert{Run: name, Code: evil, Severity: finding.Critical, Step: 10, Where: "L1H1", Text: evil, Evidence: map[string]any{evil: evil, "measure": evil, "list": []string{evil}}})
	}
	ctx := m.watch()
	m.run(ctx, m.login("/"))
	for _, path := range []string{"/", "/runs/evil?where=L1H1&step=10", "/runs/evil/alerts", "/compare?a=evil&b=other", "/runs/evil?measure=" + url.QueryEscape(evil)} {
		var pwned bool
		var images int
		m.run(ctx, chromedp.Navigate(m.url+path), chromedp.WaitReady("#data[type]"), waitFor(`document.getElementById("live").textContent === "live"`), chromedp.Sleep(500*time.Millisecond),
			chromedp.Evaluate(`window.pwned !== undefined`, &pwned), chromedp.Evaluate(`document.querySelectorAll("img, main script").length`, &images))
		if pwned || images > 0 {
			t.Errorf("%s: a client's text became markup", path)
		}
	}
}

// TestMonitorBegins: from an empty store to the first run, its first scalars and its
// first snapshot, on pages that were open before.
func TestMonitorBegins(t *testing.T) {
	m := serveMonitor(t)
	ctx := m.watch()
	live := waitFor(`document.getElementById("live").textContent === "live"`)
	m.run(ctx, m.login("/"), live, waitFor(`document.getElementById("live-list").textContent.includes("No run yet")`))
	m.shoot(ctx, "empty")
	few := shape{name: "begins", layers: 2, heads: 4, steps: every(10, 4), measures: 3}
	m.scalars(few)
	m.events.send(monitor.Event{Kind: monitor.ScalarsReceived, Run: few.name, Step: 30})
	m.run(ctx, chromedp.Click("#run-begins"), chromedp.WaitVisible("#timeline"), live, waitFor(`document.querySelectorAll("#strips svg").length === 3`), waitFor(`document.getElementById("at").textContent === "no snapshot yet"`))
	m.snapshot(few, 0)
	m.events.send(monitor.Event{Kind: monitor.SnapshotAnalyzed, Run: few.name})
	m.run(ctx, chromedp.WaitVisible(`#map [data-id="7"]`), waitFor(isDrawn)) // the page loads itself anew: it has measures to choose from now
}

func TestMonitorCompare(t *testing.T) {
	m := serveMonitor(t)
	well := sickRun
	well.name, well.sick = "gpt-tiny-lr3e-4", false
	for _, s := range []shape{sickRun, well} {
		m.fill(s)
		m.scalars(s)
	}
	m.sickAlerts()
	ctx := m.watch()
	var text, course string
	m.run(ctx, m.login("/compare?a="+well.name+"&b="+sickRun.name), waitFor(isDrawn), waitFor(`document.querySelectorAll("#strips svg").length === 5`), chromedp.Text("#largest tbody tr:first-child", &text),
		chromedp.Click("#largest tbody tr:first-child button"), chromedp.Text("#course", &course))
	if !strings.HasPrefix(text, "L2H5") || !strings.Contains(course, "L2H5") {
		t.Errorf("the largest difference is %q, its course %q", text, course)
	}
	m.run(ctx, chromedp.Navigate(m.url+"/"), chromedp.WaitVisible(".runs"), waitFor(`document.querySelectorAll(".runs .spark").length === 2`))
	m.shoot(ctx, "runs")
}

// TestMonitorLooks takes pictures, and checks that nothing is wider than its window.
func TestMonitorLooks(t *testing.T) {
	m := serveMonitor(t)
	m.fill(sickRun)
	m.scalars(sickRun)
	m.sickAlerts()
	m.fill(shape{name: "short", layers: 6, heads: 8, steps: every(300, 20), measures: 3})
	ctx := m.watch()
	m.run(ctx, m.login("/"))
	for _, look := range []struct {
		name  string
		width int64
		theme string
	}{{"light", 1300, "light"}, {"dark", 1300, "dark"}, {"narrow", 420, "light"}, {"narrow-dark", 420, "dark"}} {
		m.run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}), chromedp.EmulateViewport(look.width, 900))
		for name, path := range map[string]string{"run": "/runs/" + sickRun.name + "?step=9600&where=L2H5", "alerts": "/runs/" + sickRun.name + "/alerts", "list": "/", "compare": "/compare?a=short&b=" + sickRun.name + "&where=L2H5"} {
			var width int64
			m.run(ctx, chromedp.Navigate(m.url+path), chromedp.WaitReady("#main"))
			if name == "run" {
				m.run(ctx, waitFor(isDrawn), waitFor(`document.getElementById("panel").dataset.shown !== undefined`), waitFor(`document.querySelectorAll("#strips svg").length === 3`))
			}
			if name == "compare" {
				m.run(ctx, waitFor(isDrawn), waitFor(`document.querySelectorAll("#strips svg").length === 5`))
			}
			m.run(ctx, chromedp.Evaluate(`document.documentElement.scrollWidth`, &width))
			if width > look.width {
				t.Errorf("%s, %s: %d pixels wide, the window has %d", name, look.name, width, look.width)
			}
			m.shoot(ctx, name+"-"+look.name)
		}
	}
}
