package pipeline

import "time"

// Stats is the pipeline's own health at one moment. Counts are since the start.
type Stats struct {
	Uploads    int // captures that are being received now
	MaxUploads int
	Queue      int           // snapshots that wait for their measures or are being measured
	Capacity   int           // of Queue; captures beyond it are refused with ErrBusy
	Lag        time.Duration // how long the oldest of Queue has been waiting; 0 when empty

	Received  uint64 // new snapshots, on disk
	Repeated  uint64 // captures that were there already, byte for byte
	Rejected  uint64 // captures refused because the queue or the uploads were full
	Analyzed  uint64
	Failed    uint64 // snapshots without measures: the reason is in the store
	Alerts    uint64 // raised
	Delivered uint64 // alerts that a sink took
	Refused   uint64 // attempts that a sink did not take; they are made again
	Dropped   uint64 // events that a slow subscriber did not get
	Errors    uint64 // of the store, after a capture was acknowledged

	Replayed bool // alerts of the time before the start are caught up with
}
