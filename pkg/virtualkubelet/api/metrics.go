package api

import (
	"bufio"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what the endpoint answered; a nil *metrics counts nothing.
type metrics struct {
	requests *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, slots slots) (*metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	m := &metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liqo_virtual_kubelet_api_requests_total",
		Help: "Requests to the kubelet API of the virtual node by route and HTTP status; 101 is an accepted stream.",
	}, []string{"route", "code"})}
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "liqo_virtual_kubelet_api_streams",
		Help: "Streams to the provider (logs, exec, attach, port-forward) that run now.",
	}, func() float64 { return float64(len(slots)) })
	for _, collector := range []prometheus.Collector{m.requests, streams} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// counted counts the answers of a route.
func (m *metrics) counted(route string, next http.Handler) http.Handler {
	if m == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(recorder, r)
		m.requests.WithLabelValues(route, strconv.Itoa(recorder.code)).Inc()
	})
}

// statusRecorder remembers the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Hijack counts as an accepted stream: the WebSocket libraries write the 101 themselves.
func (s *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.code = http.StatusSwitchingProtocols
	return http.NewResponseController(s.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController flush.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
