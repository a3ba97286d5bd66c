package ingest

import "github.com/eigenhead/eigenhead/internal/monitor"

// Lines reads scalars as POST …/scalars does, for those that find them in a file.
//
// Errors: *xerr.Format with the line's number.
func Lines(data []byte) ([]monitor.Scalars, error) { return parseScalars(data) }
