package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
)

// Writer makes one file. Tensors go to a spool file beside it as they come, for
// the header, which is in front, needs all shapes; Close puts the two together
// under a temporary name and renames that. Memory does not grow with the tensors.
type Writer struct {
	path    string
	spool   *os.File
	out     *bufio.Writer
	entries []Tensor // Begin and End count from the first tensor's byte
	at      int
	err     error // the first failure: later calls repeat it
}

// Create starts a file. The folder must be writable: that is found out here.
// Nothing appears under path itself before Close.
func Create(path string) (*Writer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder, want a file", path)
	}
	spool, err := createBeside(path, "spool")
	if err != nil {
		return nil, err
	}
	return &Writer{path: path, spool: spool, out: bufio.NewWriterSize(spool, 1<<18)}, nil
}

// createBeside makes a new file named after path with the permissions that the
// process gives to new files, which os.CreateTemp would not.
func createBeside(path, kind string) (*os.File, error) {
	for range 100 {
		name := path + "." + strconv.FormatUint(uint64(rand.Uint32()), 36) + "." + kind
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, pathError(path, err)
		}
	}
	return nil, fmt.Errorf("%s: no free name for a temporary file beside it", path)
}

// pathError names the file that the user asked for instead of a temporary one.
func pathError(path string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	case err == nil:
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Float32s appends an F32 tensor. It panics unless the shape holds len(data).
func (w *Writer) Float32s(name string, shape []int, data []float32) error {
	return w.add(name, shape, len(data), func(i int) float32 { return data[i] })
}

// Float64s appends numbers as F32, rounded to nearest. A finite number that no
// float32 holds is an error: as infinity it would be another number.
func (w *Writer) Float64s(name string, shape []int, data []float64) error {
	for i, v := range data {
		if math.IsInf(float64(float32(v)), 0) && !math.IsInf(v, 0) {
			return w.fail(fmt.Errorf("%s: tensor %q: element %d is %g, want a number that float32 holds", w.path, name, i, v))
		}
	}
	return w.add(name, shape, len(data), func(i int) float32 { return float32(data[i]) })
}

func (w *Writer) add(name string, shape []int, n int, at func(i int) float32) error {
	t := Tensor{Name: name, DType: "F32", Shape: slices.Clone(shape), Begin: w.at, End: w.at + 4*n}
	if t.Elements() != n {
		panic(fmt.Sprintf("safetensors: %d numbers for tensor %q of shape %v", n, name, shape))
	}
	if w.err != nil {
		return w.err
	}
	if slices.ContainsFunc(w.entries, func(e Tensor) bool { return e.Name == name }) || name == "__metadata__" {
		panic(fmt.Sprintf("safetensors: tensor %q written twice", name))
	}
	var word [4]byte
	for i := range n {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(at(i)))
		if _, err := w.out.Write(word[:]); err != nil {
			return w.fail(pathError(w.path, err))
		}
	}
	w.entries, w.at = append(w.entries, t), t.End
	return nil
}

func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// Abort drops everything. After Close it does nothing.
func (w *Writer) Abort() {
	if w.spool == nil {
		return
	}
	w.spool.Close()
	os.Remove(w.spool.Name())
	w.spool = nil
	w.fail(fmt.Errorf("%s: writing has ended", w.path))
}

// Close writes the file with the metadata and gives it its name. After an error
// there is no new file, and one that was there before is as it was.
func (w *Writer) Close(metadata map[string]string) (err error) {
	defer w.Abort()
	if w.err != nil {
		return w.err
	}
	if err := w.out.Flush(); err != nil {
		return pathError(w.path, err)
	}
	if _, err := w.spool.Seek(0, io.SeekStart); err != nil {
		return pathError(w.path, err)
	}
	f, err := createBeside(w.path, "tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(w.header(metadata))
	if err == nil {
		_, err = io.Copy(f, w.spool)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), w.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return pathError(w.path, err)
	}
	return nil
}

// header returns length and JSON; metadata first and by key, tensors in order of
// writing, spaces up to a multiple of 8: the same input gives the same bytes.
func (w *Writer) header(metadata map[string]string) []byte {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(metadata) > 0 {
		b.WriteString(`"__metadata__":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quote(key))
			b.WriteByte(':')
			b.Write(quote(metadata[key]))
		}
		b.WriteByte('}')
	}
	for i, t := range w.entries {
		if i > 0 || len(metadata) > 0 {
			b.WriteByte(',')
		}
		shape, _ := json.Marshal(append([]int{}, t.Shape...)) // ints: cannot fail
		fmt.Fprintf(&b, `%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, quote(t.Name), t.DType, shape, t.Begin, t.End)
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	out := b.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	return out
}

// quote writes JSON without escapes that only HTML needs.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string: cannot fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
