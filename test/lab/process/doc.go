// Package process starts and stops the long-running programs of a lab and
// remembers them on disk, so that another invocation of the lab finds them again.
//
// A program is identified by process id, start time and boot id together; it is
// never signalled when one of them differs, so a recycled process id is safe.
// Programs are their own session and survive the caller. A program may be placed
// into a network namespace and into cgroups before it starts.
package process
