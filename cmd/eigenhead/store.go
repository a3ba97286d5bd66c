package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor/export"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// storeCmd looks after what the training monitor keeps.
type storeCmd struct {
	Check  storeCheckCmd  `cmd:"" help:"Compare database, files and hashes; changes nothing, and may run beside a server."`
	Repair storeRepairCmd `cmd:"" help:"Mend what check finds; no server may hold the store."`
	Export storeExportCmd `cmd:"" help:"Write measures and scalars as CSV, Parquet or TensorBoard event files."`
	Retain storeRetainCmd `cmd:"" help:"Remove old captures; measures stay."`
}

// storeCheckCmd finds damage.
type storeCheckCmd struct {
	Dir  string `arg:"" help:"The monitor's folder: --data of serve and watch."`
	JSON string `name:"json" placeholder:"FILE" help:"Write {problems: [{kind, key, path, text}]} there; - is standard output."`
}

// Help is the long help, with an example that works as it stands.
func (storeCheckCmd) Help() string {
	return `Reads the whole database and every capture: SQLite's own check, every analysis decoded,
every capture against the hash that was acknowledged, files that nothing refers to.
Exit code 1 where there is a problem.

Examples:
  eigenhead store check monitor
  eigenhead store check monitor --json -`
}

// Run prints one line for each problem.
func (c *storeCheckCmd) Run(e *env) error {
	problems, err := c.check(e)
	if err != nil {
		return err
	}
	if c.JSON != "" {
		err = e.writeFile(c.JSON, func(w writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(map[string]any{"problems": append([]store.Problem{}, problems...)})
		})
		if err != nil {
			return err
		}
	}
	if c.JSON != "-" {
		for _, p := range problems {
			fmt.Fprintln(e.stdout, p)
		}
		fmt.Fprintf(e.stdout, "%s\n", verdict(len(problems), c.Dir))
	}
	if len(problems) > 0 {
		return errFindings
	}
	return nil
}

func verdict(problems int, dir string) string {
	switch problems {
	case 0:
		return "no problem found"
	case 1:
		return "1 problem: eigenhead store repair " + dir
	}
	return fmt.Sprintf("%d problems: eigenhead store repair %s", problems, dir)
}

// check opens the store read-only. A database that cannot be opened is a problem
// like others.
func (c *storeCheckCmd) check(e *env) ([]store.Problem, error) {
	damaged := func(err error) ([]store.Problem, error) {
		if corrupt, ok := errors.AsType[*store.ErrCorrupt](err); ok {
			return []store.Problem{{Kind: store.DatabaseDamaged, Path: "eigenhead.db", Text: corrupt.Err.Error()}}, nil
		}
		return nil, orInterrupt(e, err)
	}
	s, err := store.Open(c.Dir, &store.Options{ReadOnly: true})
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = s.Close() }() // it only read
	problems, err := s.Check(e.ctx)
	if err != nil {
		return damaged(err)
	}
	return problems, nil
}

// orInterrupt is the interrupt where that is why SQLite stopped.
func orInterrupt(e *env, err error) error {
	if err != nil && e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	return err
}

// storeRepairCmd mends damage.
type storeRepairCmd struct {
	Dir string `arg:"" help:"The monitor's folder: --data of serve and watch."`
}

// Help is the long help, with an example that works as it stands.
func (storeRepairCmd) Help() string {
	return `Prints each problem and what was done. Nothing that may still be wanted is deleted: it is
moved to the folder "lost" within DIR. A capture that is gone leaves its measures, or can
be sent again; one without a row is taken in, and measured at the next start of serve. A
database that SQLite cannot read is made anew, of the rows that can be read and of the
captures.

Example:
  eigenhead store repair monitor`
}

// Run repairs in place, and rebuilds where that is not enough.
func (c *storeRepairCmd) Run(e *env) error {
	err := c.repair(e)
	corrupt, broken := errors.AsType[*store.ErrCorrupt](err)
	if !broken {
		return orInterrupt(e, err)
	}
	fmt.Fprintf(e.stdout, "%s: %v\n", store.DatabaseDamaged, corrupt.Err)
	r, err := store.Rebuild(e.ctx, c.Dir, nil)
	if err != nil {
		return orInterrupt(e, err)
	}
	fmt.Fprintf(e.stdout, "database made anew: %d snapshots, %d of them with measures, and %d alerts were read; the damaged one is %s\n",
		r.Rows["snapshots"], r.Rows["analyses"], r.Rows["alerts"], r.Old)
	for _, line := range r.Done {
		fmt.Fprintln(e.stdout, line)
	}
	return nil
}

