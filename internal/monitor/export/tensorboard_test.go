package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// TestRecordsAreTensorBoardsOwn compares with a file that TensorBoard's writer made.
func TestRecordsAreTensorBoardsOwn(t *testing.T) {
	want, err := os.ReadFile("testdata/events.tfevents")
	must(t, err)
	got := appendVersion(nil, 1767225600.25)
	got = appendEvent(got, 1767225601.5, 200, []point{{"energy.rank", 17.5}, {"attention.sink", float32(math.NaN())}})
	got = appendEvent(got, 1767225602, monitor.MaxStep, []point{{"größe", -1e-20}})
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	if _, err := readEvents(want); err != nil {
		t.Errorf("our reader: %v", err)
	}
}

// event is one point as read back.
type event struct {
	wall  float64
	step  int64
	tag   string
	value float32
}

// readEvents parses an event file, checking every length and CRC.
func readEvents(b []byte) ([]event, error) {
	unmask := func(v uint32) uint32 { v -= 0xa282ead8; return v>>17 | v<<15 }
	table := crc32.MakeTable(crc32.Castagnoli)
	var all []event
	for first := true; len(b) > 0; first = false {
		if len(b) < 12 || crc32.Checksum(b[:8], table) != unmask(binary.LittleEndian.Uint32(b[8:])) {
			return nil, errors.New("the length's CRC")
		}
		n := binary.LittleEndian.Uint64(b)
		if n > uint64(len(b)-16) {
			return nil, fmt.Errorf("length %d of %d", n, len(b)-16)
		}
		data := b[12 : 12+n]
		if crc32.Checksum(data, table) != unmask(binary.LittleEndian.Uint32(b[12+n:])) {
			return nil, errors.New("the data's CRC")
		}
		b = b[16+n:]
		events, version, err := readEvent(data)
		if err != nil || first != (version == "brain.Event:2") {
			return nil, fmt.Errorf("record of version %q: %v", version, err)
		}
		all = append(all, events...)
	}
	return all, nil
}

// fields calls visit with each field of a message.
func fields(b []byte, visit func(n protowire.Number, value []byte, number uint64)) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var number uint64
		var value []byte
		switch kind {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			number, size = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var v uint32
			v, size = protowire.ConsumeFixed32(b)
			number = uint64(v)
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("wire type %d", kind)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		visit(n, value, number)
		b = b[size:]
	}
	return nil
}

func readEvent(data []byte) (all []event, version string, err error) {
	var base event
	var errs []error
	errs = append(errs, fields(data, func(n protowire.Number, value []byte, number uint64) {
		switch n {
		case 1:
			base.wall = math.Float64frombits(number)
		case 2:
			base.step = int64(number)
		case 3:
			version = string(value)
		case 5:
			errs = append(errs, fields(value, func(_ protowire.Number, v []byte, _ uint64) {
				e := base
				errs = append(errs, fields(v, func(n protowire.Number, text []byte, number uint64) {
					if n == 1 {
						e.tag = string(text)
					} else {
						e.value = math.Float32frombits(uint32(number))
					}
				}))
				all = append(all, e)
			}))
		}
	}))
	return all, version, errors.Join(errs...)
}

// lines are the points of an exported folder, as testdata/events.py prints them.
func lines(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		must(t, err)
		events, err := readEvents(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		run, err := filepath.Rel(dir, filepath.Dir(path))
		must(t, err)
		for _, e := range events {
			value := binary.LittleEndian.AppendUint32(nil, math.Float32bits(e.value))
			out = append(out, fmt.Sprintf("%s %s %d %x", filepath.ToSlash(run), e.tag, e.step, value))
		}
		return nil
	}))
	sort.Strings(out)
	return out
}

