package netlink

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	wireguard "golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqo.io/liqo/pkg/dataplane"
)

// userEnd is a WireGuard device of this process. It is spoken to as any is, by lines of text.
type userEnd struct{ device *wireguard.Device }

// startUser makes one. Its sockets are those of the process: the namespace has to be the process's own.
func (k *Kernel) startUser(link dataplane.Link) error {
	k.tunnelGone(link.Name)
	made, err := tun.CreateTUN(link.Name, link.MTU)
	if err != nil {
		return fmt.Errorf("%w, and no TUN device either: %w", ErrNoWireGuard, err)
	}
	device, sockets := bounded(made, conn.NewDefaultBind())
	k.user[link.Name] = userEnd{wireguard.NewDevice(device, sockets, wireguard.NewLogger(wireguard.LogLevelSilent, ""))}
	return nil
}

// ConfigureDevice sets what a configuration has.
func (u userEnd) ConfigureDevice(_ string, config wgtypes.Config) error {
	var b strings.Builder
	if config.PrivateKey != nil {
		fmt.Fprintf(&b, "private_key=%x\n", config.PrivateKey[:])
	}
	if config.ListenPort != nil {
		fmt.Fprintf(&b, "listen_port=%d\n", *config.ListenPort)
	}
	if config.ReplacePeers {
		b.WriteString("replace_peers=true\n")
	}
	for _, p := range config.Peers {
		fmt.Fprintf(&b, "public_key=%x\n", p.PublicKey[:])
		if p.Remove {
			b.WriteString("remove=true\n")
			continue
		}
		if p.Endpoint != nil {
			fmt.Fprintf(&b, "endpoint=%s\n", p.Endpoint)
		}
		if p.PersistentKeepaliveInterval != nil {
			fmt.Fprintf(&b, "persistent_keepalive_interval=%d\n", *p.PersistentKeepaliveInterval/time.Second)
		}
		fmt.Fprintf(&b, "replace_allowed_ips=%t\n", p.ReplaceAllowedIPs)
		for _, allowed := range p.AllowedIPs {
			fmt.Fprintf(&b, "allowed_ip=%s\n", &allowed)
		}
	}
	return u.device.IpcSet(b.String())
}

// Device reads the device.
func (u userEnd) Device(name string) (*wgtypes.Device, error) {
	text, err := u.device.IpcGet()
	if err != nil {
		return nil, err
	}
	read := &wgtypes.Device{Name: name, Type: wgtypes.Userspace}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		what, value, _ := strings.Cut(lines.Text(), "=")
		if err := readLine(read, what, value); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return read, nil
}

// readLine takes one line of what a device tells. What comes after a public key is about that peer.
func readLine(read *wgtypes.Device, what, value string) (err error) {
	if what == "public_key" {
		read.Peers = append(read.Peers, wgtypes.Peer{})
	}
	p := &wgtypes.Peer{}
	if len(read.Peers) > 0 {
		p = &read.Peers[len(read.Peers)-1]
	}
	switch what {
	case "private_key":
		if read.PrivateKey, err = readKey(value); err == nil {
			read.PublicKey = read.PrivateKey.PublicKey()
		}
	case "listen_port":
		read.ListenPort, err = strconv.Atoi(value)
	case "public_key":
		p.PublicKey, err = readKey(value)
	case "endpoint":
		var endpoint netip.AddrPort
		endpoint, err = netip.ParseAddrPort(value)
		p.Endpoint = net.UDPAddrFromAddrPort(endpoint)
	case "persistent_keepalive_interval":
		var seconds int
		seconds, err = strconv.Atoi(value)
		p.PersistentKeepaliveInterval = time.Duration(seconds) * time.Second
	case "rx_bytes":
		p.ReceiveBytes, err = strconv.ParseInt(value, 10, 64)
	case "tx_bytes":
		p.TransmitBytes, err = strconv.ParseInt(value, 10, 64)
	case "last_handshake_time_sec":
		var seconds int64
		if seconds, err = strconv.ParseInt(value, 10, 64); seconds > 0 {
			p.LastHandshakeTime = time.Unix(seconds, 0)
		}
	case "allowed_ip":
		var prefix netip.Prefix
		prefix, err = netip.ParsePrefix(value)
		p.AllowedIPs = append(p.AllowedIPs, *ipNet(prefix))
	}
	return err
}

func readKey(text string) (wgtypes.Key, error) {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return wgtypes.Key{}, err
	}
	return wgtypes.NewKey(raw)
}
