package netlink

import (
	"fmt"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"liqo.io/liqo/pkg/dataplane"
)

// Traffic is what a tunnel carried, as WireGuard counts it.
type Traffic struct {
	// Received and Sent are in bytes.
	Received, Sent uint64
	// Handshake is when the two ends last agreed on keys; the zero time if they never did.
	Handshake time.Time
}

// Traffic reads what a WireGuard device whose key is ours carried.
func (k *Kernel) Traffic(device string) (total Traffic, err error) {
	k.busy.Lock()
	defer k.busy.Unlock()
	return total, k.tunnel(device, func(end tunnelEnd) error {
		read, err := end.Device(device)
		if err != nil {
			return fmt.Errorf("read WireGuard device %s: %w", device, err)
		}
		for i := range read.Peers {
			p := &read.Peers[i]
			total.Received += uint64(max(p.ReceiveBytes, 0)) //nolint:gosec // Not negative.
			total.Sent += uint64(max(p.TransmitBytes, 0))    //nolint:gosec // Not negative.
			if p.LastHandshakeTime.After(total.Handshake) {
				total.Handshake = p.LastHandshakeTime
			}
		}
		return nil
	})
}

// Counted is how many packets the counters of our firewall have counted, by their names. A table that is not there counts nothing.
func (k *Kernel) Counted() (map[string]uint64, error) {
	k.busy.Lock()
	defer k.busy.Unlock()
	connection, err := k.firewall()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	counted := map[string]uint64{}
	tables, err := connection.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	for _, t := range tables {
		if t.Name != dataplane.FirewallTable {
			continue
		}
		objects, err := connection.GetNamedObjects(t)
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		for _, object := range objects {
			named, ok := object.(*nftables.NamedObj)
			if !ok {
				continue
			}
			if counter, ok := named.Obj.(*expr.Counter); ok {
				counted[named.Name] += counter.Packets
			}
		}
	}
	return counted, nil
}
