// Package complete offers the names of live objects to shell completion.
//
// Contract:
//   - Silent: any failure means no proposals, never a message.
//   - Fast: at most 500 ms, then no proposals.
//   - Cached for 10 seconds per cluster and question in the user's cache folder, because every press of TAB is a new process.
//   - What was typed already is not proposed again.
//   - Names are cached, never contents.
package complete