func hexOf(v float32) string {
	return fmt.Sprintf("%x", binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

func TestTensorBoard(t *testing.T) {
	s := filled(t)
	dir := filepath.Join(t.TempDir(), "tb")
	must(t, TensorBoard(context.Background(), dir, s, []string{"a", "b"}))
	var want []string
	for _, folder := range []string{"a", "a/sample-1"} {
		for _, step := range []int64{0, 200} {
			if step == 0 && folder != "a" {
				continue
			}
			x := float32(float64(step) / 3)
			want = append(want, fmt.Sprintf("%s/L0H1 energy.rank %d %s", folder, step, hexOf(x)),
				fmt.Sprintf("%s/L0H1 attention.sink %d %s", folder, step, hexOf(0)),
				fmt.Sprintf("%s/L12KV3 key.incoherence %d %s", folder, step, hexOf(1.5)),
				fmt.Sprintf("%s/L0 residual.cosine %d %s", folder, step, hexOf(float32(-float64(step)/3))))
		}
	}
	want = slices.DeleteFunc(want, func(l string) bool { return strings.HasPrefix(l, "a/L0 residual.cosine 0") })
	want = append(want, "a/L0 residual.cosine 0 "+hexOf(float32(math.Copysign(0, -1))))
	for _, run := range []string{"a", "b"} {
		want = append(want, run+" loss 100 "+hexOf(2.5), run+" lr 100 "+hexOf(1e-3),
			run+" loss 300 "+hexOf(float32(math.NaN())), run+" x 300 "+hexOf(float32(math.Inf(1))))
	}
	sort.Strings(want)
	if got := lines(t, dir); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left over: %v (%v)", entries, err)
	}
	var usage *xerr.Usage
	if err := TensorBoard(context.Background(), dir, s, []string{"b"}); !errors.As(err, &usage) {
		t.Errorf("a second export into one folder: %v, want *xerr.Usage", err)
	}
}

// TestTensorBoardReadsIt asks the real one, where it is installed.
func TestTensorBoardReadsIt(t *testing.T) {
	python := os.Getenv("EIGENHEAD_TENSORBOARD_PYTHON")
	if python == "" {
		t.Skip("needs EIGENHEAD_TENSORBOARD_PYTHON, a Python that has tensorboard")
	}
	dir := filepath.Join(t.TempDir(), "tb")
	must(t, TensorBoard(context.Background(), dir, filled(t), []string{"a", "b"}))
	out, err := exec.Command(python, "testdata/events.py", "read", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		got = append(got, line[:strings.LastIndexByte(line, ' ')]) // without the time
	}
	sort.Strings(got)
	if want := lines(t, dir); !reflect.DeepEqual(got, want) {
		t.Errorf("TensorBoard reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTimesOfPoints: a snapshot's own, and for a scalar the snapshot's before it.
func TestTimesOfPoints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tb")
	s := filled(t)
	must(t, TensorBoard(context.Background(), dir, s, []string{"a"}))
	first, err := s.Snapshot(context.Background(), monitor.Key{Run: "a"})
	must(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "a", "events.out.tfevents.*.eigenhead"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v (%v)", files, err)
	}
	data, err := os.ReadFile(files[0])
	must(t, err)
	events, err := readEvents(data)
	must(t, err)
	if want := float64(first.Received.UnixNano()) / 1e9; events[0].step != 100 || events[0].wall != want {
		t.Errorf("step 100 at %v, want %v, when step 0 came", events[0].wall, want)
	}
}

// TestLongRunsAreFlushed: more than a buffer for one place, in order.
func TestLongRunsAreFlushed(t *testing.T) {
	s := filled(t)
	ctx := context.Background()
	var all []monitor.Scalars
	for step := range int64(5000) {
		all = append(all, monitor.Scalars{Step: step, Values: map[string]float64{"loss": float64(step)}})
	}
	must(t, s.SaveScalars(ctx, "c", all))
	dir := filepath.Join(t.TempDir(), "tb")
	must(t, TensorBoard(ctx, dir, s, []string{"c"}))
	files, err := filepath.Glob(filepath.Join(dir, "c", "*"))
	must(t, err)
	data, err := os.ReadFile(files[0])
	must(t, err)
	events, err := readEvents(data)
	if err != nil || len(events) != 5000 || len(data) < 2*flushAt {
		t.Fatalf("%d events in %d bytes (%v)", len(events), len(data), err)
	}
	for i, e := range events {
		if e.step != int64(i) || e.value != float32(i) {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
}

// TestAPlaceIsNeverAPathOut: a store that another program wrote may hold anything.
func TestAPlaceIsNeverAPathOut(t *testing.T) {
	s := filled(t)
	ctx := context.Background()
	k := monitor.Key{Run: "evil"}
	st, err := s.Stage(strings.NewReader("x"), 10)
	must(t, err)
	_, _, err = s.Commit(ctx, st, k)
	must(t, err, s.SaveAnalysis(ctx, &monitor.Analysis{Key: k, Values: []monitor.Value{{Where: "../../up", Measure: "m", Value: 1}}}))
	root := t.TempDir()
	var unsupported *xerr.Unsupported
	if err := TensorBoard(ctx, filepath.Join(root, "a", "b"), s, []string{"evil"}); !errors.As(err, &unsupported) {
		t.Errorf("%v, want *xerr.Unsupported", err)
	}
	if left := len(lines(t, root)); left > 0 {
		t.Errorf("%d points written", left)
	}
}
