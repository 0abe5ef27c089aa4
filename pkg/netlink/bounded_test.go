package netlink

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"
)

// manyTUN is a device that always has packets, each with its number.
type manyTUN struct {
	tun.Device
	last byte
	err  error
}

func (*manyTUN) BatchSize() int { return conn.IdealBatchSize }

func (d *manyTUN) Read(packets [][]byte, sizes []int, offset int) (int, error) {
	for i := range packets {
		d.last++
		packets[i][offset], sizes[i] = d.last, 1
	}
	return len(packets), d.err
}

func (*manyTUN) Write(packets [][]byte, _ int) (int, error) { return len(packets), nil }

// manyBind are sockets that always have datagrams, each with its number.
type manyBind struct {
	conn.Bind
	device manyTUN
}

func (*manyBind) BatchSize() int { return conn.IdealBatchSize }

func (*manyBind) Send([][]byte, conn.Endpoint) error { return nil }

func (b *manyBind) Open(port uint16) ([]conn.ReceiveFunc, uint16, error) {
	return []conn.ReceiveFunc{func(packets [][]byte, sizes []int, from []conn.Endpoint) (int, error) {
		for i := range from {
			from[i] = &conn.StdNetEndpoint{}
		}
		return b.device.Read(packets, sizes, 0)
	}}, port, nil
}

// Of what is always there no more is taken than may be under way, in either direction, and nothing is lost or turned round; what is worked off makes
// room.
func TestWireGuardTakesNoMoreThanItCanWorkOff(t *testing.T) {
	type direction struct {
		read func(into [][]byte, sizes []int) (int, error)
		done func(packets [][]byte)
	}
	for name, of := range map[string]func(*testing.T, tun.Device, conn.Bind) direction{
		"to the peer": func(_ *testing.T, device tun.Device, bind conn.Bind) direction {
			return direction{
				func(into [][]byte, sizes []int) (int, error) { return device.Read(into, sizes, 16) },
				func(packets [][]byte) { _ = bind.Send(packets, nil) },
			}
		},
		"from the peer": func(t *testing.T, device tun.Device, bind conn.Bind) direction {
			receive, _, err := bind.Open(0)
			if err != nil {
				t.Fatal(err)
			}
			from := make([]conn.Endpoint, batch)
			return direction{
				func(into [][]byte, sizes []int) (int, error) { return receive[0](into, sizes, from) },
				func(packets [][]byte) { _, _ = device.Write(packets, 0) },
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				device, bind := bounded(&manyTUN{}, &manyBind{})
				if device.BatchSize() != batch || bind.BatchSize() != batch {
					t.Fatalf("batches of %d and %d", device.BatchSize(), bind.BatchSize())
				}
				d := of(t, device, bind)
				into, sizes := make([][]byte, batch), make([]int, batch)
				for i := range into {
					into[i] = make([]byte, 32)
				}
				taken, expected := make(chan int), byte(0)
				go func() {
					for range 6 {
						count, _ := d.read(into, sizes)
						for i := range count {
							expected++
							if at := into[i][0] + into[i][16]; at != expected || sizes[i] != 1 {
								t.Errorf("packet %d of %d bytes in place of %d", at, sizes[i], expected)
							}
						}
						taken <- count
					}
				}()
				begun, total := time.Now(), 0
				for total < underWay {
					total += <-taken
				}
				if time.Since(begun) != 0 || total >= underWay+batch {
					t.Errorf("%d packets are under way after %s", total, time.Since(begun))
				}
				synctest.Wait()
				select {
				case <-taken:
					t.Error("more is taken although nothing was worked off")
				default:
				}
				d.done(make([][]byte, batch))
				<-taken // What was left of the first 128, which leaves room for others.
				if <-taken; time.Since(begun) != 0 {
					t.Errorf("what makes room was noticed after %s", time.Since(begun))
				}
				// What is lost on its way makes room, too, after a while.
				if <-taken; time.Since(begun) != stalled {
					t.Errorf("what was lost was noticed after %s", time.Since(begun))
				}
				<-taken
			})
		})
	}
}

// An error comes after the packets that were read before it.
func TestErrorsComeAfterThePackets(t *testing.T) {
	wanted := errors.New("read")
	device, _ := bounded(&manyTUN{err: wanted}, &manyBind{})
	into, sizes := make([][]byte, batch), make([]int, batch)
	for i := range into {
		into[i] = make([]byte, 32)
	}
	seen := ""
	for range 3 {
		device.(*boundedTUN).out.leave(underWay)
		count, err := device.Read(into, sizes, 0)
		seen += fmt.Sprintf("%d %v, ", count, err)
	}
	if want := "48 <nil>, 48 <nil>, 32 read, "; seen != want {
		t.Errorf("got %s want %s", seen, want)
	}
}
