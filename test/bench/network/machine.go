package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ticks is how many units of /proc/<pid>/stat make a second; it is 100 on every Linux.
const ticks = 100

// cpuOf is the processor time of processes, in seconds, with that of the kernel's threads that work off what is received.
func cpuOf(processes []int) float64 {
	sum := 0.0
	for _, pid := range append(slices.Clone(processes), kernelThreads()...) {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		for _, i := range []int{11, 12} {
			value, _ := strconv.ParseFloat(fields[i], 64)
			sum += value / ticks
		}
	}
	return sum
}

func kernelThreads() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if pid, no := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && no == nil && strings.HasPrefix(string(data), "ksoftirqd/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// load is what the machine has done so far.
type load struct{ all, idle, stolen float64 }

func readLoad() load {
	data, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(data), "\n")
	var l load
	for i, field := range strings.Fields(line)[1:9] {
		value, _ := strconv.ParseFloat(field, 64)
		l.all += value
		switch i {
		case 3, 4:
			l.idle += value
		case 7:
			l.stolen += value
		}
	}
	return l
}

// since says how busy the machine was.
func (l load) since(before load) string {
	all := max(1, l.all-before.all)
	average, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("%.0f %% busy, %.0f %% stolen, load averages at the end %s",
		100*(all-(l.idle-before.idle))/all, 100*(l.stolen-before.stolen)/all, strings.Join(strings.Fields(string(average))[:3], " "))
}

// status is a field of /proc/<pid>/status, in MB: VmRSS is what a process holds, RssAnon what of that is its own and no file's.
func status(pid int, field string) float64 {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(data)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kilobytes / 1000
		}
	}
	return 0
}
