// Package session is what all commands of one run of liqoctl share: the streams, the global flags, how the user calls us, and how
// progress and results are shown.
//
// Contract:
//   - Commands are glue: they read flags into the options of a verb, open clusters through the session, make one call, and show
//     the report.
//   - Confirm asks on a terminal only; elsewhere it refuses unless --skip-confirm was given.
//   - Nothing is read from the environment but through Environment, so that tests decide it.
package session