func (c *storeRepairCmd) repair(e *env) error {
	s, err := store.Open(c.Dir, &store.Options{Name: "eigenhead store repair", Existing: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // each repair is durable by itself
	problems, err := s.Check(e.ctx)
	if err != nil {
		return err
	}
	done, err := s.Repair(e.ctx, problems)
	for i, text := range done {
		fmt.Fprintf(e.stdout, "%s: %s\n", problems[i], text)
	}
	if err == nil {
		fmt.Fprintf(e.stdout, "%d repaired\n", len(done))
	}
	return err
}

// storeExportCmd writes what is kept for other programs.
type storeExportCmd struct {
	Dir         string   `arg:"" help:"The monitor's folder: --data of serve and watch."`
	Runs        []string `name:"run" placeholder:"RUN" help:"Only that run; may be given more than once. Default: all."`
	CSV         string   `name:"csv" placeholder:"FILE" help:"One row for each number; - is standard output."`
	Parquet     string   `placeholder:"FILE" help:"The same as Parquet."`
	TensorBoard string   `name:"tensorboard" placeholder:"DIR" help:"Event files: a folder for each run, and in it one for each head."`
}

// Help is the long help, with examples that work as they stand.
func (storeExportCmd) Help() string {
	return `Columns: run, step, sample, where, layer, head, kv_head, measure, value, null, null_sd, z.
A scalar of the trainer is the measure "scalar.NAME" at "run". May run beside a server.

Examples:
  eigenhead store export monitor --csv - | head
  eigenhead store export monitor --run mine --parquet mine.parquet
  eigenhead store export monitor --tensorboard events && tensorboard --logdir events`
}

// Run writes each format that is asked for.
func (c *storeExportCmd) Run(e *env) error {
	if c.CSV == "" && c.Parquet == "" && c.TensorBoard == "" {
		return &xerr.Usage{Flag: "store export", Found: "no format", Want: "--csv, --parquet or --tensorboard"}
	}
	s, err := store.Open(c.Dir, &store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it only read
	runs, err := c.choose(e, s)
	if err == nil && c.CSV != "" {
		err = e.writeFile(c.CSV, func(w writer) error { return export.CSV(e.ctx, w, s, runs) })
	}
	if err == nil && c.Parquet != "" {
		err = e.writeFile(c.Parquet, func(w writer) error { return export.Parquet(e.ctx, w, s, runs) })
	}
	if err == nil && c.TensorBoard != "" {
		err = export.TensorBoard(e.ctx, c.TensorBoard, s, runs)
	}
	return orInterrupt(e, err)
}

// choose returns the runs that are asked for, by default all, by name.
func (c *storeExportCmd) choose(e *env, s *store.Store) ([]string, error) {
	all, err := s.Runs(e.ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var names []string
	for _, r := range all {
		known[r.Name] = true
		names = append(names, r.Name)
	}
	slices.Sort(names)
	for _, name := range c.Runs {
		if !known[name] {
			return nil, &xerr.Usage{Flag: "--run " + name, Found: "not in the store", Want: fmt.Sprintf("one of %q", names)}
		}
	}
	if len(c.Runs) > 0 {
		return c.Runs, nil
	}
	return names, nil
}

// storeRetainCmd removes captures once; serve does it all the time.
type storeRetainCmd struct {
	Dir   string        `arg:"" help:"The monitor's folder: --data of serve and watch."`
	Age   time.Duration `placeholder:"720h" help:"Remove capture files older than that."`
	Count int           `placeholder:"N" help:"Keep the files of that many captures of a run."`
	Bytes bytesFlag     `placeholder:"SIZE" help:"Keep that much of capture files."`
}

// Help is the long help, with an example that works as it stands.
func (storeRetainCmd) Help() string {
	return `A capture that is not measured yet is never removed, nor are those of a run's last step.
A running server does the same with --retain-age, --retain-count and --retain-bytes.

Example:
  eigenhead store retain monitor --age 720h --bytes 50GiB`
}

// Run removes what is past its time.
func (c *storeRetainCmd) Run(e *env) error {
	if c.Age < 0 || c.Count < 0 || c.Age == 0 && c.Count == 0 && c.Bytes == 0 {
		return &xerr.Usage{Flag: "--age, --count, --bytes", Found: fmt.Sprintf("%v, %d, %d", c.Age, c.Count, c.Bytes), Want: "at least one above 0, none below"}
	}
	s, err := store.Open(c.Dir, &store.Options{Name: "eigenhead store retain", Existing: true})
	if err != nil {
		return err
	}
	removed, err := s.Retain(e.ctx, store.Retention{Age: c.Age, Count: c.Count, Bytes: int64(c.Bytes)})
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	fmt.Fprintf(e.stdout, "%d captures removed\n", removed)
	return orInterrupt(e, err)
}
