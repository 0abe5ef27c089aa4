// Command prober is a pod of the end-to-end tests, or a process elsewhere. It answers by TCP and UDP with its name and with whom it sees asking, at
// one address or at all; as "ask" it asks another one, and prints a line per protocol. As "flow" it does so and keeps asking others besides; as
// "knock" it opens a connection to each address that it reads.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// answering is where it answers with its name.
	answering = ":8080"
	// bulk follows a TCP answer, so that segments of full size cross.
	bulk     = 256 << 10
	timeout  = 3 * time.Second
	headers  = 28 // of UDP and IPv4
	greeting = "who are you?"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve("")
	case len(os.Args) == 3 && os.Args[1] == "serve":
		err = serve(os.Args[2])
	case len(os.Args) > 2 && os.Args[1] == "flow":
		if err = flow(os.Args[2:]); err == nil {
			err = serve("")
		}
	case len(os.Args) == 2 && os.Args[1] == "knock":
		err = knock(os.Stdin)
	case len(os.Args) == 4 && os.Args[1] == "ask":
		err = ask(os.Args[2], os.Args[3])
	default:
		err = errors.New("usage: prober serve [IP] | prober flow NAME=ADDRESS... | prober ask ADDRESS:PORT SIZE | prober knock <ADDRESSES")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prober:", err)
		os.Exit(1)
	}
}

// serve answers at an address, or at all of them, until the pod ends.
func serve(address string) error {
	packets, err := net.ListenPacket("udp4", address+answering)
	if err != nil {
		return fmt.Errorf("listening by UDP: %w", err)
	}
	if err := neverFragment(packets.(*net.UDPConn)); err != nil {
		return err
	}
	connections, err := net.Listen("tcp4", address+answering)
	if err != nil {
		return fmt.Errorf("listening by TCP: %w", err)
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the pod's name: %w", err)
	}
	go answerPackets(packets, name)
	go func() {
		if err := echo(address); err != nil {
			fmt.Fprintln(os.Stderr, "prober:", err)
		}
	}()
	for {
		connection, err := connections.Accept()
		if err != nil {
			return fmt.Errorf("accepting a connection: %w", err)
		}
		go answer(connection, name)
	}
}

func answer(connection net.Conn, name string) {
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(timeout))
	host, _, _ := net.SplitHostPort(connection.RemoteAddr().String())
	fmt.Fprintln(connection, name, host)
	_, _ = connection.Write(make([]byte, bulk))
}

// answerPackets answers each packet with one of the same size, at least.
func answerPackets(packets net.PacketConn, name string) {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		host, _, _ := net.SplitHostPort(from.String())
		line := []byte(name + " " + host + "\n")
		_, _ = packets.WriteTo(append(line, make([]byte, max(0, n-len(line)))...), from)
	}
}

// ask asks by TCP, by UDP, by a packet of the given size, and by one that is too large for the way: that has to be told.
func ask(server, size string) error {
	packet, err := strconv.Atoi(size)
	if err != nil {
		return fmt.Errorf("reading the size of a packet: %w", err)
	}
	line, err := byTCP(server)
	tell("tcp", line, err)
	line, err = byUDP(server, len(greeting))
	tell("udp", line, err)
	if packet == 0 {
		return nil
	}
	line, err = byUDP(server, packet-headers)
	tell("full", line, err)
	_, err = byUDP(server, packet-headers+1)
	if errors.Is(err, syscall.EMSGSIZE) {
		line, err = "refused", nil
	}
	tell("larger", line, err)
	return nil
}

func tell(what, line string, err error) {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		line = "closed"
	case err != nil:
		line = "failed: " + err.Error()
	}
	fmt.Println(what, line)
}

func byTCP(server string) (string, error) {
	connection, err := net.DialTimeout("tcp4", server, timeout)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(timeout))
	reader := bufio.NewReader(connection)
	line, err := reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	if n, err := io.Copy(io.Discard, reader); n != bulk {
		return "", fmt.Errorf("%d bytes of %d came: %w", n, bulk, err)
	}
	return strings.TrimSpace(line), nil
}

// byUDP sends a packet up to three times: the first may tell how large the next can be.
func byUDP(server string, size int) (line string, err error) {
	connection, err := net.Dial("udp4", server)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := neverFragment(connection.(*net.UDPConn)); err != nil {
		return "", err
	}
	buffer := make([]byte, 1<<16)
	for range 3 {
		if _, err = connection.Write(bytes.Repeat([]byte{'?'}, size)); err != nil {
			continue
		}
		_ = connection.SetReadDeadline(time.Now().Add(timeout / 3))
		var n int
		if n, err = connection.Read(buffer); err == nil {
			line, _, _ := strings.Cut(string(buffer[:n]), "\n")
			return line, nil
		}
	}
	return "", err
}

// neverFragment has packets that are too large refused.
func neverFragment(connection *net.UDPConn) error {
	raw, err := connection.SyscallConn()
	if err != nil {
		return fmt.Errorf("reaching a socket: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, syscall.IP_PMTUDISC_DO)
	}); err != nil {
		return fmt.Errorf("reaching a socket: %w", err)
	}
	if failed != nil {
		return fmt.Errorf("forbidding fragments: %w", failed)
	}
	return nil
}
