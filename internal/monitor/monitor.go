// Package monitor holds the words that the training monitor's packages share:
// runs, snapshots, analyses, alerts. It knows nothing of networks, databases or
// pages, and no package of the monitor knows checkpoints or model families.
package monitor

import (
	"fmt"
	"regexp"
	"time"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Key names one snapshot: one probe sequence at one step of one run.
type Key struct {
	Run    string `json:"run"`
	Step   int64  `json:"step"`
	Sample int    `json:"sample"`
}

// String is "RUN step N", with the sample where it is not the first.
func (k Key) String() string {
	if k.Sample == 0 {
		return fmt.Sprintf("%s step %d", k.Run, k.Step)
	}
	return fmt.Sprintf("%s step %d sample %d", k.Run, k.Step, k.Sample)
}

// State says how far a snapshot has come.
type State string

// The states of a snapshot, in order; Failed takes the place of Analyzed.
const (
	Received State = "received" // on disk and acknowledged
	Analyzed State = "analyzed" // its measures are kept
	Failed   State = "failed"   // its measures cannot be made; Reason says why
)

// Snapshot is one capture as the store keeps it.
type Snapshot struct {
	Key
	Received time.Time `json:"received"` // the server's clock, for people: order is by step
	SHA256   string    `json:"sha256"`   // of the capture file, hexadecimal
	Bytes    int64     `json:"bytes"`
	State    State     `json:"state"`
	Reason   string    `json:"reason,omitempty"` // of Failed
	Pruned   bool      `json:"pruned,omitempty"` // the file is gone by retention, the measures stay
}

// maxRunName keeps names well below what any file system allows.
const maxRunName = 100

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckRun reports whether a run's name can be kept: letters, digits, ".", "_" and
// "-", a letter or digit first, at most 100 bytes. Such a name is never a path out
// of its folder.
//
// Errors: *xerr.Format.
func CheckRun(name string) error {
	if len(name) > maxRunName || !runName.MatchString(name) {
		if len(name) > maxRunName {
			name = name[:maxRunName] + "…"
		}
		return &xerr.Format{What: "run name", Found: fmt.Sprintf("%q", name),
			Want: "1 to 100 letters, digits, dots, underscores and hyphens, a letter or digit first"}
	}
	return nil
}

// MaxStep is the largest step that is kept: every integer up to it is exact in JSON.
const MaxStep = 1<<53 - 1
