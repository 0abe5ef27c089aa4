// Package signal tells a loop that something changed. What changes before the loop takes the signal is one.
package signal

// Signal is received from by one loop. Make it with New.
type Signal chan struct{}

// New makes one.
func New() Signal { return make(Signal, 1) }

// Raise tells that something changed. It does not block.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}
