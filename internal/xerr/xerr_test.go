package xerr

import "testing"

func TestText(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&Format{File: "a.safetensors", What: "shape", Found: 3, Want: 4}, "a.safetensors: shape: 3, want 4"},
		{&Format{What: "run name", Found: `"../x"`, Want: "letters"}, `run name: "../x", want letters`}, // of a request: no file
		{&Unsupported{What: "place", Found: 1}, "place: 1"},
		{&Usage{Flag: "--rate", Found: -1, Want: "0 or more"}, "--rate: -1, want 0 or more"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
