package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reaching is how long a connection may take: its first packet is sent again after 1, 3 and 7 s, which is told.
const reaching = 15 * time.Second

// knock opens a connection to each address that it reads, at once, and tells whether somebody was there, and how often a packet had to be sent again.
func knock(in io.Reader) error {
	var all sync.WaitGroup
	var lock sync.Mutex
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		address := lines.Text()
		all.Go(func() {
			again, err := open(address)
			lock.Lock()
			defer lock.Unlock()
			tell(address, fmt.Sprintf("there %d", again), err)
		})
	}
	all.Wait()
	return lines.Err()
}

// open opens a connection, and says how many packets were sent more than once for that.
func open(server string) (again uint32, err error) {
	connection, err := net.DialTimeout("tcp4", server, reaching)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	raw, err := connection.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("reaching a socket: %w", err)
	}
	var info *unix.TCPInfo
	var failed error
	if err := raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil {
		return 0, fmt.Errorf("reaching a socket: %w", err)
	}
	if failed != nil {
		return 0, fmt.Errorf("asking about a connection: %w", failed)
	}
	return info.Total_retrans, nil
}
