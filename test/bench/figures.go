package main

import (
	"math"
	"slices"
)

// Quantiles of a set of durations, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	N   int     `json:"n"`
}

// quantiles of seconds.
func quantiles(seconds []float64) Quantiles {
	if len(seconds) == 0 {
		return Quantiles{}
	}
	sorted := slices.Sorted(slices.Values(seconds))
	at := func(q float64) float64 {
		return math.Round(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]*10000) / 10
	}
	return Quantiles{P50: at(0.5), P90: at(0.9), P99: at(0.99), N: len(sorted)}
}

// median of some values; of an even number it is the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return round(sorted[middle])
	}
	return round((sorted[middle-1] + sorted[middle]) / 2)
}
