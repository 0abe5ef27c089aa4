package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// trafficPort is where pods answer, by TCP.
const trafficPort = 9000

// What is done with a connection, by its first byte.
const (
	bulk     = 'b'
	requests = 'r'
	connects = 'c'
)

const requestSize = 64

// serve answers whoever connects.
func serve() error {
	listener, err := net.Listen("tcp4", fmt.Sprintf(":%d", trafficPort))
	if err != nil {
		return err
	}
	fmt.Println(ready)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			buffer := make([]byte, 256<<10)
			if _, err := io.ReadFull(conn, buffer[:1]); err != nil {
				return
			}
			switch buffer[0] {
			case bulk:
				for err == nil {
					_, err = conn.Read(buffer)
				}
			case requests:
				for err == nil {
					if _, err = io.ReadFull(conn, buffer[:requestSize]); err == nil {
						_, err = conn.Write(buffer[:requestSize])
					}
				}
			case connects:
				_, _ = conn.Write(buffer[:1])
			}
		}()
	}
}

// outcome is what came of a drive.
type outcome struct {
	Seconds float64
	// Count is how many bytes were sent, requests answered, or connections made.
	Count  float64
	Failed int
	// Median is the time that half of the requests took at most, Longest that of the slowest, in µs.
	Median, Longest float64
	Error           string
}

// job is what is to be driven: where to, what, by how many at once, for how long.
type job struct {
	Address string
	What    byte
	Width   int
	Span    time.Duration
	// Every is how long a client waits between two requests.
	Every time.Duration
}

// drive does the jobs that it is told by lines.
func drive(in io.Reader, out io.Writer) error {
	fmt.Fprintln(out, ready)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var j job
		if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
			return err
		}
		answer, err := json.Marshal(j.drive())
		if err != nil {
			return err
		}
		fmt.Fprintln(out, string(answer))
	}
	return nil
}

func (j job) drive() outcome {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		total outcome
		all   []time.Duration
	)
	begun := time.Now()
	for range j.Width {
		group.Go(func() {
			count, times, err := j.one(begun.Add(j.Span))
			mu.Lock()
			defer mu.Unlock()
			total.Count += count
			all = append(all, times...)
			if err != nil {
				total.Failed++
				total.Error = err.Error()
			}
		})
	}
	group.Wait()
	total.Seconds = time.Since(begun).Seconds()
	if len(all) > 0 {
		slices.Sort(all)
		total.Median, total.Longest = micros(all[len(all)/2]), micros(all[len(all)-1])
	}
	return total
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// one drives one client until a time.
func (j job) one(until time.Time) (count float64, times []time.Duration, err error) {
	if j.What == connects {
		for time.Now().Before(until) && err == nil {
			if err = j.connect(); err == nil {
				count++
			}
		}
		return count, nil, err
	}
	conn, err := net.DialTimeout("tcp4", j.Address, 10*time.Second)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{j.What}); err != nil {
		return 0, nil, err
	}
	if j.What == bulk {
		_ = conn.SetDeadline(until)
		buffer := make([]byte, 256<<10)
		for {
			n, err := conn.Write(buffer)
			count += float64(n)
			if err != nil && time.Now().Before(until) {
				return count, nil, err
			} else if err != nil {
				return count, nil, nil
			}
		}
	}
	buffer := make([]byte, requestSize)
	for time.Now().Before(until) {
		begun := time.Now()
		_ = conn.SetDeadline(begun.Add(time.Minute))
		if _, err := conn.Write(buffer); err != nil {
			return count, times, err
		}
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return count, times, err
		}
		count++
		times = append(times, time.Since(begun))
		if j.Every > 0 {
			time.Sleep(j.Every)
		}
	}
	return count, times, nil
}

// connect opens a connection, has it answered, and closes it.
func (j job) connect() error {
	conn, err := net.DialTimeout("tcp4", j.Address, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{connects}); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}

// do has a child drive something.
func (c *child) do(j job) (outcome, error) {
	line, err := json.Marshal(j)
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	answer, err := c.ask(string(line))
	if err != nil {
		return o, err
	}
	if err := json.NewDecoder(strings.NewReader(answer)).Decode(&o); err != nil {
		return o, err
	}
	if o.Error != "" && j.Every == 0 {
		return o, fmt.Errorf("%d of %d failed: %s", o.Failed, j.Width, o.Error)
	}
	return o, nil
}
