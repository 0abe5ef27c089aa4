// Package cli is liqoctl: it puts the families of commands below one root, runs a command line and turns the result into an exit
// code.
//
// Contract:
//   - cli/<family> are the commands, cli/action/<verb> what they do as a library, and everything else what both share.
//   - Run never ends the process. It writes data to standard output, everything else to standard error, and returns the exit code
//     that package failure assigns to the error.
//   - Called as kubectl-liqo it is `kubectl liqo`, and help says so: {{ .Executable }} in help texts is how the user calls us.
package cli
