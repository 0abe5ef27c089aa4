package registry

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestEnsure(t *testing.T) {
	counter := func(help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "writes_total", Help: help}, []string{"kind"})
	}
	gatherer := prometheus.NewRegistry()
	first, err := Ensure(gatherer, counter("Writes."))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Ensure(gatherer, counter("Writes.")); second != first || err != nil {
		t.Errorf("the second part counts in %p, the first one in %p (%v)", second, first, err)
	}
	if _, err := Ensure(gatherer, counter("Something else.")); err == nil {
		t.Error("two metrics have one name")
	}
	if _, err := Ensure(gatherer, prometheus.Collector(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "writes_total", Help: "Writes."}, []string{"kind"}))); err != nil {
		t.Error(err) // a Collector of any type may stand for it
	}
	if _, err := Ensure(gatherer, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "writes_total", Help: "Writes."}, []string{"kind"})); err == nil {
		t.Error("a counter stands for a gauge")
	}
	if alone := counter("Writes."); func() bool { got, err := Ensure(nil, alone); return got != alone || err != nil }() {
		t.Error("without a registerer it is another one")
	}
}
