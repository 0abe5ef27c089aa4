package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks is how many units of /proc/<pid>/stat make a second; it is 100 on every Linux.
const ticks = 100

// processes are the ids of everything that runs, by name.
func (b *bench) processes() map[string]int {
	ids := map[string]int{}
	if b.env.Lab != nil {
		for _, name := range b.env.Lab.Components() {
			if pid := b.env.Lab.PID(name); pid != 0 {
				ids[name] = pid
			}
		}
	}
	for name, p := range b.own {
		if p.Running() {
			ids[name] = p.PID()
		}
	}
	return ids
}

// cpuSeconds is what each process has used so far.
func (b *bench) cpuSeconds() map[string]float64 {
	used := map[string]float64{}
	for name, pid := range b.processes() {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if len(fields) < 13 {
			continue
		}
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		used[name] = (user + system) / ticks
	}
	return used
}

// difference is what was used between two readings.
func difference(before, after map[string]float64) map[string]float64 {
	d := map[string]float64{}
	for name, value := range after {
		d[name] = round(value - before[name])
	}
	return d
}

func total(of map[string]float64) float64 {
	sum := 0.0
	for _, value := range of {
		sum += value
	}
	return round(sum)
}

// memory reads a field of /proc/<pid>/status, in MB: VmRSS is what a process holds, VmHWM the most that it held.
func memory(pid int, field string) float64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return round(kilobytes / 1000)
		}
	}
	return 0
}

// available is the machine's memory that can be had, in MB.
func available() float64 {
	kilobytes, _ := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemAvailable"), " kB"), 64)
	return round(kilobytes / 1000)
}

// resident is the memory of each of our own processes, in MB.
func (b *bench) resident(field string) map[string]float64 {
	held := map[string]float64{}
	for name, p := range b.own {
		if p.Running() {
			held[name] = memory(p.PID(), field)
		}
	}
	return held
}

// resetPeaks has the kernel start anew with the peaks of our own processes.
func (b *bench) resetPeaks() {
	for _, p := range b.own {
		if p.Running() {
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0o200)
		}
	}
}

// load is what the machine does besides.
type load struct {
	total, idle, steal, ours float64
}

// readLoad reads the machine's counters; ours is what the processes of this run have used.
func (b *bench) readLoad() load {
	data, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(data), "\n")
	var l load
	for i, field := range strings.Fields(line)[1:] {
		value, _ := strconv.ParseFloat(field, 64)
		if i < 8 {
			l.total += value
		}
		switch i {
		case 3, 4:
			l.idle += value
		case 7:
			l.steal += value
		}
	}
	for _, seconds := range b.cpuSeconds() {
		l.ours += seconds * ticks
	}
	own, _ := os.ReadFile("/proc/self/stat")
	if fields := strings.Fields(string(own[strings.LastIndexByte(string(own), ')')+1:])); len(fields) > 12 {
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		l.ours += user + system
	}
	return l
}

// since says how busy the machine was, and by whom.
func (l load) since(before load) Load {
	all := max(1, l.total-before.total)
	busy := all - (l.idle - before.idle)
	stolen, ours := l.steal-before.steal, l.ours-before.ours
	average, _ := os.ReadFile("/proc/loadavg")
	return Load{
		Average: strings.Join(strings.Fields(string(average))[:3], " "),
		Busy:    percent(busy / all), Stolen: percent(stolen / all),
		Others: percent(max(0, busy-stolen-ours) / all),
	}
}

func percent(share float64) float64 { return math.Round(share * 100) }

func round(value float64) float64 { return math.Round(value*1000) / 1000 }
