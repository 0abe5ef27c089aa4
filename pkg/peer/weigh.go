package peer

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"liqo.io/liqo/pkg/kube/reconcile"
)

// What the parts of an answer weigh, in bytes of memory once they are decoded. They err on the side of too much: of two bytes ("{}" and a
// comma, or an empty field of protobuf) becomes a whole Pod or container.
const (
	// perByte: the answer itself, the client's copy of it, and the decoded text.
	perByte = 3
	// perItem is an object of a list, such as a Pod, in an array that grows by doubling.
	perItem = 4 << 10
	// perElement is an object of an array inside of that, such as a container.
	perElement = 1 << 10
	// perValue is anything else: a field, an entry of a map, a nested object.
	perValue = 96
	// maxDepth is how deeply an answer may be nested.
	maxDepth = 100
	// itemDepth is how deep the objects of a list lie: the list, its array.
	itemDepth = 2
)

// scale weighs what is about to be decoded, without decoding it.
type scale struct {
	weight int64
	// depth and arrays say where in a JSON document the scale is: how deep, and which of the levels are arrays.
	depth            int
	arrays           [maxDepth]bool
	quoted, escaped  bool
	oversized, ended bool
}

// json weighs the next part of a JSON document and returns how much of it belongs to the document: all, unless it ended.
func (s *scale) json(data []byte) int {
	for i, c := range data {
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped, s.quoted = c == '\\', c != '"'
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.enter(c == '[')
		case c == ',':
			s.weight += perValue
		case c == '}' || c == ']':
			if s.depth = max(s.depth-1, 0); s.depth == 0 {
				s.weight += int64(i+1) * perByte
				s.ended = true
				return i + 1
			}
		}
		if s.oversized {
			return i
		}
	}
	s.weight += int64(len(data)) * perByte
	return len(data)
}

func (s *scale) enter(array bool) {
	if s.depth >= maxDepth {
		s.oversized = true
		return
	}
	switch {
	case array || s.depth == 0 || !s.arrays[s.depth-1]:
		s.weight += perValue
	case s.depth <= itemDepth:
		s.weight += perItem
	default:
		s.weight += perElement
	}
	s.arrays[s.depth] = array
	s.depth++
}

// envelope begins what Kubernetes sends as protobuf, and in an event once more its object.
var envelope = []byte("k8s\x00")

// protobuf weighs a message. Nothing tells text from messages there, nor arrays from maps: whatever can be read as a message counts as
// one, and what is repeated as an element.
func (s *scale) protobuf(data []byte) {
	s.weight += int64(len(data)) * perByte
	s.message(data, 0)
}

// message weighs the fields of a message up to where it cannot be read any more, as a decoder would, and tells whether it can be.
func (s *scale) message(data []byte, depth int) bool {
	if depth >= maxDepth {
		s.oversized = true
		return false
	}
	data = bytes.TrimPrefix(data, envelope)
	var seen uint64
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return false
		}
		s.weight += perValue
		if kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(data)
			bit := uint64(1) << (uint64(number) % 64)
			switch message := s.message(inner, depth+1); {
			case seen&bit == 0 || !message:
			case depth < itemDepth:
				s.weight += perItem
			default:
				s.weight += perElement
			}
			seen |= bit
		}
		if s.weight > maxWeight || s.oversized {
			s.oversized = true
			return false
		}
		data = data[n:]
	}
	return true
}

// framing cuts a body into what is decoded at once: a document or an event.
type framing interface {
	// cut returns how many bytes the first frame of a body has, and what it weighs, once it is there as a whole; until then zero and what
	// is known of its weight. At the end of the body all that is left is a frame.
	cut(data []byte, end bool) (length int, weight int64, err error)
}

func tooHeavy(why string) error { return fmt.Errorf("%w: the peer's %s", reconcile.ErrOversized, why) }

func (s *scale) verdict() error {
	switch {
	case s.oversized && s.weight <= maxWeight:
		return tooHeavy(fmt.Sprintf("is nested more than %d deep", maxDepth))
	case s.weight > maxWeight:
		return tooHeavy(fmt.Sprintf("would take more than %d MiB of memory", maxWeight>>20))
	}
	return nil
}

// jsonEvents are the events of a watch, one JSON document after the other; jsonWhole takes all of a body for one frame, which may be
// anything that a decoder makes of it.
type jsonEvents struct {
	scale scale
	done  int
	whole bool
}

func (f *jsonEvents) cut(data []byte, end bool) (int, int64, error) {
	for f.done < len(data) && (f.whole || !f.scale.ended) {
		f.done += f.scale.json(data[f.done:])
		if err := f.scale.verdict(); err != nil {
			return 0, 0, err
		}
	}
	weight := f.scale.weight
	if !end && (f.whole || !f.scale.ended) {
		return 0, weight, nil
	}
	length := f.done
	f.scale, f.done = scale{}, 0
	return length, weight, nil
}

// protoEvents are the events of a watch as protobuf, each after its length.
type protoEvents struct{}

func (protoEvents) cut(data []byte, end bool) (int, int64, error) {
	const prefix = 4
	if len(data) < prefix {
		return len(data) * one(end), 0, nil
	}
	length := binary.BigEndian.Uint32(data)
	if length > maxResponse {
		return 0, 0, tooHeavy(fmt.Sprintf("has %d bytes", length))
	}
	if len(data) < prefix+int(length) {
		return len(data) * one(end), 0, nil
	}
	frame, weight, err := protoWhole{}.cut(data[prefix:prefix+int(length)], true)
	return prefix + frame, weight, err
}

// protoWhole is one message.
type protoWhole struct{}

func (protoWhole) cut(data []byte, end bool) (int, int64, error) {
	if !end {
		return 0, 0, nil
	}
	var s scale
	s.protobuf(data)
	return len(data), s.weight, s.verdict()
}

// text is not decoded at all.
type text struct{}

func (text) cut(data []byte, end bool) (int, int64, error) {
	if len(data) > maxProse {
		return 0, 0, tooHeavy(fmt.Sprintf("is a text of more than %d bytes", maxProse))
	}
	return len(data) * one(end), int64(len(data)), nil
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
