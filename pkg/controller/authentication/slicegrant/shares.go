package slicegrant

import (
	"maps"
	"reflect"
	"sync/atomic"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

// Percentages are how much of what is free consumers are offered where their Tenants do not say.
type Percentages struct {
	// All consumers are offered so much; nil leaves it to capacity.DefaultPercentage.
	All *int32
	// Classes of slices are offered so much, which wins over what Tenants say. Slices of these are answered, besides those of the default class.
	Classes map[string]int32
}

// Shares are Percentages that may change while slices are answered. Make them with NewShares.
type Shares struct {
	now     atomic.Pointer[Percentages]
	changed chan event.GenericEvent
}

// NewShares returns Shares that are so at first.
func NewShares(p Percentages) *Shares {
	s := &Shares{changed: make(chan event.GenericEvent, 1)}
	s.Set(p)
	return s
}

// Set has all slices be answered by these, and tells whether they are others than before.
func (s *Shares) Set(p Percentages) (changed bool) {
	own := &Percentages{Classes: maps.Clone(p.Classes)}
	if p.All != nil {
		own.All = ptr.To(*p.All)
	}
	before := s.now.Swap(own)
	if before == nil || reflect.DeepEqual(before, own) {
		return false
	}
	select {
	case s.changed <- event.GenericEvent{Object: &authv1beta1.ResourceSlice{}}:
	default: // All slices are looked at anyway.
	}
	return true
}

// percentages are those that hold now.
func (s *Shares) percentages() *Percentages {
	if s == nil {
		return &Percentages{}
	}
	return s.now.Load()
}
