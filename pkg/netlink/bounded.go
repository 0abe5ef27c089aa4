package netlink

import (
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"

	"liqo.io/liqo/pkg/kube/signal"
)

// WireGuard in user space has a buffer of 64 KiB for each packet that is on its way through the process, and takes as many as there are: a few
// connections at full speed would have the process hold hundreds of megabytes, until its container is killed. So it is given no more than can be
// worked off; the rest waits in the kernel, whose buffers are as large as packets.
const (
	// batch is how many packets WireGuard is given at once: those of one segment of 64 KiB, cut to 1400 bytes.
	batch = 48
	// underWay is how many packets may be under way in one direction before more are taken.
	underWay = 2 * batch
	// stalled is after how long without progress those that were under way are taken for lost: WireGuard drops some without telling.
	stalled = 20 * time.Millisecond
	// largest is how long a packet of a tunnel may be, in bytes, and the datagram that carries it: no network between nodes takes longer ones.
	largest = 16 << 10
	// whole is how long a datagram may be that the kernel made of several.
	whole = 64 << 10
	// coalesced is how many such datagrams are read at once at most, into the last buffers.
	coalesced = 2
)

// window counts the packets that are under way in one direction.
type window struct {
	busy  sync.Mutex
	count int
	moved signal.Signal
}

func newWindow() *window { return &window{moved: signal.New()} }

func (w *window) full() bool {
	w.busy.Lock()
	defer w.busy.Unlock()
	return w.count >= underWay
}

// enter adds packets, as soon as there is room.
func (w *window) enter(packets int) {
	for w.full() {
		timer := time.NewTimer(stalled)
		select {
		case <-w.moved:
			timer.Stop()
		case <-timer.C:
			w.leave(underWay)
		}
	}
	w.busy.Lock()
	defer w.busy.Unlock()
	w.count += packets
}

// leave takes packets off.
func (w *window) leave(packets int) {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.count = max(w.count-packets, 0)
	w.moved.Raise()
}

// buffered are packets that were read at once, to be passed on in batches. It is used by one goroutine.
type buffered struct {
	packets   [][]byte
	sizes     []int
	endpoints []conn.Endpoint
	// first and last are those that were not passed on yet; err is what comes after them.
	first, last int
	err         error
}

func newBuffered() *buffered {
	b := &buffered{packets: make([][]byte, conn.IdealBatchSize), sizes: make([]int, conn.IdealBatchSize), endpoints: make([]conn.Endpoint, conn.IdealBatchSize)}
	for i := range b.packets {
		size := largest
		if i >= len(b.packets)-coalesced {
			size = whole
		}
		b.packets[i] = make([]byte, size)
	}
	return b
}

// pass passes packets on, read by a function if there are none, when there is room for them.
func (b *buffered) pass(room *window, read func() (int, error), into [][]byte, sizes []int, endpoints []conn.Endpoint, offset int) (int, error) {
	if b.first == b.last {
		b.first = 0
		b.last, b.err = read()
	}
	count := min(b.last-b.first, len(into))
	if count > 0 {
		room.enter(count)
	}
	for i := range count {
		from := b.first + i
		sizes[i] = copy(into[i][offset:], b.packets[from][:b.sizes[from]])
		if endpoints != nil {
			endpoints[i] = b.endpoints[from]
		}
	}
	b.first += count
	if b.first < b.last {
		return count, nil
	}
	return count, b.err
}

// boundedTUN is a TUN device that waits while there is no room.
type boundedTUN struct {
	tun.Device
	read    *buffered
	out, in *window
}

// BatchSize implements tun.Device.
func (t *boundedTUN) BatchSize() int { return min(batch, t.Device.BatchSize()) }

// Read implements tun.Device.
func (t *boundedTUN) Read(into [][]byte, sizes []int, offset int) (int, error) {
	return t.read.pass(t.out, func() (int, error) { return t.Device.Read(t.read.packets, t.read.sizes, 0) }, into, sizes, nil, offset)
}

// Write implements tun.Device.
func (t *boundedTUN) Write(packets [][]byte, offset int) (int, error) {
	defer t.in.leave(len(packets))
	return t.Device.Write(packets, offset)
}

// boundedBind are sockets that wait while there is no room.
type boundedBind struct {
	conn.Bind
	out, in *window
}

// BatchSize implements conn.Bind.
func (b *boundedBind) BatchSize() int { return min(batch, b.Bind.BatchSize()) }

// Send implements conn.Bind.
func (b *boundedBind) Send(packets [][]byte, to conn.Endpoint) error {
	defer b.out.leave(len(packets))
	return b.Bind.Send(packets, to)
}

// Open implements conn.Bind.
func (b *boundedBind) Open(port uint16) ([]conn.ReceiveFunc, uint16, error) {
	receive, port, err := b.Bind.Open(port)
	for i, from := range receive {
		read := newBuffered()
		receive[i] = func(into [][]byte, sizes []int, endpoints []conn.Endpoint) (int, error) {
			return read.pass(b.in, func() (int, error) { return from(read.packets, read.sizes, read.endpoints) }, into, sizes, endpoints, 0)
		}
	}
	return receive, port, err
}

// bounded are a TUN device and sockets between which no more packets are under way than can be worked off.
func bounded(device tun.Device, sockets conn.Bind) (tun.Device, conn.Bind) {
	out, in := newWindow(), newWindow()
	return &boundedTUN{device, newBuffered(), out, in}, &boundedBind{sockets, out, in}
}
