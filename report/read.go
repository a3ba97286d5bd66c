package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// ReadJSON reads a report that WriteJSON wrote. File is for errors. Pictures of
// single heads are not in a JSON report, so profiles are absent.
//
// Errors: *xerr.Format for what is no report, *xerr.Unsupported for a report of
// another format version.
func ReadJSON(file string, data []byte) (*Report, error) {
	var head struct{ Schema string }
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, &xerr.Format{File: file, Found: err, Want: "a report in JSON", Hint: "eigenhead scan MODEL --json FILE writes one"}
	}
	if head.Schema != Schema {
		return nil, &xerr.Unsupported{File: file, What: `key "schema"`, Found: strconv.Quote(head.Schema), Want: strconv.Quote(Schema)}
	}
	var r Report
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, &xerr.Format{File: file, Found: err, Want: fmt.Sprintf("a report of %s", Schema),
			Hint: "it may come from a newer version of the program"}
	}
	return &r, nil
}
