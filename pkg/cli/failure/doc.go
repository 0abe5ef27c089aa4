// Package failure says what kind of failure ended a command, and what the user can do next.
//
// Contract:
//   - The exit code of liqoctl is a function of the error alone: CodeOf. Scripts rely on the codes, so they never change.
//   - An error for users is one clear sentence, `what failed (object, cluster): cause`, and the way out stands in Next.
//   - Wrapping with %w keeps code and next command.
//   - An interrupted context is Interrupted, an expired one Timeout, wherever in the chain it stands.
//   - Nothing here ever holds a secret; callers do not put one in.
package failure
