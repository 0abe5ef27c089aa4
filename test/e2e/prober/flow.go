package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// echoing is where what comes is sent back, by TCP, as long as the connection lasts. In the host network of nodes it must not be a port of
	// our agents, whose place a prober would take when they start anew.
	echoing = ":8090"
	// beat is how often each flow asks, told how often all of them are told of.
	beat, told = 100 * time.Millisecond, 500 * time.Millisecond
	// pause is how long without an answer is worth telling.
	pause = time.Second
	// request is how long what is echoed is, in bytes: more than a packet holds.
	request = 4000
)

// Flow is how one steady traffic does; times are in milliseconds since 1970.
type Flow struct {
	// OK is when there was last an answer.
	OK int64 `json:"ok"`
	// Silent is when the last pause began, Back when it ended.
	Silent int64 `json:"silent"`
	Back   int64 `json:"back"`
	// Lost is how many open connections ended, Why the last of them did.
	Lost int    `json:"lost"`
	Why  string `json:"why,omitempty"`
}

// flows are all of this process.
type flows struct {
	mu  sync.Mutex
	all map[string]*Flow
}

func (f *flows) note(name string, what func(*Flow)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what(f.all[name])
}

// answered notes an answer.
func (f *flows) answered(name string) {
	f.note(name, func(flow *Flow) {
		now := time.Now().UnixMilli()
		if flow.OK > 0 && now-flow.OK > pause.Milliseconds() {
			flow.Silent, flow.Back = flow.OK, now
		}
		flow.OK = now
	})
}

// echo sends back what comes to an address, or to any.
func echo(address string) error {
	listener, err := net.Listen("tcp4", address+echoing)
	if err != nil {
		return fmt.Errorf("listening for what is to be sent back: %w", err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accepting a connection: %w", err)
		}
		go func() {
			defer connection.Close()
			_, _ = io.Copy(connection, connection)
		}()
	}
}

// flow has steady traffic with others, each NAME=ADDRESS: by an open connection, by packets, and by connections that are opened anew. Each line
// that it prints tells how all of it does.
func flow(others []string) error {
	f := &flows{all: map[string]*Flow{}}
	for _, other := range others {
		name, address, found := strings.Cut(other, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=ADDRESS", other)
		}
		for kind, run := range map[string]func(name, address string){"open": f.open, "udp": f.packets, "new": f.anew} {
			f.all[kind+" "+name] = &Flow{}
			defer func() { go run(kind+" "+name, address) }()
		}
	}
	go func() {
		for range time.Tick(told) {
			f.mu.Lock()
			line, _ := json.Marshal(f.all)
			f.mu.Unlock()
			fmt.Println(string(line))
		}
	}()
	return nil
}

// open asks by one connection, as long as the kernel keeps it.
func (f *flows) open(name, address string) {
	for ; ; time.Sleep(beat) {
		connection, err := net.DialTimeout("tcp4", address+echoing, timeout)
		if err != nil {
			continue
		}
		buffer := make([]byte, request)
		for err == nil {
			if _, err = connection.Write(buffer); err == nil {
				_, err = io.ReadFull(connection, buffer)
			}
			if err == nil {
				f.answered(name)
				time.Sleep(beat)
			}
		}
		f.note(name, func(flow *Flow) { flow.Lost++; flow.Why = err.Error() })
		_ = connection.Close()
	}
}

// packets asks by UDP, all from the same port.
func (f *flows) packets(name, addressOnly string) {
	for ; ; time.Sleep(beat) {
		connection, err := net.Dial("udp4", addressOnly+answering)
		if err != nil {
			continue
		}
		buffer := make([]byte, 1<<16)
		for {
			if _, err := connection.Write([]byte(greeting)); err == nil {
				_ = connection.SetReadDeadline(time.Now().Add(pause / 2))
				if _, err := connection.Read(buffer); err == nil {
					f.answered(name)
				}
			}
			time.Sleep(beat)
		}
	}
}

// anew asks by another connection each time.
func (f *flows) anew(name, addressOnly string) {
	for ; ; time.Sleep(3 * beat) {
		connection, err := net.DialTimeout("tcp4", addressOnly+echoing, timeout)
		if err != nil {
			continue
		}
		_ = connection.SetDeadline(time.Now().Add(timeout))
		buffer := []byte(greeting)
		if _, err = connection.Write(buffer); err == nil {
			_, err = io.ReadFull(connection, buffer)
		}
		if err == nil {
			f.answered(name)
		}
		_ = connection.Close()
	}
}
