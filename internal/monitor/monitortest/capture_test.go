package monitortest

import (
	"testing"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

func TestCapturesAreCaptures(t *testing.T) {
	for _, shape := range []Shape{{}, Usual} {
		data := Capture(monitor.Key{Run: "a", Step: 7, Sample: 1}, shape, "")
		c, err := capture.Parse("made", data)
		if err != nil {
			t.Fatal(err)
		}
		if *c.Meta.Step != 7 || c.Meta.Run != "a" || c.Meta.Sample != "1" {
			t.Errorf("metadata %+v", c.Meta)
		}
		if string(data) != string(Capture(monitor.Key{Run: "a", Step: 7, Sample: 1}, shape, "")) {
			t.Error("made twice, two files")
		}
	}
	if n := len(Capture(monitor.Key{Run: "a"}, Usual, "")); n < 64<<10 || n > 66<<10 {
		t.Errorf("Usual has %d bytes, want 64 KiB of numbers", n)
	}
}
