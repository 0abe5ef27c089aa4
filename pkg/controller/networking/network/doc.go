// Package network gives ranges to Networks: to those of peers the ranges under which this cluster sees them, to this cluster's own the
// ranges that they are. It makes the own ones.
//
// Contract:
//   - One worker of one process gives ranges. It lists all Networks live before it gives one, and writes against the version that it
//     listed.
//   - What was given stays, whatever becomes of the configuration. Only where two Networks hold overlapping ranges, as after a backup was
//     restored, the younger one gets another.
//   - No peer's range is given before the external and the internal range are known.
package network
