package export

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// An event file is a sequence of TFRecords, each an Event message:
//
//	uint64 length | uint32 masked CRC-32C of it | data | uint32 masked CRC-32C of data
//
// all little endian (tensorflow/core/lib/io/record_writer.h, and
// tensorflow/core/util/event.proto for the message).

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is TensorFlow's: a CRC that may be stored among data with CRCs.
func maskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

func appendRecord(b, data []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b[start:]))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(data))
}

// Field numbers of Event, Summary and Summary.Value.
const (
	eventWallTime    = 1 // double, seconds
	eventStep        = 2 // int64
	eventFileVersion = 3 // string
	eventSummary     = 5
	summaryValue     = 1 // repeated
	valueTag         = 1 // string
	valueSimple      = 2 // float
)

// appendVersion is the record that every event file begins with.
func appendVersion(b []byte, wall float64) []byte {
	e := appendDouble(nil, eventWallTime, wall)
	e = protowire.AppendString(protowire.AppendTag(e, eventFileVersion, protowire.BytesType), "brain.Event:2")
	return appendRecord(b, e)
}

// point is a value under a tag.
type point struct {
	tag   string
	value float32
}

// appendEvent is the record of all points at one step.
func appendEvent(b []byte, wall float64, step int64, points []point) []byte {
	var summary []byte
	for _, p := range points {
		v := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), p.tag)
		v = protowire.AppendFixed32(protowire.AppendTag(v, valueSimple, protowire.Fixed32Type), math.Float32bits(p.value))
		summary = protowire.AppendBytes(protowire.AppendTag(summary, summaryValue, protowire.BytesType), v)
	}
	e := appendDouble(nil, eventWallTime, wall)
	e = protowire.AppendVarint(protowire.AppendTag(e, eventStep, protowire.VarintType), uint64(step))
	e = protowire.AppendBytes(protowire.AppendTag(e, eventSummary, protowire.BytesType), summary)
	return appendRecord(b, e)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}
