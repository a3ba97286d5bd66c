//go:build browser

package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/report"
)

// browser opens Chromium and records what a page must not do: speak on the
// console, raise an exception, or ask for anything but itself.
func browser(t *testing.T) (ctx context.Context, complaints func() []string) {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1300, 1600))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stopAlloc)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	ctx, stopTimer := context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(stopTimer)
	var mu sync.Mutex
	var bad []string
	add := func(s string) { mu.Lock(); bad = append(bad, s); mu.Unlock() }
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			add("exception: " + ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			add("console: " + string(ev.Type))
		case *log.EventEntryAdded:
			add("log: " + ev.Entry.Text)
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(ev.Request.URL, "file://") && !strings.HasPrefix(ev.Request.URL, "data:") {
				add("request: " + ev.Request.URL)
			}
		}
	})
	return ctx, func() []string { mu.Lock(); defer mu.Unlock(); return bad }
}

func writePage(t *testing.T) (url string) {
	t.Helper()
	r, err := eigenhead.Scan(context.Background(), eigenhead.Demo, &eigenhead.Options{Context: 128, Profiles: true, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.WriteHTML(f, r); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

func TestHeatMapOpensAHead(t *testing.T) {
	ctx, complaints := browser(t)
	var title, clicked, byKey, legend string
	var charts int
	err := chromedp.Run(ctx, network.Enable(), log.Enable(),
		chromedp.Navigate(writePage(t)),
		chromedp.Text("h1", &title),
		chromedp.SetValue("#measure", "attention.entropy"),
		chromedp.Evaluate(`document.getElementById("measure").dispatchEvent(new Event("change", {bubbles: true}))`, nil),
		chromedp.Text("#map", &legend),
		chromedp.Click(`#map [data-id="13"]`, chromedp.NodeVisible),
		chromedp.Text("#h-detail", &clicked),
		chromedp.Evaluate(`document.querySelectorAll("#detail svg").length`, &charts),
		chromedp.SendKeys(`#map [data-id="13"]`, kb.ArrowRight+kb.Enter),
		chromedp.Text("#h-detail", &byKey))
	if err != nil {
		t.Fatal(err)
	}
	if title != "demo" || !strings.Contains(legend, "attention.entropy") {
		t.Errorf("title %q, legend %q", title, legend)
	}
	if !strings.HasPrefix(clicked, "L") || charts < 4 {
		t.Errorf("a click opened %q with %d charts, want a head with its spectrum, channels and rows", clicked, charts)
	}
	if byKey == clicked || !strings.HasPrefix(byKey, "L") {
		t.Errorf("arrow and Enter opened %q after %q, want the next head", byKey, clicked)
	}
	for _, c := range complaints() {
		t.Error(c)
	}
}
