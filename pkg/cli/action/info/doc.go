// Package info reads the state of an installation and of its peerings into plain values.
//
// Contract:
//   - Read-only.
//   - The values are what every rendering shows: the sections' names and fields are those of Liqo v1, and programs rely on them.
//   - A module is Disabled if nothing of it exists, Healthy if all its conditions are positive, else Unhealthy; the alerts are the
//     messages of the conditions that are not.
//   - Of a consumer that is silent, and of a cluster that is no peer any more, it is said what they have here.
//   - Query picks one value by its path, whatever the case of its letters.
package info
