// Package resourceplugin asks, at the provider, the resource plugin of the administrator what ResourceSlices are granted.
//
//   - Nobody waits for a plugin: Decide tells at once what it said last, and Changed tells of slices on which it says something else now.
//   - A slice is asked about when it changes, when what is free does, and every Period; one question at a time for each slice, and not more
//     than maxQuestions for all. While the plugin fails, pauses grow to Period.
//   - An answer is believed as a whole or not at all. What was decided before holds until there is a better answer.
package resourceplugin
