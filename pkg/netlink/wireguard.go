package netlink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqo.io/liqo/pkg/dataplane"
)

// PrivateKey is the secret of a WireGuard device.
type PrivateKey [32]byte

// String does not tell it.
func (PrivateKey) String() string { return "(secret)" }

// Public is the key that others know the device by.
func (k PrivateKey) Public() dataplane.Key { return dataplane.Key(wgtypes.Key(k).PublicKey()) }

// tunnelEnd is a WireGuard device: the kernel's, or one of this process.
type tunnelEnd interface {
	Device(name string) (*wgtypes.Device, error)
	ConfigureDevice(name string, config wgtypes.Config) error
}

// InUserSpace tells whether WireGuard devices run in this process, because the kernel has none. They end with it, and cost more.
func (k *Kernel) InUserSpace() bool {
	k.busy.Lock()
	defer k.busy.Unlock()
	return len(k.user) > 0
}

// within calls a function in the namespace; if that is not the process's own, on a thread of its own.
func (k *Kernel) within(do func() error) error {
	if !k.namespace.IsOpen() {
		return do()
	}
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		err := unix.Setns(int(k.namespace), unix.CLONE_NEWNET)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// tunnel has a WireGuard device read or configured.
func (k *Kernel) tunnel(name string, do func(tunnelEnd) error) error {
	if end, ok := k.user[name]; ok {
		return do(end)
	}
	return k.within(func() error {
		client, err := wgctrl.New()
		if err != nil {
			return err
		}
		return errors.Join(do(client), client.Close())
	})
}

// addTunnel makes a WireGuard device: in the kernel if it can, else in this process if it has the key.
func (k *Kernel) addTunnel(link dataplane.Link) error {
	err := k.route.LinkAdd(tunnelOf(link))
	private, ours := k.keys[link.Key]
	if errors.Is(err, unix.EOPNOTSUPP) {
		if !ours {
			return ErrNoWireGuard
		}
		err = k.within(func() error { return k.startUser(link) })
	}
	if err != nil {
		return err
	}
	if err := k.raise(link.Name); err != nil {
		return err
	}
	return k.setTunnel(link, private)
}

// setTunnel gives a WireGuard device its key and port, if they are ours to give.
func (k *Kernel) setTunnel(link dataplane.Link, private PrivateKey) error {
	if _, ours := k.keys[link.Key]; !ours {
		return nil
	}
	config := wgtypes.Config{PrivateKey: (*wgtypes.Key)(&private)}
	if port := int(link.Port); port != 0 {
		config.ListenPort = &port
	}
	return k.tunnel(link.Name, func(end tunnelEnd) error { return end.ConfigureDevice(link.Name, config) })
}

// readTunnel adds to a WireGuard device what it is told of it. Devices with whose keys others were trusted are as they are wanted.
func (k *Kernel) readTunnel(d *device, wanted dataplane.Link) error {
	d.Port, d.Key = wanted.Port, wanted.Key
	if _, ours := k.keys[wanted.Key]; !ours {
		d.Kind = dataplane.WireGuard
		return nil
	}
	if _, here := k.user[d.Name]; d.Kind == tunnel && !here {
		return nil // Of a process that is no more.
	}
	d.Kind = dataplane.WireGuard
	return k.tunnel(d.Name, func(end tunnelEnd) error {
		read, err := end.Device(d.Name)
		if err != nil {
			return fmt.Errorf("read WireGuard device %s: %w", d.Name, err)
		}
		d.Key = dataplane.Key(read.PublicKey)
		if wanted.Port != 0 {
			d.Port = uint16(read.ListenPort) //nolint:gosec // A port.
		}
		return nil
	})
}

// peer names a peer of a device.
func peerName(p dataplane.Peer) string { return fmt.Sprintf("peer %s of %s", p.Key, p.Device) }

// peers are those of the devices whose keys are ours.
func (k *Kernel) peers(wanted dataplane.State) resource[dataplane.Peer] {
	configure := func(p dataplane.Peer, config wgtypes.PeerConfig) error {
		config.PublicKey = wgtypes.Key(p.Key)
		return k.tunnel(p.Device, func(end tunnelEnd) error {
			return end.ConfigureDevice(p.Device, wgtypes.Config{Peers: []wgtypes.PeerConfig{config}})
		})
	}
	return resource[dataplane.Peer]{
		name: peerName,
		read: func() (all []dataplane.Peer, err error) {
			for _, link := range wanted.Links {
				if _, ours := k.keys[link.Key]; !ours || link.Kind != dataplane.WireGuard {
					continue
				}
				found, err := k.readPeers(link.Name)
				if err != nil {
					return nil, err
				}
				for _, p := range found {
					all = append(all, k.followed(p, wanted.Peers))
				}
			}
			return all, nil
		},
		put: func(p dataplane.Peer, there *dataplane.Peer) error {
			every := time.Duration(p.Keepalive) * time.Second
			config := wgtypes.PeerConfig{PersistentKeepaliveInterval: &every, ReplaceAllowedIPs: true}
			if p.Endpoint.IsValid() && (there == nil || k.endpoints[peerName(p)] != p.Endpoint) {
				config.Endpoint = net.UDPAddrFromAddrPort(p.Endpoint)
			}
			for _, prefix := range p.Allowed {
				config.AllowedIPs = append(config.AllowedIPs, *ipNet(prefix))
			}
			if err := configure(p, config); err != nil {
				return err
			}
			k.endpoints[peerName(p)] = p.Endpoint
			return nil
		},
		remove: func(p dataplane.Peer) error {
			delete(k.endpoints, peerName(p))
			return configure(p, wgtypes.PeerConfig{Remove: true})
		},
	}
}

// followed is a peer, at the endpoint that it is wanted at if it was told so before, or is to come to us: WireGuard follows a peer that moves.
func (k *Kernel) followed(there dataplane.Peer, wanted []dataplane.Peer) dataplane.Peer {
	i := slices.IndexFunc(wanted, func(p dataplane.Peer) bool { return peerName(p) == peerName(there) })
	if i >= 0 && (!wanted[i].Endpoint.IsValid() || k.endpoints[peerName(there)] == wanted[i].Endpoint) {
		there.Endpoint = wanted[i].Endpoint
	}
	return there
}

// peersOf are the wanted peers of devices whose keys are ours: others have their own process to know them.
func (k *Kernel) peersOf(wanted dataplane.State) (all []dataplane.Peer) {
	for _, p := range wanted.Peers {
		has := func(l dataplane.Link) bool {
			_, ours := k.keys[l.Key]
			return ours && l.Name == p.Device
		}
		if slices.ContainsFunc(wanted.Links, has) {
			p.Allowed = inOrderOf(p.Allowed)
			all = append(all, p)
		}
	}
	return all
}

func (k *Kernel) readPeers(name string) (all []dataplane.Peer, err error) {
	return all, k.tunnel(name, func(end tunnelEnd) error {
		read, err := end.Device(name)
		if err != nil {
			return fmt.Errorf("read peers of %s: %w", name, err)
		}
		for _, p := range read.Peers {
			found := dataplane.Peer{Device: name, Key: dataplane.Key(p.PublicKey), Keepalive: int(p.PersistentKeepaliveInterval / time.Second)}
			if p.Endpoint != nil {
				endpoint := p.Endpoint.AddrPort()
				found.Endpoint = netip.AddrPortFrom(endpoint.Addr().Unmap(), endpoint.Port())
			}
			for _, allowed := range p.AllowedIPs {
				found.Allowed = append(found.Allowed, prefixOf(&allowed))
			}
			found.Allowed = inOrderOf(found.Allowed)
			all = append(all, found)
		}
		return nil
	})
}

// Forget removes the peers of a WireGuard device whose key is ours, and with them their sessions. The next pass puts them there anew, at the
// endpoints that they are wanted at: so the next packet has the two ends greet each other, which WireGuard by itself does after 15 s of silence.
func (k *Kernel) Forget(device string) error {
	k.busy.Lock()
	defer k.busy.Unlock()
	if _, err := k.index(device); err != nil {
		return err
	}
	return k.tunnel(device, func(end tunnelEnd) error {
		for peer := range k.endpoints {
			if strings.HasSuffix(peer, " of "+device) {
				delete(k.endpoints, peer)
			}
		}
		k.forgot = true
		return end.ConfigureDevice(device, wgtypes.Config{ReplacePeers: true})
	})
}

func inOrderOf(prefixes []netip.Prefix) []netip.Prefix {
	return slices.SortedFunc(slices.Values(prefixes), netip.Prefix.Compare)
}

// tunnelGone forgets a device of this process.
func (k *Kernel) tunnelGone(name string) {
	if end, ok := k.user[name]; ok {
		end.device.Close()
		delete(k.user, name)
	}
	for peer := range k.endpoints {
		if strings.HasSuffix(peer, " of "+name) {
			delete(k.endpoints, peer)
		}
	}
}

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
