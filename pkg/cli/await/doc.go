// Package await waits for a state of a cluster, and always knows what it waits for.
//
// Contract:
//   - The only ends are: the state is reached, the check says that it never will be, or the context ends. The deadline is the
//     context's; a context without one waits until it is interrupted.
//   - Errors that may be gone at the next try (network, overload, conflicts, an absent kind) are not ends; they become what is
//     waited for.
//   - On a deadline the error names what was missing last, has the code Timeout, and says that the command can be run again.
package await
