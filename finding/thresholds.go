package finding

import (
	"bytes"
	_ "embed"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

//go:embed thresholds.toml
var source string

// Source returns the embedded thresholds as TOML, with the reason for each number.
func Source() string { return source }

// Thresholds are the numbers that rules compare with. The reason for each value
// and its unit stand beside it in thresholds.toml.
type Thresholds struct {
	MaxLogit struct {
		Warn     float64 `toml:"warn"`
		Critical float64 `toml:"critical"`
	} `toml:"max-logit"`
	EntropyCollapse struct {
		Entropy   float64 `toml:"entropy"`
		NamedMass float64 `toml:"named_mass"`
	} `toml:"entropy-collapse"`
	SinkHead struct {
		Mass   float64 `toml:"mass"`
		Excess float64 `toml:"excess"`
	} `toml:"sink-head"`
	PreviousTokenHead struct {
		Mass float64 `toml:"mass"`
	} `toml:"previous-token-head"`
	InductionHead struct {
		Excess float64 `toml:"excess"`
		Ratio  float64 `toml:"ratio"`
		Z      float64 `toml:"z"`
	} `toml:"induction-head"`
	DormantHead struct {
		Share float64 `toml:"share"`
	} `toml:"dormant-head"`
	LocalizedChannel Outlier `toml:"localized-channel"`
	IncoherentKeys   Outlier `toml:"incoherent-keys"`
	RedundantPair    struct {
		Cosine  float64 `toml:"cosine"`
		Extreme float64 `toml:"extreme"`
		Z       float64 `toml:"z"`
	} `toml:"redundant-pair"`
	CollapsedResidual struct {
		Warn     float64 `toml:"warn"`
		Critical float64 `toml:"critical"`
		Cosine   float64 `toml:"cosine"`
	} `toml:"collapsed-residual"`
	Monitor Monitor `toml:"monitor"`
}

// Outlier asks for an effect size and for a z: neither is enough alone.
type Outlier struct {
	Ratio   float64 `toml:"ratio"`   // value over its null
	Z       float64 `toml:"z"`       // value's distance from its null in null spreads
	Extreme float64 `toml:"extreme"` // beyond this the finding warns
}

// Default returns the embedded thresholds.
func Default() *Thresholds {
	t, err := Load("thresholds.toml", nil)
	if err != nil {
		panic(err) // the embedded file is ours
	}
	return t
}

// Load returns the embedded thresholds with those of a user's TOML file in their
// place; name is the file's, for errors. Keys that the file leaves out keep their
// embedded value.
//
// Errors: *xerr.Format for broken TOML, for a key that no rule has (with the
// nearest one that there is) and for a number that is negative or not finite.
func Load(name string, data []byte) (*Thresholds, error) {
	t := new(Thresholds)
	if err := decode("thresholds.toml", []byte(source), t); err != nil {
		return nil, err
	}
	if err := decode(name, data, t); err != nil {
		return nil, err
	}
	return t, nil
}

func decode(name string, data []byte, t *Thresholds) error {
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(t)
	var unknown *toml.StrictMissingError
	var broken *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		key := strings.Join(unknown.Errors[0].Key(), ".")
		return &xerr.Format{File: name, What: "key " + quote(key), Found: "unknown",
			Want: "the name of a threshold, nearest " + quote(nearest(key, keys())),
			Hint: "`eigenhead rules` prints all of them"}
	case errors.As(err, &broken):
		row, col := broken.Position()
		if kind, ok := wrongType(broken.Error()); ok {
			return &xerr.Format{File: name, What: at(row, col) + ": key " + quote(strings.Join(broken.Key(), ".")),
				Found: kind, Want: "a number"}
		}
		return &xerr.Format{File: name, What: at(row, col), Found: strings.TrimPrefix(broken.Error(), "toml: "),
			Want: "TOML such as that of `eigenhead rules`"}
	case err != nil:
		return &xerr.Format{File: name, What: "TOML", Found: err.Error()}
	}
	for _, k := range keys() {
		if v := k.of(t); !(v >= 0) || math.IsInf(v, 0) {
			return &xerr.Format{File: name, What: "key " + quote(k.name), Found: v, Want: "a finite number, zero or more"}
		}
	}
	return nil
}

// wrongType is the kind of value in the decoder's complaint about a value that is
// no number; the complaint itself names our Go types.
func wrongType(complaint string) (kind string, ok bool) {
	complaint, ok = strings.CutPrefix(strings.TrimPrefix(complaint, "toml: "), "cannot decode TOML ")
	kind, _, _ = strings.Cut(complaint, " into ")
	return "a TOML " + kind, ok
}

// key is one threshold: its dotted name and the way to its number.
type key struct {
	name  string
	index []int
}

func (k key) of(t *Thresholds) float64 {
	return reflect.ValueOf(t).Elem().FieldByIndex(k.index).Float()
}

// keys lists every threshold in the order of the file.
func keys() []key { return keysOf(reflect.TypeFor[Thresholds](), "", nil) }

// keysOf lists the numbers of one table and of the tables in it.
func keysOf(table reflect.Type, name string, index []int) (list []key) {
	for i := range table.NumField() {
		f := table.Field(i)
		at, full := slices.Concat(index, []int{i}), name+f.Tag.Get("toml")
		switch {
		case f.Anonymous:
			list = append(list, keysOf(f.Type, name, at)...)
		case f.Type.Kind() == reflect.Struct:
			list = append(list, keysOf(f.Type, full+".", at)...)
		default:
			list = append(list, key{full, at})
		}
	}
	return list
}
