package specialize

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// WriteJSON writes the report in the form eigenhead.specialize/1, on one line.
// Equal reports give equal bytes. Errors: those of w.
func WriteJSON(w io.Writer, r *Report) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("specialize: %w", err) // a number that is not finite
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// WriteCSV writes the trajectories, one row for each run, time and head; of a
// report with phase diagrams it writes the cells, one row for each.
func WriteCSV(w io.Writer, r *Report) error {
	c := csv.NewWriter(w)
	if len(r.Diagrams) > 0 {
		writeCells(c, r)
	} else {
		writeTrajectories(c, r)
	}
	c.Flush()
	return c.Error()
}

func real(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func writeTrajectories(c *csv.Writer, r *Report) {
	head := []string{"activation", "aggregate", "bias", "engine", "t", "loss", "loss_error", "bayes", "specialization", "head", "b"}
	for f := range r.Setting.Features {
		head = append(head, fmt.Sprintf("m%d", f+1))
	}
	_ = c.Write(head) // Flush reports
	for _, run := range r.Runs {
		for _, at := range run.Trajectory {
			for h, m := range at.M {
				row := []string{string(run.Activation), string(run.Aggregate), strconv.FormatBool(run.Bias), run.Engine, real(at.Time), real(at.Loss),
					real(at.LossError), real(run.Bayes), real(at.Specialization), strconv.Itoa(h + 1), real(at.B[h])}
				for _, v := range m {
					row = append(row, real(v))
				}
				_ = c.Write(row)
			}
		}
	}
}

func writeCells(c *csv.Writer, r *Report) {
	second := "y"
	if a := r.Diagrams[0].Axes; len(a) == 2 {
		second = a[1].Name
	}
	_ = c.Write([]string{"model", r.Diagrams[0].Axes[0].Name, second, "done", "phase", "loss", "loss_error", "bayes", "learned", "split", "distinct", "reason"})
	for _, d := range r.Diagrams {
		for _, x := range d.Cells {
			_ = c.Write([]string{d.Name, real(x.X), real(x.Y), strconv.FormatBool(x.Done), x.Phase, real(x.Loss), real(x.Error), real(x.Bayes),
				strconv.Itoa(x.Learned), strconv.Itoa(x.Split), strconv.Itoa(x.Distinct), x.Reason})
		}
	}
}
