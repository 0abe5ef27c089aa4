// Command relay makes a link slow: each packet that a TUN device gives it goes back to the device some time later. It stands in for netem, which
// many kernels do not have.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// queue is how many packets are on their way at most; what comes then is lost. It is that of netem.
const queue = 1000

// largest is how long a packet of IPv4 can be, in bytes.
const largest = 65535

// packet is one that is on its way.
type packet struct {
	due  time.Time
	data []byte
}

func main() {
	device := pflag.String("device", "", "TUN device, which exists already and whose end is the relay's")
	delay := pflag.Duration("delay", 0, "how long each packet takes")
	pflag.Parse()
	if err := relay(*device, *delay); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// relay works until the device goes.
func relay(device string, delay time.Duration) error {
	tun, err := attach(device)
	if err != nil {
		return fmt.Errorf("attaching to TUN device %s: %w", device, err)
	}
	defer tun.Close()
	moving := make(chan packet, queue)
	go func() {
		for p := range moving {
			time.Sleep(time.Until(p.due))
			_, _ = tun.Write(p.data) // What a device does not take is lost, as on any link.
		}
	}()
	buffer := make([]byte, largest)
	for {
		n, err := tun.Read(buffer)
		if errors.Is(err, unix.EBADFD) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading packets of TUN device %s: %w", device, err)
		}
		select {
		case moving <- packet{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}:
		default:
		}
	}
}

func attach(device string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(device)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), device), nil
}
